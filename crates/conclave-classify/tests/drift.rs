//! Slow movements in whole conversations: found by the sixth message, and not where there is none.
//!
//! `drift-tune.jsonl` was in view when the numbers of the course were chosen; `drift-held.jsonl` and `drift-fresh.jsonl` are
//! only measured, the latter written before the course was changed for the last time.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it expects and what it found"
)]

use conclave_classify::{Ensemble, SlowTiers};
use conclave_core::Mode;
use conclave_detect::{Course, Detector, DriftKind, Observed};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// A drift must have been seen by this message.
const BY_MESSAGE: usize = 6;

#[derive(Deserialize)]
struct Conversation {
    id: String,
    kind: String,
    language: String,
    messages: Vec<String>,
}

static DETECTOR: LazyLock<Detector> = LazyLock::new(|| {
    let models = Ensemble::builtin(SlowTiers::Never).unwrap();
    Detector::builtin().unwrap().with_classifier(Arc::new(models))
});

/// The kinds that were noticed by the sixth message.
fn noticed(conversation: &Conversation) -> Vec<DriftKind> {
    let mut course = Course::default();
    let messages: Vec<&str> = conversation.messages.iter().map(String::as_str).collect();
    for (at, text) in messages.iter().enumerate().take(BY_MESSAGE) {
        let together = DETECTOR.together(&messages[..=at], Mode::Normal);
        let marks = DETECTOR.read(text, Mode::Normal).marks_with(together.as_ref());
        course.observe(&Observed { text, marks, timestamp_ms: 0, audit_id: "" });
        if !course.alerts().is_empty() {
            break;
        }
    }
    course.alerts().into_iter().map(|alert| alert.pattern).collect()
}

struct Found {
    drifting: usize,
    found: usize,
    named: usize,
    harmless: usize,
    alarms: usize,
}

fn measure(name: &str, rows: &str) -> Found {
    let mut sum = Found { drifting: 0, found: 0, named: 0, harmless: 0, alarms: 0 };
    let mut kinds: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    for line in rows.lines() {
        let conversation: Conversation = serde_json::from_str(line).unwrap();
        let noticed = noticed(&conversation);
        let of_kind =
            kinds.entry((conversation.kind.clone(), conversation.language.clone())).or_default();
        of_kind.0 += usize::from(!noticed.is_empty());
        of_kind.1 += 1;
        if conversation.kind == "harmless" {
            sum.harmless += 1;
            sum.alarms += usize::from(!noticed.is_empty());
            if !noticed.is_empty() {
                println!("{name}: {} is harmless, read as {noticed:?}", conversation.id);
            }
        } else {
            sum.drifting += 1;
            sum.found += usize::from(!noticed.is_empty());
            sum.named += usize::from(noticed.iter().any(|kind| kind.as_str() == conversation.kind));
        }
    }
    for ((kind, language), (seen, all)) in kinds {
        println!("{name}: {kind} {language}: {seen} of {all} noticed");
    }
    let Found { drifting, found, named, harmless, alarms } = sum;
    println!(
        "{name}: {found} of {drifting} found, {named} by their name; {alarms} of {harmless} false alarms"
    );
    sum
}

#[test]
fn slow_movements_are_noticed_and_ordinary_lives_are_not() {
    let tune = measure("tune", include_str!("data/drift-tune.jsonl"));
    let held = measure("held", include_str!("data/drift-held.jsonl"));
    let fresh = measure("fresh", include_str!("data/drift-fresh.jsonl"));
    assert!(tune.alarms <= 2 && tune.found * 100 >= tune.drifting * 88);
    assert!(held.alarms <= 1 && held.found * 100 >= held.drifting * 80);
    assert!(fresh.alarms <= 1 && fresh.found * 100 >= fresh.drifting * 90);
}
