//! The way of one turn and the table of decisions in ARCHITECTURE.md, followed through the code.
//!
//! **Invariant:** every file they name exists and defines the item they name, and every step of the way is
//! called by the step that the page says calls it.

mod files;
mod masked;

use files::{Outcome, none_of, root, shown, with_extension};
use masked::{is_word, without_tests};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "ARCHITECTURE.md";
/// Whoever follows a turn should not have to open more.
const STEPS_MAX: usize = 25;
const QUESTIONS_MIN: usize = 25;
/// Reached through a trait, so that the caller does not name it.
const BY_TRAIT: &str = "(trait)";
const DEFINED_BY: [&str; 8] =
    ["fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "macro_rules! "];

/// One step of a turn.
#[derive(Debug, PartialEq, Eq)]
struct WalkStep {
    path: String,
    item: String,
    caller: Caller,
}

#[derive(Debug, PartialEq, Eq)]
enum Caller {
    /// The turn begins here.
    Nobody,
    Trait,
    /// The step with this number, counted from one.
    Step(usize),
}

/// A question, and where it is decided.
#[derive(Debug, PartialEq, Eq)]
struct DecisionPlace {
    path: String,
    item: String,
}

/// The rows of the first table after a heading, without its head.
fn table_after<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = page.split(heading).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Where the link of a cell leads.
fn link_target(cell: &str) -> Option<String> {
    Some(cell.split_once("](")?.1.split_once(')')?.0.to_owned())
}

fn quoted_item(cell: &str) -> Option<String> {
    Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())
}

fn read_step(row: &[&str], number: usize) -> Result<WalkStep, String> {
    let [stated, file, item, by, _] = row else {
        return Err(format!("{PAGE}: a step has five cells: {row:?}"));
    };
    if stated.parse() != Ok(number) {
        return Err(format!("{PAGE}: step {number} is called {stated}"));
    }
    let caller = match *by {
        "" => Caller::Nobody,
        BY_TRAIT => Caller::Trait,
        by => match by.parse() {
            Ok(step) if step < number => Caller::Step(step),
            _ => return Err(format!("{PAGE}: step {number} is called by no earlier step: {by}")),
        },
    };
    let path = link_target(file).ok_or_else(|| format!("{PAGE}: step {number} links no file"))?;
    let item = quoted_item(item).ok_or_else(|| format!("{PAGE}: step {number} names no item"))?;
    Ok(WalkStep { path, item, caller })
}

fn read_place(row: &[&str]) -> Result<DecisionPlace, String> {
    let read = || {
        let [_, file, item] = row else { return None };
        Some(DecisionPlace { path: link_target(file)?, item: quoted_item(item)? })
    };
    read().ok_or_else(|| format!("{PAGE}: a question has a file and an item: {row:?}"))
}

/// Every place where a name stands by itself, as what stands before it.
fn before_each<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(name).filter_map(move |(at, _)| {
        let before = &code[..at];
        let is_inside = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte));
        let ends = is_inside(code.as_bytes().get(at + name.len()));
        (!is_inside(before.as_bytes().last()) && !ends).then_some(before)
    })
}

/// Whether code defines an item; of `Type::function`, both must stand there.
fn defines(code: &str, item: &str) -> bool {
    let mut parts = item.rsplit("::");
    let name = parts.next().unwrap_or_default();
    let is_definition = |before: &str| DEFINED_BY.iter().any(|word| before.ends_with(word));
    before_each(code, name).any(is_definition)
        && parts.all(|owner| before_each(code, owner).next().is_some())
}

/// Whether code uses an item; to import it is not enough.
fn uses(code: &str, item: &str) -> bool {
    let is_import = |before: &str| {
        let statement = before.rsplit(';').next().unwrap_or_default().trim_start();
        statement.starts_with("use ") || statement.starts_with("pub use ")
    };
    before_each(code, item).any(|before| !is_import(before))
}

/// The code of a file, without comments, strings and tests.
fn code_of(path: &str) -> Outcome<String> {
    let file = root()?.join(path);
    let source =
        fs::read_to_string(&file).map_err(|error| format!("{PAGE} names {path}: {error}"))?;
    Ok(without_tests(&source, &file).code)
}

fn missing_item(path: &str, item: &str) -> Option<String> {
    match code_of(path) {
        Ok(code) if defines(&code, item) => None,
        Ok(_) => Some(format!("{path} defines no `{item}`")),
        Err(error) => Some(error.to_string()),
    }
}

fn steps_on(page: &str) -> Outcome<Vec<WalkStep>> {
    let rows = table_after(page, "\n## The way of one turn\n");
    let mut steps = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        steps.push(read_step(row, at + 1)?);
    }
    Ok(steps)
}

#[test]
fn one_turn_goes_the_way_that_is_written() -> Outcome<()> {
    let page = fs::read_to_string(root()?.join(PAGE))?;
    let steps = steps_on(&page)?;
    assert!(steps.len() > 10, "the scan finds the steps: {steps:?}");
    let files: BTreeSet<_> = steps.iter().map(|step| &step.path).collect();
    assert!(files.len() <= STEPS_MAX, "a turn crosses {} files", files.len());
    assert_eq!(files.len(), steps.len(), "each file is one step");
    let counted = format!("\n{} files hand the turn on.\n", files.len());
    let others = page.split_once(&counted).ok_or("the page counts the steps")?.1;
    let others = others.split("\n\n").next().unwrap_or_default();
    let beside = others.matches("](").count();
    assert!(others.starts_with(&format!("{beside} more ")), "{beside} files stand beside the way");
    let mut problems = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        problems.extend(missing_item(&step.path, &step.item));
        match step.caller {
            Caller::Nobody if at > 0 => problems.push(format!("nobody calls step {}", at + 1)),
            Caller::Nobody | Caller::Trait => {}
            Caller::Step(caller) => {
                let caller = &steps[caller - 1].path;
                if !uses(&code_of(caller)?, &step.item) {
                    problems.push(format!("{caller} does not call `{}`", step.item));
                }
            }
        }
    }
    none_of(problems)
}

#[test]
fn every_guard_stands_on_the_way() -> Outcome<()> {
    let root = root()?;
    let steps = steps_on(&fs::read_to_string(root.join(PAGE))?)?;
    let guards = with_extension(&root.join("crates/conclave-engine/src/guards"), "rs")?;
    let guards: Vec<_> = guards.iter().map(|path| shown(&root, path)).collect();
    assert!(guards.len() > 5, "the scan finds the guards: {guards:?}");
    let missing = guards.iter().filter(|path| !steps.iter().any(|step| step.path == **path));
    none_of(missing.map(|path| format!("{path} is no step of the way")).collect())
}

#[test]
fn everything_is_decided_where_the_page_says() -> Outcome<()> {
    let page = fs::read_to_string(root()?.join(PAGE))?;
    let rows = table_after(&page, "\n## Where is X decided?\n");
    assert!(rows.len() >= QUESTIONS_MIN, "the scan finds the questions: {}", rows.len());
    let mut problems = Vec::new();
    for row in rows {
        let place = read_place(&row)?;
        problems.extend(missing_item(&place.path, &place.item));
    }
    none_of(problems)
}

#[test]
fn a_wrong_path_or_item_is_found() -> Outcome<()> {
    let page = "\n## A\n\n| | file | f | by | |\n|---|---|---|---|---|\n\
                | 1 | [`a.rs`](x/a.rs) | `run` | | begins |\n\
                | 2 | [`b.rs`](x/b.rs) | `T::go` | 1 | goes on |\n\n## B\n| 3 |\n";
    let rows = table_after(page, "\n## A\n");
    assert_eq!(rows.len(), 2);
    let first = WalkStep { path: "x/a.rs".into(), item: "run".into(), caller: Caller::Nobody };
    assert_eq!(read_step(&rows[0], 1)?, first);
    assert_eq!(read_step(&rows[1], 2)?.caller, Caller::Step(1));
    assert!(read_step(&rows[1], 1).is_err(), "a wrong number");
    assert!(read_step(&["2", "[`b`](b)", "`go`", "2", ""], 2).is_err(), "called by itself");
    assert!(read_place(&["why?", "b.rs", "`go`"]).is_err(), "no link");

    let code = "use b::T;\npub struct T;\nimpl T { pub fn go() {} }\nfn outgo() { started() }\n";
    assert!(defines(code, "go") && defines(code, "T::go") && defines(code, "T"));
    assert!(!defines(code, "U::go") && !defines(code, "out") && !defines(code, "started"));
    assert!(uses(code, "started") && !uses(code, "start") && !uses("use a::go;\n", "go"));
    assert!(missing_item("crates/nowhere.rs", "go").is_some());
    assert!(missing_item("xtask/tests/walk.rs", "nothing_of_that_name").is_some());
    assert!(missing_item("xtask/tests/walk.rs", "missing_item").is_none());
    Ok(())
}
