//! Pages that say which test stands for which fault: every test they name exists, and no row is missing.

mod files;

use files::{Outcome, none_of, root, shown, with_extension};
use std::fs;

/// Everything that is called a test or could be: the code of all crates.
fn code() -> Outcome<String> {
    let (root, mut code) = (root()?, String::new());
    for path in with_extension(&root.join("crates"), "rs")? {
        let unread = |error| format!("{}: {error}", shown(&root, &path));
        code.push_str(&fs::read_to_string(&path).map_err(unread)?);
    }
    Ok(code)
}

/// Holds the table after a heading to the code: each row begins with an id of the list, in its order, its last
/// cell names tests that exist, or says in words why there is none.
fn hold_table(page: &str, heading: &str, ids: &[String]) -> Outcome<()> {
    let text = fs::read_to_string(root()?.join(page))?;
    let table = text.split(heading).nth(1).ok_or_else(|| format!("{page} has no `{heading}`"))?;
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| {
            line.starts_with("| ") && line.as_bytes().get(2).is_some_and(u8::is_ascii_uppercase)
        })
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").collect())
        .collect();
    let named: Vec<_> = rows.iter().filter_map(|row| row.first().copied()).collect();
    let mut problems: Vec<_> = ids
        .iter()
        .filter(|id| !named.contains(&id.as_str()))
        .map(|id| format!("{page}: {id} has no row"))
        .collect();
    let code = code()?;
    for row in &rows {
        let (id, cell) = (row.first().unwrap_or(&""), row.last().unwrap_or(&""));
        let tests: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        let lost =
            tests.iter().filter(|test| is_test(test) && !code.contains(&format!("fn {test}(")));
        problems.extend(lost.map(|test| format!("{page}: {id}: there is no test `{test}`")));
        if tests.is_empty() && !cell.starts_with("none") {
            problems.push(format!("{page}: {id}: names no test, and does not begin with `none`"));
        }
    }
    none_of(problems)
}

/// Whether a word in backquotes is the name of a test, and not a command or a header.
fn is_test(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn numbered(letter: &str, numbers: std::ops::RangeInclusive<u8>) -> Vec<String> {
    numbers.map(|number| format!("{letter}-{number:02}")).collect()
}

#[test]
fn every_kind_of_hostile_input_has_a_test_or_a_reason() -> Outcome<()> {
    let ids = [numbered("I", 2..=14), numbered("F", 14..=23)].concat();
    hold_table("docs/reference/hostile-input.md", "## What was tried", &ids)
}

#[test]
fn names_of_tests_are_told_from_other_words() {
    assert!(is_test("a_token_with_one_changed_letter_is_none"));
    for other in ["Idempotency-Key", "cargo xtask bench gateway", "openapi.json", ""] {
        assert!(!is_test(other), "{other}");
    }
    assert_eq!(numbered("I", 9..=10), ["I-09", "I-10"]);
}
