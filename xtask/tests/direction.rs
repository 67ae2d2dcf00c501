//! The direction of dependencies, read from `cargo metadata`, and the purity of the pure crates.

mod files;
mod masked;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use files::{Outcome, none_of, root, shown, with_extension};
use masked::{is_word, without_tests};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Which of our crates each crate may build on; whoever is not here may not exist.
const MAY_USE: &[(&str, &[&str])] = &[
    ("conclave-core", &[]),
    ("conclave-failpoint", &[]),
    ("conclave-ledger", &[]),
    ("conclave-detect", &["conclave-core"]),
    ("conclave-classify", &["conclave-core", "conclave-detect"]),
    ("conclave-pii", &[]),
    ("conclave-govern", &["conclave-core"]),
    (
        "conclave-ports",
        &[
            "conclave-core",
            "conclave-detect",
            "conclave-govern",
            "conclave-ledger",
            "conclave-verifiers",
            "conclave-voice",
        ],
    ),
    ("conclave-money", &["conclave-core", "conclave-govern", "conclave-ledger", "conclave-ports"]),
    (
        "conclave-people",
        &[
            "conclave-core",
            "conclave-eval",
            "conclave-govern",
            "conclave-ledger",
            "conclave-ports",
            "conclave-voice",
        ],
    ),
    ("conclave-eval", &[]),
    ("conclave-instinct", &["conclave-core"]),
    ("conclave-verifiers", &["conclave-core", "conclave-detect"]),
    ("conclave-voice", &["conclave-core", "conclave-detect"]),
    (
        "conclave-engine",
        &[
            "conclave-core",
            "conclave-failpoint",
            "conclave-govern",
            "conclave-ledger",
            "conclave-detect",
            "conclave-instinct",
            "conclave-money",
            "conclave-pii",
            "conclave-ports",
            "conclave-verifiers",
            "conclave-voice",
        ],
    ),
    (
        "conclave-recipes",
        &[
            "conclave-core",
            "conclave-detect",
            "conclave-engine",
            "conclave-failpoint",
            "conclave-govern",
            "conclave-ledger",
            "conclave-money",
            "conclave-pii",
            "conclave-ports",
            "conclave-voice",
        ],
    ),
    ("conclave-models", &["conclave-core", "conclave-engine", "conclave-voice"]),
    (
        "conclave-store",
        &[
            "conclave-core",
            "conclave-engine",
            "conclave-failpoint",
            "conclave-govern",
            "conclave-ledger",
            "conclave-money",
        ],
    ),
    (
        "conclave-gateway",
        &[
            "conclave-core",
            "conclave-engine",
            "conclave-failpoint",
            "conclave-govern",
            "conclave-ledger",
            "conclave-money",
            "conclave-people",
            "conclave-recipes",
            "conclave-voice",
        ],
    ),
    (
        "conclave-dashboard",
        &[
            "conclave-core",
            "conclave-engine",
            "conclave-govern",
            "conclave-ledger",
            "conclave-people",
            "conclave-voice",
        ],
    ),
    (
        "conclave",
        &[
            "conclave-core",
            "conclave-ledger",
            "conclave-detect",
            "conclave-instinct",
            "conclave-verifiers",
            "conclave-voice",
            "conclave-engine",
            "conclave-failpoint",
            "conclave-models",
            "conclave-store",
            "conclave-gateway",
            "conclave-dashboard",
            "conclave-classify",
            "conclave-eval",
            "conclave-govern",
            "conclave-money",
            "conclave-people",
            "conclave-pii",
            "conclave-recipes",
        ],
    ),
    (
        "conclave-testkit",
        &["conclave-core", "conclave-engine", "conclave-govern", "conclave-ledger"],
    ),
    (
        "conclave-train",
        &[
            "conclave-classify",
            "conclave-core",
            "conclave-detect",
            "conclave-eval",
            "conclave-verifiers",
        ],
    ),
    ("xtask", &["conclave-testkit"]),
];

/// Which of our crates tests may use besides: what turns hold is decided by the real use-cases of people,
/// and the pipeline is tested with the runs that go through it.
const TESTS_MAY_USE: &[(&str, &str)] = &[
    ("conclave-engine", "conclave-people"),
    ("conclave-engine", "conclave-recipes"),
    ("conclave-store", "conclave-people"),
];

/// Crates without IO, clock, chance or waiting.
const PURE: [&str; 9] = [
    "conclave-core",
    "conclave-ledger",
    "conclave-detect",
    "conclave-classify",
    "conclave-pii",
    "conclave-govern",
    "conclave-eval",
    "conclave-verifiers",
    "conclave-voice",
];

/// Crates that bring IO, chance or waiting; their families (`tokio-util`, `rand_core`) count too.
const IMPURE: [&str; 9] =
    ["tokio", "futures", "reqwest", "rusqlite", "sqlx", "rand", "getrandom", "hyper", "axum"];

/// What pure code may not say.
const IMPURE_PATHS: [&str; 11] = [
    "std::fs",
    "fs::",
    "std::net",
    "net::",
    "SystemTime",
    "Instant",
    "thread::spawn",
    "thread::sleep",
    "std::process",
    "env::var",
    "tokio",
];

fn metadata() -> Outcome<Metadata> {
    let manifest = root()?.join("Cargo.toml");
    let options = ["--offline".to_owned()];
    Ok(MetadataCommand::new().manifest_path(manifest).no_deps().other_options(options).exec()?)
}

fn may_use(name: &str) -> Option<&'static [&'static str]> {
    MAY_USE.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, allowed)| *allowed)
}

#[test]
fn dependencies_point_one_way() -> Outcome<()> {
    let metadata = metadata()?;
    let ours: BTreeSet<_> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let Some(allowed) = may_use(&package.name) else {
            problems.push(format!("{} has no place in the direction; give it one", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let in_tests = dependency.kind == DependencyKind::Development;
            let for_tests = name == "conclave-testkit"
                || TESTS_MAY_USE.contains(&(package.name.as_str(), name));
            let permitted = allowed.contains(&name) || (in_tests && for_tests);
            if ours.contains(name) && !permitted {
                problems.push(format!("{} must not depend on {name}", package.name));
            }
        }
    }
    assert!(ours.contains("conclave-core"), "the metadata names our crates");
    none_of(problems)
}

#[test]
fn pure_crates_depend_on_nothing_impure() -> Outcome<()> {
    let metadata = metadata()?;
    let pure = metadata.packages.iter().filter(|package| PURE.contains(&package.name.as_str()));
    let mut problems = Vec::new();
    let mut seen = 0;
    for package in pure {
        seen += 1;
        let shipped = |kind| kind != DependencyKind::Development;
        for dependency in package.dependencies.iter().filter(|d| shipped(d.kind)) {
            if IMPURE.iter().any(|impure| is_of_family(&dependency.name, impure)) {
                problems.push(format!("{} is pure: no {}", package.name, dependency.name));
            }
        }
    }
    assert_eq!(seen, PURE.len(), "every pure crate is in the workspace");
    none_of(problems)
}

fn is_of_family(name: &str, family: &str) -> bool {
    let rest = name.strip_prefix(family);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

#[test]
fn pure_crates_say_nothing_impure() -> Outcome<()> {
    let root = root()?;
    let mut problems = Vec::new();
    for name in PURE {
        let folder = root.join("crates").join(name).join("src");
        let mut tests = BTreeSet::new();
        let mut shipped = Vec::new();
        for path in with_extension(&folder, "rs")? {
            let file = without_tests(&fs::read_to_string(&path)?, &path);
            tests.extend(file.tests);
            shipped.push((path, file.code));
        }
        shipped.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
        assert!(!shipped.is_empty(), "{name} has code");
        for (path, code) in &shipped {
            problems.extend(impurities(code, &shown(&root, path)));
        }
    }
    none_of(problems)
}

fn impurities(code: &str, place: &str) -> Vec<String> {
    let lines = code.lines().enumerate();
    lines
        .flat_map(|(at, line)| {
            let said = IMPURE_PATHS.iter().filter(move |path| says(line, path));
            said.map(move |path| format!("{place}:{}: pure code says `{path}`", at + 1))
        })
        .collect()
}

/// Whether the line has the path as whole words.
fn says(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = at.checked_sub(1).map(|before| line.as_bytes()[before]);
        let after = line.as_bytes().get(at + path.len());
        let open_end = path.ends_with(':') || !after.is_some_and(|byte| is_word(*byte));
        // An address in `core::net` is a value; only `std::net` opens sockets.
        let value = line[..at].ends_with("core::");
        !before.is_some_and(is_word) && open_end && !value
    })
}

#[test]
fn impure_words_are_found_and_innocent_ones_are_not() {
    let place = Path::new("src/x.rs");
    for (source, expected) in [
        ("use std::fs;", 1),
        ("use std::{fs, net};\nfn a() { fs::read(); }", 1),
        ("let now = std::time::SystemTime::now();", 1),
        ("let address: core::net::Ipv4Addr;", 0),
        ("tokio::spawn(f);", 1),
        ("std::thread::spawn(f);", 1),
        ("// std::fs is not used\nlet tokio_like = \"tokio\"; offs::x(); instants();", 0),
        ("#[cfg(test)]\nmod tests { use std::fs; }", 0),
    ] {
        let code = without_tests(source, place).code;
        assert_eq!(impurities(&code, "x").len(), expected, "{source}");
    }
}
