//! The documents hold together and say what the code says.

mod files;

use files::{Outcome, none_of, root, shown, with_extension};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page with the code taken out of it.
struct Page {
    path: PathBuf,
    place: String,
    lines: Vec<String>,
}

fn pages() -> Outcome<Vec<Page>> {
    let root = root()?;
    let mut pages = Vec::new();
    for path in with_extension(&root, "md")? {
        let lines = prose(&fs::read_to_string(&path)?);
        pages.push(Page { place: shown(&root, &path), path, lines });
    }
    assert!(pages.len() > 10, "the scan finds the pages");
    Ok(pages)
}

/// The lines with fenced blocks emptied, so that an example is not taken for a link or a heading.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let blank_code = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fence || fenced { String::new() } else { line.to_owned() }
    };
    text.lines().map(blank_code).collect()
}

/// The targets of the links in a line, code spans left out.
fn targets(line: &str) -> Vec<&str> {
    let outside = line.split('`').step_by(2);
    outside
        .flat_map(|text| text.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// The name under which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .collect::<String>();
    kept.replace(' ', "-")
}

fn anchors(lines: &[String]) -> BTreeSet<String> {
    let headings = lines.iter().filter(|line| line.starts_with('#'));
    headings.map(|heading| anchor(heading)).collect()
}

/// Takes `.` and `..` out of a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Every relative link: the page, the line, the file and the anchor it names.
fn links(pages: &[Page]) -> Vec<(String, PathBuf, Option<String>)> {
    let mut links = Vec::new();
    for page in pages {
        for (at, line) in page.lines.iter().enumerate() {
            let near = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
            for target in targets(line).into_iter().filter(near) {
                let (file, anchor) = match target.split_once('#') {
                    Some((file, anchor)) => (file, Some(anchor.to_owned())),
                    None => (target, None),
                };
                let folder = page.path.parent().unwrap_or(&page.path);
                let file =
                    if file.is_empty() { page.path.clone() } else { plain(&folder.join(file)) };
                links.push((format!("{}:{}", page.place, at + 1), file, anchor));
            }
        }
    }
    links
}

#[test]
fn every_link_leads_somewhere() -> Outcome<()> {
    let (root, pages) = (root()?, pages()?);
    let links = links(&pages);
    assert!(links.len() > 30, "the scan finds the links");
    let mut problems = Vec::new();
    for (place, file, anchor) in links {
        let name = shown(&root, &file);
        if !file.exists() {
            problems.push(format!("{place}: there is no {name}"));
        }
        let page = pages.iter().find(|page| page.path == file);
        if let (Some(anchor), Some(page)) = (anchor, page)
            && !anchors(&page.lines).contains(&anchor)
        {
            problems.push(format!("{place}: {name} has no heading `{anchor}`"));
        }
    }
    none_of(problems)
}

#[test]
fn every_page_can_be_reached() -> Outcome<()> {
    let pages = pages()?;
    let named: BTreeSet<_> = links(&pages).into_iter().map(|(_, file, _)| file).collect();
    let lost = pages
        .iter()
        .filter(|page| page.place.starts_with("docs/") && !named.contains(&page.path))
        .map(|page| format!("{}: no page links to it", page.place));
    none_of(lost.collect())
}

#[test]
fn no_line_ends_in_blanks() -> Outcome<()> {
    let pages = pages()?;
    let mut problems = Vec::new();
    for page in &pages {
        let lines = page.lines.iter().enumerate();
        let bad = lines.filter(|(_, line)| line.ends_with([' ', '\t', '\r']));
        problems.extend(bad.map(|(at, _)| format!("{}:{}: ends in blanks", page.place, at + 1)));
    }
    none_of(problems)
}

fn read(path: &str) -> Outcome<String> {
    Ok(fs::read_to_string(root()?.join(path)).map_err(|error| format!("{path}: {error}"))?)
}

/// Words in the code that its page must name, each between backquotes.
fn compare(page: &str, words: &[String], least: usize) -> Outcome<()> {
    assert!(words.len() >= least, "the scan finds the words: {words:?}");
    let text = read(page)?;
    let missing = words
        .iter()
        .filter(|word| !text.contains(&format!("`{word}`")))
        .map(|word| format!("{page} does not name `{word}`"));
    none_of(missing.collect())
}

/// What stands between the quotes after a mark.
fn quoted_after(code: &str, mark: &str) -> Vec<String> {
    let rest = code.split(mark).skip(1);
    rest.filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect()
}

#[test]
fn every_category_is_described() -> Outcome<()> {
    let code = read("crates/conclave-core/src/category.rs")?;
    let table = code.split("categories! {").nth(1).unwrap_or_default();
    let table = table.split("\n}").next().unwrap_or_default();
    compare("docs/reference/categories.md", &quoted_after(table, " = \""), 20)
}

#[test]
fn every_reason_is_described() -> Outcome<()> {
    let code = read("crates/conclave-core/src/reason.rs")?;
    let table = code.split("reasons! {").nth(1).unwrap_or_default();
    compare("docs/reference/categories.md", &quoted_after(table, " = \""), 20)
}

#[test]
fn every_route_is_described() -> Outcome<()> {
    let code = read("crates/conclave-gateway/src/routes/mod.rs")?;
    let table = code.split("\nroutes! {").nth(1).unwrap_or_default();
    let table = table.split("\n}").next().unwrap_or_default();
    let routes: Vec<_> = table
        .lines()
        .filter_map(|line| match line.split('"').collect::<Vec<_>>()[..] {
            [method, path, _] => Some(format!("{} {path}", method.trim().to_uppercase())),
            _ => None,
        })
        .collect();
    compare("docs/reference/http.md", &routes, 10)
}

#[test]
fn every_error_code_is_described() -> Outcome<()> {
    let code = read("crates/conclave-gateway/src/error.rs")?;
    let mut codes: Vec<_> = code
        .split("Self::new(")
        .skip(1)
        .filter_map(|call| call.split('"').nth(3).map(str::to_owned))
        .collect();
    codes.extend(["content_filter", "upstream_error", "upstream_timeout"].map(str::to_owned));
    compare("docs/reference/http.md", &codes, 10)
}

#[test]
fn every_setting_is_described() -> Outcome<()> {
    let parts = ["mod", "rates", "telemetry", "upstream", "verifiers"];
    let parts = parts.map(|part| read(&format!("crates/conclave/src/config/{part}.rs")));
    let code: String = parts.into_iter().collect::<Outcome<Vec<_>>>()?.join("\n");
    let fields = code.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
    let names: Vec<_> = fields.map(|(name, _)| name.to_owned()).collect();
    compare("docs/reference/configuration.md", &names, 20)
}

#[test]
fn everything_a_trace_tells_is_described() -> Outcome<()> {
    let mut story = read("crates/conclave-engine/src/conclude/spans.rs")?;
    story.push_str(&read("crates/conclave-recipes/src/run/record.rs")?);
    let telling = ["gen_ai.", "conclave.", "error."];
    let quoted = story.split('"').skip(1).step_by(2);
    let told = quoted.filter(|word| telling.iter().any(|start| word.starts_with(start)));
    let mut words: Vec<_> = told.map(str::to_owned).collect();
    let settings = read("crates/conclave/src/telemetry/mod.rs")?;
    words.extend(quoted_after(&settings, "\"OTEL_").iter().map(|rest| format!("OTEL_{rest}")));
    compare("docs/reference/telemetry.md", &words, 30)
}

#[test]
fn every_command_and_option_is_described() -> Outcome<()> {
    let root = root()?;
    let mut code = read("crates/conclave/src/cli.rs")?;
    for path in with_extension(&root.join("crates/conclave/src/cli"), "rs")? {
        code.push_str(&fs::read_to_string(path)?);
    }
    let words: Vec<_> = options(&code).into_iter().chain(commands(&code)).collect();
    compare("docs/reference/cli.md", &words, 60)
}

/// The options: fields under an `#[arg(…)]` that has `long`, by the name that stands there or their own.
fn options(code: &str) -> Vec<String> {
    let named = code.split("#[arg(long").skip(1);
    named
        .filter_map(|rest| {
            if let Some(given) = rest.strip_prefix(" = \"") {
                return Some(format!("--{}", given.split_once('"')?.0));
            }
            let (_, field) = rest.split_once(")]\n")?;
            let (name, _) = field.trim_start().split_once(':')?;
            Some(format!("--{}", name.trim_start_matches("pub ").replace('_', "-")))
        })
        .collect()
}

/// The variants of the enums that are commands.
fn commands(code: &str) -> Vec<String> {
    let enums = code.split("Subcommand)]\n").skip(1);
    let bodies = enums.filter_map(|rest| rest.split("\n}").next());
    let variants = bodies.flat_map(|body| {
        body.lines().filter_map(|line| {
            let variant = line.strip_prefix("    ")?;
            let name: String = variant.chars().take_while(|c| c.is_alphabetic()).collect();
            variant.starts_with(char::is_uppercase).then(|| kebab(&name))
        })
    });
    variants.collect()
}

/// How the command line spells a variant: `RotateKey` as `rotate-key`.
fn kebab(name: &str) -> String {
    let spelled = name.chars().enumerate().flat_map(|(at, c)| {
        let hyphen = (at > 0 && c.is_uppercase()).then_some('-');
        hyphen.into_iter().chain(c.to_lowercase())
    });
    spelled.collect()
}

#[test]
fn every_test_that_a_page_names_exists() -> Outcome<()> {
    let page = read("docs/reference/orchestration.md")?;
    let table = page.split("the test that shows it\n").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let named = rows.filter_map(|row| row.split(" | ").nth(1));
    let names: Vec<_> = named.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 40, "the scan finds the tests: {names:?}");
    let mut code = String::new();
    for path in with_extension(&root()?.join("crates"), "rs")? {
        code.push_str(&fs::read_to_string(&path)?);
    }
    let lost = names.iter().filter(|name| !code.contains(&format!("fn {name}(")));
    none_of(lost.map(|name| format!("there is no test `{name}`")).collect())
}

/// The faults that the catalogue has to speak of: a letter and how many.
const FAULTS: [(&str, u32); 3] = [("C", 16), ("F", 13), ("R", 11)];

/// The last part of what looks like the name of a test; words of other kinds are shorter.
fn test_name(word: &str) -> Option<&str> {
    let name = word.rsplit("::").next()?;
    let plain =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    (plain && (word.contains("::") || name.matches('_').count() >= 3)).then_some(name)
}

#[test]
fn every_fault_has_a_test_that_exists_or_a_sentence_why_not() -> Outcome<()> {
    let page = read("docs/guide/faults.md")?;
    let mut code = String::new();
    for path in with_extension(&root()?.join("crates"), "rs")? {
        code.push_str(&fs::read_to_string(&path)?);
    }
    // Those of a macro that makes a test of each line are named before a colon.
    let exists = |name: &str| {
        code.contains(&format!("fn {name}(")) || code.contains(&format!("    {name}: \""))
    };
    let (mut wrong, mut named) = (Vec::new(), 0);
    for (letter, last) in FAULTS {
        for number in 1..=last {
            let start = format!("| {letter}-{number:02} | ");
            let Some(row) = page.lines().find(|line| line.starts_with(&start)) else {
                wrong.push(format!("{letter}-{number:02} is not in the catalogue"));
                continue;
            };
            let cell = row.rsplit(" | ").next().unwrap_or_default();
            let words = cell.split('`').skip(1).step_by(2);
            let names: Vec<_> = words.filter_map(test_name).collect();
            named += names.len();
            let lost = names.iter().filter(|name| !exists(name));
            wrong.extend(
                lost.map(|name| format!("{letter}-{number:02}: there is no test `{name}`")),
            );
            if names.is_empty() && !cell.contains("not ") && !cell.contains("the same") {
                wrong.push(format!("{letter}-{number:02} names no test and does not say why"));
            }
        }
    }
    assert!(named > 50, "the scan finds the tests: {named}");
    none_of(wrong)
}

#[test]
fn links_and_headings_are_read_as_written() {
    assert_eq!(targets("[a](x.md#b) `[no](y)` [c](../z)"), ["x.md#b", "../z"]);
    assert_eq!(anchor("## What is not here yet"), "what-is-not-here-yet");
    assert_eq!(anchor("# `conclave check`: one text"), "conclave-check-one-text");
    assert_eq!(prose("a\n```\n[x](y)\n```\nb").concat(), "ab");
    assert_eq!(plain(Path::new("/a/./b/../c")), Path::new("/a/c"));
    assert_eq!(options("#[arg(long, global = true)]\n pub log_format: X,"), ["--log-format"]);
    assert_eq!(commands("Subcommand)]\npub enum C {\n    /// X\n    Serve(S),\n}"), ["serve"]);
    assert_eq!(kebab("RotateKey"), "rotate-key");
}
