//! The second, blind reading: who read what, and how far the two readers agree.
//!
//! **Invariant:** a row about which the readers disagree is no longer in the corpus; what they said of it
//! stays on record, so that the agreement is not flattered.

use super::row::Row;
use std::collections::{BTreeMap, BTreeSet};

/// A theme whose agreement is lower has to be read again as a whole.
const KAPPA_MIN: f64 = 0.85;
/// The theme that was labelled once only, as the corpus says of itself.
const READ_ONCE: &str = "actions";
/// So many rows outside the test split are read twice at least.
const SAMPLE_MIN: usize = 2_000;

/// What two readers said of one row.
#[derive(Debug)]
pub struct Reading {
    pub id: String,
    pub first: String,
    pub second: String,
}

/// The readings, or what is wrong with their lines: `id`, first and second label with tabs between.
pub fn parse(lines: &str) -> Result<Vec<Reading>, String> {
    let known = |label: &str| matches!(label, "harmful" | "safe" | "undecided");
    let read = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        let (id, first, second) = (parts.next()?, parts.next()?, parts.next()?);
        (known(&first) && known(&second)).then_some(Reading { id, first, second })
    };
    lines.lines().map(|line| read(line).ok_or_else(|| format!("no reading: {line}"))).collect()
}

/// Themes on which the readers agree too little.
pub fn themes_in_doubt(readings: &[Reading]) -> Vec<String> {
    let doubtful = agreement(readings).into_iter().filter(|(_, _, kappa)| *kappa < KAPPA_MIN);
    doubtful.map(|(theme, rows, kappa)| format!("{theme}: kappa {kappa:.3} of {rows}")).collect()
}

/// Theme, rows read twice, and Cohen's kappa.
pub fn agreement(readings: &[Reading]) -> Vec<(String, usize, f64)> {
    let mut themes: BTreeMap<&str, Vec<&Reading>> = BTreeMap::new();
    for reading in readings {
        themes.entry(reading.id.split('-').next().unwrap_or_default()).or_default().push(reading);
    }
    themes.into_iter().map(|(theme, of)| (theme.to_owned(), of.len(), kappa(&of))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "some thousand rows")]
fn kappa(readings: &[&Reading]) -> f64 {
    let all = readings.len() as f64;
    let agreed = readings.iter().filter(|one| one.first == one.second).count() as f64 / all;
    let by_chance: f64 = ["harmful", "safe", "undecided"]
        .iter()
        .map(|label| {
            let first = readings.iter().filter(|one| one.first == *label).count() as f64;
            let second = readings.iter().filter(|one| one.second == *label).count() as f64;
            first * second / (all * all)
        })
        .sum();
    if by_chance < 1.0 { (agreed - by_chance) / (1.0 - by_chance) } else { 1.0 }
}

/// Rows of the test split that only one person read, and too small a sample of the others.
pub fn unread(rows: &[Row], readings: &[Reading]) -> Vec<String> {
    let read: BTreeSet<&str> = readings.iter().map(|one| one.id.as_str()).collect();
    let of_test = |row: &&Row| row.file.split == "test";
    let is_due = |row: &&Row| row.file.theme != READ_ONCE;
    let alone =
        rows.iter().filter(of_test).filter(is_due).filter(|row| !read.contains(row.id.as_str()));
    let mut problems: Vec<_> = alone.map(|row| format!("{}: read once", row.name())).collect();
    let sample = rows.iter().filter(|row| !of_test(row) && read.contains(row.id.as_str())).count();
    if sample < SAMPLE_MIN {
        problems
            .push(format!("{sample} rows of train and dev are read twice, at least {SAMPLE_MIN}"));
    }
    problems
}

/// Rows that are still here although the readers disagree, or whose label is not what was read.
pub fn unsettled(rows: &[Row], readings: &[Reading]) -> Vec<String> {
    let said: BTreeMap<&str, &Reading> =
        readings.iter().map(|one| (one.id.as_str(), one)).collect();
    let label = |row: &Row| if row.harmful { "harmful" } else { "safe" };
    let settled = |row: &Row| {
        said.get(row.id.as_str())
            .is_none_or(|one| one.first == label(row) && one.second == label(row))
    };
    rows.iter().filter(|row| !settled(row)).map(|row| format!("{}: in doubt", row.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus_lint::row::made;

    #[test]
    fn agreement_beyond_chance_is_measured() {
        let lines = "a-en-1\tharmful\tharmful\na-en-2\tsafe\tsafe\na-en-3\tharmful\tsafe\na-en-4\tsafe\tsafe\n";
        let readings = parse(lines).unwrap();
        let (theme, rows, kappa) = &agreement(&readings)[0];
        assert_eq!((theme.as_str(), *rows), ("a", 4));
        assert!((kappa - 0.5).abs() < 1e-9, "{kappa}");
        assert_eq!(themes_in_doubt(&readings).len(), 1);
        assert!(parse("a-en-1\tharmful\n").is_err() && parse("a\tbad\tsafe\n").is_err());
    }

    #[test]
    fn rows_that_nobody_else_read_or_that_stay_in_doubt_are_found() {
        let rows = [made("test/a.en.jsonl", "a-en-1", ""), made("test/a.en.jsonl", "a-en-2", "")];
        let readings = parse("a-en-1\tsafe\tharmful\n").unwrap();
        assert_eq!(unsettled(&rows, &readings).len(), 1);
        let problems = unread(&rows, &readings);
        assert!(
            problems[0].contains("a-en-2") && problems[1].starts_with("0 rows"),
            "{problems:?}"
        );
    }
}
