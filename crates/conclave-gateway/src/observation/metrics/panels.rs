//! What verifiers voted and how long they and the models took.
//!
//! **Invariant:** label values are names from the configuration, at most [`NAMES_MAX`] of each kind.

use super::{Histogram, read_counter, write_head};
use conclave_core::{Ballot, Cast, GenerationFailure, Vote};
use conclave_engine::Decision;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How many verifiers, and how many providers, are told apart; the configuration has fewer.
const NAMES_MAX: usize = 128;
/// What may stand on a ballot.
const CASTS: [&str; 5] = ["safe", "concern", "harmful", "abstained", "excused"];
/// Why a model gave nothing.
const FAILURES: [GenerationFailure; 5] = [
    GenerationFailure::Timeout,
    GenerationFailure::Unreachable,
    GenerationFailure::Refused,
    GenerationFailure::Invalid,
    GenerationFailure::TooLarge,
];

/// Figures by verifier and by provider.
#[derive(Default)]
pub(super) struct PanelCounters {
    verifiers: NamedCounters<VerifierCounters>,
    providers: NamedCounters<ProviderCounters>,
}

#[derive(Default)]
struct VerifierCounters {
    casts: [AtomicU64; CASTS.len()],
    took: Histogram,
}

#[derive(Default)]
struct ProviderCounters {
    failures: [AtomicU64; FAILURES.len()],
    took: Histogram,
}

/// Figures under names; names are added and never taken away.
struct NamedCounters<T> {
    by_name: RwLock<BTreeMap<Arc<str>, Arc<T>>>,
}

impl<T> Default for NamedCounters<T> {
    fn default() -> Self {
        Self { by_name: RwLock::default() }
    }
}

impl<T: Default> NamedCounters<T> {
    fn find_or_add(&self, name: &Arc<str>) -> Option<Arc<T>> {
        let known = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return Some(found.clone());
        }
        drop(known);
        let mut known = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= NAMES_MAX && !known.contains_key(name) {
            return None;
        }
        Some(known.entry(name.clone()).or_default().clone())
    }

    fn snapshot(&self) -> BTreeMap<Arc<str>, Arc<T>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PanelCounters {
    pub(super) fn count_decision(&self, decision: &Decision) {
        let attempts = || decision.choices.iter().flat_map(|choice| &choice.attempts);
        for run in attempts().flat_map(|attempt| &attempt.panels) {
            run.ballots.iter().for_each(|ballot| self.count_ballot(ballot));
        }
        if attempts().next().is_none() {
            return;
        }
        let Some(calls) = self.providers.find_or_add(&decision.provider) else { return };
        calls.took.observe(decision.model_time);
        for failure in attempts().filter_map(|attempt| attempt.candidate.as_ref().err()) {
            if let Some(at) = FAILURES.iter().position(|known| known == failure) {
                calls.failures[at].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn count_ballot(&self, ballot: &Ballot) {
        let at = match ballot.cast {
            Cast::Voted { vote: Vote::Safe, .. } => 0,
            Cast::Voted { vote: Vote::Concern, .. } => 1,
            Cast::Voted { vote: Vote::Harmful, .. } => 2,
            Cast::Abstained(_) => 3,
            Cast::Excused(_) => 4,
            Cast::NotApplicable => return,
        };
        if let Some(votes) = self.verifiers.find_or_add(&ballot.seat.verifier) {
            votes.casts[at].fetch_add(1, Ordering::Relaxed);
            votes.took.observe(Duration::from_millis(ballot.latency_ms.into()));
        }
    }

    pub(super) fn render(&self, page: &mut String) {
        let verifiers = self.verifiers.snapshot();
        let providers = self.providers.snapshot();
        write_head(
            page,
            "conclave_ballots_total",
            "counter",
            "Ballots by verifier and what they say.",
        );
        for (name, votes) in &verifiers {
            let name = escape_label(name);
            for (cast, count) in CASTS.iter().zip(&votes.casts) {
                let count = read_counter(count);
                let labels = format!("verifier=\"{name}\",cast=\"{cast}\"");
                let _ = writeln!(page, "conclave_ballots_total{{{labels}}} {count}");
            }
        }
        let name = "conclave_verifier_duration_seconds";
        write_head(page, name, "histogram", "How long each verifier took.");
        for (verifier, votes) in &verifiers {
            votes.took.render_labelled(
                page,
                name,
                &format!("verifier=\"{}\"", escape_label(verifier)),
            );
        }
        let name = "conclave_model_duration_seconds";
        write_head(
            page,
            name,
            "histogram",
            "How long the model took for a turn, over all attempts.",
        );
        for (provider, calls) in &providers {
            calls.took.render_labelled(
                page,
                name,
                &format!("provider=\"{}\"", escape_label(provider)),
            );
        }
        let name = "conclave_model_failures_total";
        write_head(page, name, "counter", "Candidates that did not come, by provider and reason.");
        for (provider, calls) in &providers {
            let provider = escape_label(provider);
            for (why, count) in FAILURES.iter().zip(&calls.failures) {
                let labels = format!("provider=\"{provider}\",why=\"{}\"", why.as_str());
                let _ = writeln!(page, "{name}{{{labels}}} {}", read_counter(count));
            }
        }
    }
}

/// A name from the configuration as a label's value.
fn escape_label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Abstention, Confidence, Priority, Seat};

    #[test]
    fn ballots_are_counted_by_what_they_say_and_names_have_a_limit() {
        let panels = PanelCounters::default();
        let confidence = Confidence::from_hundredths(90).unwrap();
        let seat = Seat::new("odd\"name", Priority::Low);
        for cast in [
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Abstained(Abstention::Late),
            Cast::NotApplicable,
        ] {
            panels.count_ballot(&Ballot::bare(seat.clone(), cast));
        }
        for other in 0..2 * NAMES_MAX {
            let seat = Seat::new(&format!("v{other}"), Priority::Low);
            panels.count_ballot(&Ballot::bare(seat, Cast::Voted { vote: Vote::Safe, confidence }));
        }
        let mut page = String::new();
        panels.render(&mut page);
        let line = |cast: &str, count: u8| {
            format!("conclave_ballots_total{{verifier=\"odd\\\"name\",cast=\"{cast}\"}} {count}\n")
        };
        assert!(page.contains(&line("harmful", 2)) && page.contains(&line("abstained", 1)));
        let names = page.lines().filter(|line| line.contains("cast=\"safe\"")).count();
        assert_eq!(names, NAMES_MAX);
    }
}
