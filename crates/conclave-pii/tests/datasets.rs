//! Figures on the shared sets, where `CONCLAVE_DATASETS` names their folder.

#![expect(clippy::unwrap_used, reason = "a missing or broken data file should fail the test")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are what this test is for"
)]

use conclave_pii::{Finder, Found, is_identifying};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared folder; without it the test says so and passes.
fn datasets() -> Option<PathBuf> {
    let folder = std::env::var_os("CONCLAVE_DATASETS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: CONCLAVE_DATASETS does not name the folder of the shared sets");
    }
    folder
}

fn rows(path: &Path) -> Vec<Value> {
    let unpacked = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    let text = String::from_utf8(unpacked.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{} is empty", path.display());
    rows
}

fn identifies(finder: &Finder, row: &Value) -> bool {
    finder.find(row["text"].as_str().unwrap()).iter().any(is_identifying)
}

/// F1 of the label for rows of the task, and how many of both kinds there are.
fn measure(finder: &Finder, name: &str, rows: &[Value]) -> f64 {
    let (mut hits, mut alarms, mut misses, mut safe) = (0.0, 0.0, 0.0, 0.0);
    for row in rows.iter().filter(|row| row["task"] == "pii") {
        match (row["label"] == "harmful", identifies(finder, row)) {
            (true, true) => hits += 1.0,
            (true, false) => misses += 1.0,
            (false, flagged) => {
                safe += 1.0;
                alarms += f64::from(u8::from(flagged));
            }
        }
    }
    let f1 = 2.0 * hits / (2.0 * hits + alarms + misses);
    let (recall, rate) = (hits / (hits + misses), alarms / f64::max(safe, 1.0));
    println!(
        "{name}: {} rows, F1 {f1:.3}, recall {recall:.3}, FPR {rate:.3}",
        hits + misses + safe
    );
    f1
}

/// Kinds of the sets that identify nobody by themselves.
const PLAIN_KINDS: [&str; 10] = [
    "AGE",
    "CITY",
    "DATE_TIME",
    "GPE",
    "LOCATION",
    "NATIONALITY",
    "NRP",
    "ORGANIZATION",
    "TITLE",
    "ZIP_CODE",
];

/// How many marked spans of a kind there are, and how many are found.
#[derive(Default)]
struct SpanCount {
    marked: f64,
    found: f64,
}

/// A marked span that identifies somebody.
struct MarkedSpan<'r> {
    kind: &'r str,
    start: u64,
    end: u64,
}

/// The set marks house numbers and postal codes by themselves too: those identify nobody.
fn is_bare_number(text: &[char], span: &MarkedSpan<'_>) -> bool {
    let place = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
    span.kind == "ADDRESS" && !text[place].iter().any(|sign| sign.is_alphabetic())
}

fn identifying_spans(row: &Value) -> Vec<MarkedSpan<'_>> {
    let text: Vec<char> = row["text"].as_str().unwrap().chars().collect();
    let spans = row["orig"]["spans"].as_array().into_iter().flatten();
    let spans = spans.map(|span| MarkedSpan {
        kind: span[0].as_str().unwrap(),
        start: span[1].as_u64().unwrap(),
        end: span[2].as_u64().unwrap(),
    });
    let named = spans.filter(|span| !PLAIN_KINDS.contains(&span.kind));
    named.filter(|span| !is_bare_number(&text, span)).collect()
}

fn touches(place: &Found, span: &MarkedSpan<'_>) -> bool {
    (place.start as u64) < span.end && span.start < place.end as u64
}

/// Recall and precision by span: a span counts as found where a finding that identifies touches
/// it, and a finding is right where it touches a span that identifies.
#[test]
fn marked_spans_are_found_and_little_else() {
    let Some(folder) = datasets() else { return };
    let finder = Finder::builtin().unwrap();
    let mut counts: BTreeMap<String, SpanCount> = BTreeMap::new();
    let mut findings = 0.0;
    let mut right = 0.0;
    for row in rows(&folder.join("dev.jsonl.gz")).iter().filter(|row| row["task"] == "pii") {
        let spans = identifying_spans(row);
        let found = finder.find(row["text"].as_str().unwrap());
        let found: Vec<Found> = found.into_iter().filter(is_identifying).collect();
        for span in &spans {
            let count = counts.entry(span.kind.to_owned()).or_default();
            count.marked += 1.0;
            count.found += f64::from(u8::from(found.iter().any(|place| touches(place, span))));
        }
        findings += found.len() as f64;
        let hits = found.iter().filter(|place| spans.iter().any(|span| touches(place, span)));
        right += hits.count() as f64;
    }
    let marked: f64 = counts.values().map(|count| count.marked).sum();
    let hit: f64 = counts.values().map(|count| count.found).sum();
    println!("{marked} spans, recall {:.3}, precision {:.3}", hit / marked, right / findings);
    for (kind, count) in &counts {
        println!("  {kind}: {} of {}", count.found, count.marked);
    }
    assert!(hit / marked >= 0.84, "recall");
    assert!(right / findings >= 0.93, "precision");
}

#[test]
fn identifying_rows_are_told_from_places_firms_and_dates() {
    let Some(folder) = datasets() else { return };
    let finder = Finder::builtin().unwrap();
    for (name, bar) in [("train.jsonl.gz", 0.97), ("dev.jsonl.gz", 0.90)] {
        let f1 = measure(&finder, name, &rows(&folder.join(name)));
        assert!(f1 >= bar, "{name}: F1 {f1:.3} is below {bar}");
    }
}

/// Most of what is flagged in these really is a name; the bars keep the shares from growing unseen.
#[test]
fn ordinary_texts_are_seldom_flagged() {
    let Some(folder) = datasets() else { return };
    let finder = Finder::builtin().unwrap();
    let bars = BTreeMap::from([
        ("clinc150", 0.06),
        ("goemotions", 0.02),
        ("banking77", 0.01),
        ("commonsense_moral_ja", 0.01),
        ("arena_hard", 0.13),
    ]);
    let mut shares: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let rows = rows(&folder.join("train.jsonl.gz"));
    for row in rows.iter().filter(|row| row["label"] == "safe" && row["text"].is_string()) {
        let Some((source, _)) = bars.get_key_value(row["source"].as_str().unwrap()) else {
            continue;
        };
        let share = shares.entry(source).or_default();
        *share = (share.0 + f64::from(u8::from(identifies(&finder, row))), share.1 + 1.0);
    }
    for (source, (flagged, count)) in shares {
        println!("{source}: {flagged} of {count} flagged, {:.4}", flagged / count);
        assert!(flagged / count <= bars[source], "{source}: {flagged} of {count}");
    }
}
