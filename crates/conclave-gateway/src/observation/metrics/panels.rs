//! What verifiers voted and how long they and the models took.
//!
//! **Invariant:** label values are names from the configuration, at most [`NAMES_MAX`] of each kind.

use super::{Histogram, head, load};
use conclave_core::{Ballot, Cast, GenerationFailure, Vote};
use conclave_engine::Decision;
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
pub(super) struct Panels {
    verifiers: Named<Votes>,
    providers: Named<Calls>,
}

#[derive(Default)]
struct Votes {
    casts: [AtomicU64; CASTS.len()],
    took: Histogram,
}

#[derive(Default)]
struct Calls {
    failures: [AtomicU64; FAILURES.len()],
    took: Histogram,
}

/// Figures under names; names are added and never taken away.
struct Named<T>(RwLock<Vec<(Arc<str>, Arc<T>)>>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Default> Named<T> {
    fn of(&self, name: &Arc<str>) -> Option<Arc<T>> {
        let known = |all: &[(Arc<str>, Arc<T>)]| {
            all.iter().find(|(other, _)| other == name).map(|(_, figures)| figures.clone())
        };
        if let Some(found) = known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(found);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known(&all) {
            return Some(found);
        }
        (all.len() < NAMES_MAX).then(|| {
            let figures = Arc::<T>::default();
            all.push((name.clone(), figures.clone()));
            figures
        })
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let mut all = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

impl Panels {
    pub(super) fn decision(&self, decision: &Decision) {
        let attempts = || decision.choices.iter().flat_map(|choice| &choice.attempts);
        for run in attempts().flat_map(|attempt| &attempt.panels) {
            run.ballots.iter().for_each(|ballot| self.ballot(ballot));
        }
        if attempts().next().is_none() {
            return;
        }
        let Some(calls) = self.providers.of(&decision.provider) else { return };
        calls.took.observe(decision.model_time);
        for failure in attempts().filter_map(|attempt| attempt.candidate.as_ref().err()) {
            if let Some(at) = FAILURES.iter().position(|known| known == failure) {
                calls.failures[at].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn ballot(&self, ballot: &Ballot) {
        let at = match ballot.cast {
            Cast::Voted { vote: Vote::Safe, .. } => 0,
            Cast::Voted { vote: Vote::Concern, .. } => 1,
            Cast::Voted { vote: Vote::Harmful, .. } => 2,
            Cast::Abstained(_) => 3,
            Cast::Excused(_) => 4,
            Cast::NotApplicable => return,
        };
        if let Some(votes) = self.verifiers.of(&ballot.seat.verifier) {
            votes.casts[at].fetch_add(1, Ordering::Relaxed);
            votes.took.observe(Duration::from_millis(ballot.latency_ms.into()));
        }
    }

    pub(super) fn render(&self, page: &mut String) {
        let (verifiers, providers) = (self.verifiers.all(), self.providers.all());
        head(page, "conclave_ballots_total", "counter", "Ballots by verifier and what they say.");
        for (name, votes) in &verifiers {
            let name = escaped(name);
            for (cast, count) in CASTS.iter().zip(&votes.casts) {
                let count = load(count);
                let labels = format!("verifier=\"{name}\",cast=\"{cast}\"");
                let _ = writeln!(page, "conclave_ballots_total{{{labels}}} {count}");
            }
        }
        let name = "conclave_verifier_duration_seconds";
        head(page, name, "histogram", "How long each verifier took.");
        for (verifier, votes) in &verifiers {
            votes.took.render_labelled(page, name, &format!("verifier=\"{}\"", escaped(verifier)));
        }
        let name = "conclave_model_duration_seconds";
        head(page, name, "histogram", "How long the model took for a turn, over all attempts.");
        for (provider, calls) in &providers {
            calls.took.render_labelled(page, name, &format!("provider=\"{}\"", escaped(provider)));
        }
        let name = "conclave_model_failures_total";
        head(page, name, "counter", "Candidates that did not come, by provider and reason.");
        for (provider, calls) in &providers {
            let provider = escaped(provider);
            for (why, count) in FAILURES.iter().zip(&calls.failures) {
                let (why, count) = (why.as_str(), load(count));
                let _ = writeln!(page, "{name}{{provider=\"{provider}\",why=\"{why}\"}} {count}");
            }
        }
    }
}

/// A name from the configuration as a label's value.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Abstention, Confidence, Priority, Seat};

    #[test]
    fn ballots_are_counted_by_what_they_say_and_names_have_a_limit() {
        let panels = Panels::default();
        let confidence = Confidence::from_hundredths(90).unwrap();
        let seat = Seat::new("odd\"name", Priority::Low);
        for cast in [
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Voted { vote: Vote::Harmful, confidence },
            Cast::Abstained(Abstention::Late),
            Cast::NotApplicable,
        ] {
            panels.ballot(&Ballot::bare(seat.clone(), cast));
        }
        for other in 0..2 * NAMES_MAX {
            let seat = Seat::new(&format!("v{other}"), Priority::Low);
            panels.ballot(&Ballot::bare(seat, Cast::Voted { vote: Vote::Safe, confidence }));
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
