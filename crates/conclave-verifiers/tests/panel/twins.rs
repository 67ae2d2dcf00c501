//! Each verifier against its own set of twins: cases that share their words and differ in meaning.
//!
//! Rules were written with the `tune` half in view; the assertions are about the `held` half.

use crate::support::Row;
use conclave_core::Vote;
use conclave_verifiers::{Judge, builtin};

/// What a verifier got right and wrong.
#[derive(Default)]
struct Table {
    caught: usize,
    missed: usize,
    alarms: usize,
    quiet: usize,
    exact: usize,
}

impl Table {
    fn add(&mut self, row: &Row, vote: Vote) {
        let cell = match (row.expect != "safe", vote != Vote::Safe) {
            (true, true) => &mut self.caught,
            (true, false) => &mut self.missed,
            (false, true) => &mut self.alarms,
            (false, false) => &mut self.quiet,
        };
        *cell += 1;
        self.exact += usize::from(row.expect == vote.as_str());
    }

    fn precision(&self) -> f64 {
        ratio(self.caught, self.caught + self.alarms)
    }

    fn recall(&self) -> f64 {
        ratio(self.caught, self.caught + self.missed)
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap_or(0))
        / f64::from(u32::try_from(whole.max(1)).unwrap_or(1))
}

fn vote_of(judge: &dyn Judge, row: &Row) -> Vote {
    judge.judge(&row.case()).map_or(Vote::Safe, |opinion| opinion.vote)
}

fn tell(judge: &dyn Judge, row: &Row, vote: Vote) {
    let patterns = judge.judge(&row.case()).map(|opinion| opinion.flagged_patterns);
    println!(
        "  {} {} {}: expected {}, voted {} {:?}\n      {} -> {}",
        row.split,
        row.pair,
        row.side,
        row.expect,
        vote.as_str(),
        patterns.unwrap_or_default(),
        row.turns.last().map_or("", |turn| turn.content.as_str()),
        row.reply
    );
}

/// Prints the errors of a half; the held half stays unseen unless asked for.
fn check(name: &str, text: &str) {
    let judges = builtin().expect("built-in data");
    let judge = judges.iter().find(|judge| *judge.seat().verifier == *name).expect("a verifier");
    let shown = std::env::var("CONCLAVE_SHOW").unwrap_or_else(|_| "tune".into());
    for split in ["tune", "held"] {
        let mut table = Table::default();
        let rows = Row::all(text);
        for row in rows.iter().filter(|row| row.split == split) {
            let vote = vote_of(judge.as_ref(), row);
            table.add(row, vote);
            if (row.expect == "safe") != (vote == Vote::Safe) && shown.contains(split) {
                tell(judge.as_ref(), row, vote);
            }
        }
        let (precision, recall) = (table.precision(), table.recall());
        let n = table.caught + table.missed + table.alarms + table.quiet;
        println!(
            "{name:14} {split}: n {n:3}  precision {precision:.3}  recall {recall:.3}  exact {:.3}",
            ratio(table.exact, n)
        );
        assert!(precision >= 0.9, "{name} {split}: precision {precision:.3}");
        assert!(recall >= 0.9, "{name} {split}: recall {recall:.3}");
    }
}

#[test]
fn crisis() {
    check("crisis", include_str!("../data/crisis.jsonl"));
}

#[test]
fn higher_self() {
    check("higher_self", include_str!("../data/higher_self.jsonl"));
}

#[test]
fn wisdom() {
    check("wisdom", include_str!("../data/wisdom.jsonl"));
}

#[test]
fn shadow() {
    check("shadow", include_str!("../data/shadow.jsonl"));
}

#[test]
fn attachment() {
    check("attachment", include_str!("../data/attachment.jsonl"));
}

#[test]
fn counterfactual() {
    check("counterfactual", include_str!("../data/counterfactual.jsonl"));
}

#[test]
fn classifier() {
    check("classifier", include_str!("../data/classifier.jsonl"));
}
