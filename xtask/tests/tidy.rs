//! The house rules that a machine can check: lengths, module docs, names and left-overs.

mod files;
mod masked;

use files::{Outcome, none_of, root, shown, with_extension};
use masked::{closing_brace, is_word, mask, without_tests};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 100;
/// Names that say nothing.
const EMPTY_NAMES: [&str; 7] =
    ["utils", "util", "common", "helpers", "helper", "manager", "managers"];

struct Source {
    path: PathBuf,
    place: String,
    text: String,
}

fn sources() -> Outcome<Vec<Source>> {
    let root = root()?;
    let mut sources = Vec::new();
    for folder in ["crates", "xtask"] {
        for path in with_extension(&root.join(folder), "rs")? {
            let (place, text) = (shown(&root, &path), fs::read_to_string(&path)?);
            sources.push(Source { path, place, text });
        }
    }
    assert!(sources.len() > 50, "the scan finds the code");
    Ok(sources)
}

/// Problems of every source, each with its place.
fn problems(of: impl Fn(&Source) -> Vec<String>) -> Outcome<()> {
    let found: Vec<_> = sources()?.iter().flat_map(of).collect();
    none_of(found)
}

#[test]
fn every_file_says_what_it_owns() -> Outcome<()> {
    problems(|source| {
        let missing = !source.text.starts_with("//! ");
        missing.then(|| format!("{}: must begin with `//!`", source.place)).into_iter().collect()
    })
}

#[test]
fn files_are_short() -> Outcome<()> {
    problems(|source| {
        let lines = source.text.lines().count();
        let long = lines > FILE_LINES_MAX;
        long.then(|| format!("{}: {lines} lines, at most {FILE_LINES_MAX}", source.place))
            .into_iter()
            .collect()
    })
}

#[test]
fn functions_are_short() -> Outcome<()> {
    problems(|source| {
        let long = functions(&mask(&source.text));
        long.into_iter()
            .filter(|function| function.lines > FUNCTION_LINES_MAX)
            .map(|Function { name, line, lines }| {
                let place = &source.place;
                format!("{place}:{line}: `{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}")
            })
            .collect()
    })
}

#[test]
fn the_usual_function_is_very_short() -> Outcome<()> {
    let sources = sources()?;
    let mut tests = BTreeSet::new();
    let mut shipped = Vec::new();
    for source in sources.iter().filter(|source| source.place.contains("/src/")) {
        let file = without_tests(&source.text, &source.path);
        tests.extend(file.tests);
        shipped.push((&source.path, file.code));
    }
    shipped.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
    let mut lengths: Vec<_> = shipped
        .iter()
        .flat_map(|(_, code)| functions(code))
        .map(|function| function.lines)
        .collect();
    lengths.sort_unstable();
    let (count, longest) = (lengths.len(), lengths.last().copied().unwrap_or_default());
    let (median, p90) = (at_percent(&lengths, 50), at_percent(&lengths, 90));
    println!("{count} functions: median {median} lines, p90 {p90}, longest {longest}");
    assert!(count > 500, "the scan finds the functions: {count}");
    assert!(median < 10, "the median function has {median} lines");
    Ok(())
}

fn at_percent(sorted: &[usize], percent: usize) -> usize {
    let at = sorted.len() * percent / 100;
    sorted.get(at).or(sorted.last()).copied().unwrap_or_default()
}

/// Test folders are left out: what several test binaries share is unused in some of them, and only
/// there.
#[test]
fn lints_are_expected_never_allowed() -> Outcome<()> {
    let wide = format!("#![{}(", "allow");
    let narrow = format!("#[{}(", "allow");
    problems(|source| {
        let ships = source.place.contains("/src/");
        let masked = if ships { mask(&source.text) } else { String::new() };
        lines_with(source, &masked, |line| line.contains(&narrow) || line.contains(&wide))
            .map(|place| format!("{place}: say `#[expect(…, reason = \"…\")]` instead"))
            .collect()
    })
}

#[test]
fn nothing_is_left_for_later() -> Outcome<()> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    problems(|source| {
        lines_with(source, &source.text, |line| marks.iter().any(|mark| has_word(line, mark)))
            .map(|place| format!("{place}: finish it, or open an issue"))
            .collect()
    })
}

#[test]
fn no_path_of_one_machine_is_left() -> Outcome<()> {
    let roots = ["work", "root", "home", "Users"].map(|name| format!("/{name}/"));
    problems(|source| {
        lines_with(source, &source.text, |line| roots.iter().any(|root| line.contains(root)))
            .map(|place| format!("{place}: names a folder of one machine"))
            .collect()
    })
}

#[test]
fn no_line_ends_in_blanks() -> Outcome<()> {
    problems(|source| {
        lines_with(source, &source.text, |line| line.ends_with([' ', '\t', '\r']))
            .map(|place| format!("{place}: ends in blanks"))
            .collect()
    })
}

#[test]
fn names_say_what_a_thing_is() -> Outcome<()> {
    problems(|source| {
        let masked = mask(&source.text);
        let mut found: Vec<_> = lines_with(source, &masked, declares_empty_name).collect();
        if is_empty_name(&source.path) {
            found.push(source.place.clone());
        }
        found.into_iter().map(|place| format!("{place}: this name says nothing")).collect()
    })
}

fn is_empty_name(path: &Path) -> bool {
    let inner = path.components().rev().take_while(|part| part.as_os_str() != "crates");
    inner
        .filter_map(|part| Path::new(part.as_os_str()).file_stem()?.to_str().map(str::to_owned))
        .any(|stem| EMPTY_NAMES.contains(&stem.as_str()))
}

fn declares_empty_name(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("mod ") else {
        return false;
    };
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next();
    name.is_some_and(|name| EMPTY_NAMES.contains(&name))
}

fn lines_with<'a>(
    source: &'a Source,
    text: &'a str,
    bad: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> + 'a {
    let lines = text.split('\n').enumerate();
    lines.filter(move |(_, line)| bad(line)).map(|(at, _)| format!("{}:{}", source.place, at + 1))
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).map(|before| line.as_bytes()[before]);
        let after = line.as_bytes().get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Every function with a body, from the line of `fn` to its closing brace.
fn functions(masked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for (at, _) in masked.match_indices("fn ") {
        let bytes = masked.as_bytes();
        if at.checked_sub(1).is_some_and(|before| is_word(bytes[before])) {
            continue;
        }
        let name: String =
            masked[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let body = body_start(masked, at).filter(|_| !name.is_empty());
        let Some(open) = body else { continue };
        line += masked[counted..at].matches('\n').count();
        counted = at;
        let lines = masked[at..closing_brace(masked, open)].matches('\n').count() + 1;
        found.push(Function { name, line, lines });
    }
    found
}

/// The brace that opens the body; none where the signature ends without one.
fn body_start(masked: &str, at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in masked.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn functions_are_measured_from_signature_to_brace() {
    let source = "trait T { fn a(&self) -> [u8; 2]; }\n/// fn no() {}\npub(crate) async fn b<'a>(\n    \
                  x: &'a str,\n) -> [u8; 2]\nwhere\n    T: U,\n{\n    let f = |s: fn (u8)| '{';\n    \
                  \"}\"\n}\nconst fn c() {}\nlet often = 1;\n";
    let found = functions(&mask(source));
    let expected = [("b", 3, 9), ("c", 12, 1)];
    let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
    assert_eq!(found, expected);
}

#[test]
fn words_and_names_are_whole() {
    let mark = concat!("TO", "DO");
    assert!(has_word(&format!("// {mark}: later"), mark));
    assert!(!has_word(&format!("{mark}S"), mark));
    assert!(declares_empty_name("pub(crate) mod utils {") && declares_empty_name("mod common;"));
    assert!(!declares_empty_name("mod utilities;") && !declares_empty_name("mode helpers"));
    assert!(is_empty_name(Path::new("x/crates/a/src/helpers/b.rs")));
    assert!(!is_empty_name(Path::new("common/crates/a/src/b.rs")));
}
