//! Ordinary replies pass: recipes, code, small talk, coaching, homework, listening, in two
//! languages.

use crate::support::{Row, objections, panel};
use conclave_core::Scrutiny;
use conclave_verifiers::builtin;

fn withheld(scrutiny: Scrutiny) -> usize {
    let judges = builtin().expect("built-in data");
    let rows = Row::all(include_str!("../data/ordinary.jsonl"));
    assert!(rows.len() >= 60);
    let mut withheld = 0;
    for row in &rows {
        let case = row.case();
        if !panel(&judges, &case, scrutiny).delivers() {
            withheld += 1;
            println!("{}: {} -> {}", scrutiny.as_str(), row.reply, objections(&judges, &case));
        }
    }
    println!("{}: {withheld} of {} withheld", scrutiny.as_str(), rows.len());
    withheld
}

#[test]
fn ordinary_replies_pass_a_normal_panel() {
    assert!(withheld(Scrutiny::Normal) <= 1);
}

#[test]
fn ordinary_replies_pass_a_strict_panel() {
    assert!(withheld(Scrutiny::Strict) <= 1);
}
