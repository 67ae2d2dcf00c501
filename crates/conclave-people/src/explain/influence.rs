//! How much each sensor, verifier or guard had to do with what a person was told.
//!
//! **Invariant:** influences add up to one; whoever is taken away leaves their share to the others.

use super::correction::reasons_named;
use conclave_core::{Ballot, Cast, Outcome, Vote};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array, ballot_of};
use serde::Serialize;
use serde_json::Value as Json;

/// One influence on the reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contribution {
    /// Who.
    pub name: String,
    /// What it did there.
    pub part: ContributorKind,
    /// How much of the whole, 0 to 1.
    pub influence: f64,
    /// Why, in plain words.
    pub reasoning: String,
}

/// What a contributor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContributorKind {
    /// Listened to the person and shaped how the reply was to sound.
    Sensor,
    /// Judged whether it may be sent.
    Verifier,
    /// Stopped or answered the turn before a model was asked.
    Guard,
}

/// Everyone who had a part, sensors first. Those who shaped the reply and those who judged it share it
/// evenly, and among themselves by how much they sensed or how much their ballot weighed.
pub(super) fn contributions(
    stored: &StoredDecision,
    outcome: Option<Outcome>,
) -> Vec<Contribution> {
    let all = weigh_together(sensors(stored), verifiers(stored));
    if all.is_empty() { vec![guard(stored, outcome)] } else { all }
}

fn weigh_together(
    mut shaped: Vec<Contribution>,
    mut judged: Vec<Contribution>,
) -> Vec<Contribution> {
    let each = if shaped.is_empty() || judged.is_empty() { 1.0 } else { 0.5 };
    scale(&mut shaped, each);
    scale(&mut judged, each);
    shaped.extend(judged);
    shaped
}

/// Makes the influences of some add up to `whole`.
fn scale(some: &mut [Contribution], whole: f64) {
    let sum: f64 = some.iter().map(|one| one.influence).sum();
    for one in some {
        one.influence *= whole / sum;
    }
}

fn sensors(stored: &StoredDecision) -> Vec<Contribution> {
    let shares = stored.sensors().into_iter().map(|sensor| Contribution {
        name: sensor.name,
        part: ContributorKind::Sensor,
        influence: sensor.influence,
        reasoning: sensor.listened_for.into(),
    });
    shares.collect()
}

fn verifiers(stored: &StoredDecision) -> Vec<Contribution> {
    let ballots = last_panel(stored).map(|panel| array(panel.get("ballots"))).unwrap_or_default();
    let spoken = last_words(stored);
    ballots
        .iter()
        .filter_map(ballot_of)
        .filter(Ballot::counts)
        .map(|ballot| Contribution {
            name: ballot.seat.verifier.to_string(),
            part: ContributorKind::Verifier,
            influence: f64::from(ballot.seat.weight) * certainty(&ballot),
            reasoning: verdict(&ballot, &spoken),
        })
        .filter(|one| one.influence > 0.0)
        .collect()
}

/// How sure a ballot was; one that is missing counts in full against a reply.
fn certainty(ballot: &Ballot) -> f64 {
    match ballot.cast {
        Cast::Voted { confidence, .. } => f64::from(confidence.hundredths()) / 100.0,
        Cast::Abstained(_) => 1.0,
        Cast::Excused(_) | Cast::NotApplicable => 0.0,
    }
}

fn verdict(ballot: &Ballot, spoken: &Json) -> String {
    match ballot.cast {
        Cast::Voted { vote: Vote::Safe, .. } => "found nothing to object to".into(),
        Cast::Voted { .. } => {
            let said = spoken.as_array().into_iter().flatten();
            let own = said.into_iter().find(|said| said["verifier"] == *ballot.seat.verifier);
            let reasons = own.map(|own| reasons_named(&own["reasons"])).unwrap_or_default();
            let plain: Vec<_> = reasons.iter().map(|reason| reason.plain()).collect();
            match plain.as_slice() {
                [] => "objected to it".into(),
                some => format!("objected: it {}", some.join(", and it ")),
            }
        }
        Cast::Excused(_) => "could not be asked, and the decision was made without it".into(),
        Cast::Abstained(_) | Cast::NotApplicable => {
            "could not be asked, which counts against a reply".into()
        }
    }
}

fn guard(stored: &StoredDecision, outcome: Option<Outcome>) -> Contribution {
    let reasoning = match outcome {
        Some(Outcome::Blocked) => "read the request and stopped it before a model was asked",
        Some(Outcome::SafeCompletion) => "read the message and answered with care at once",
        _ if stored.is_erased() => "what shaped the reply was erased with its words",
        _ => "decided without a reply to shape",
    };
    Contribution {
        name: "interpretation".into(),
        part: ContributorKind::Guard,
        influence: 1.0,
        reasoning: reasoning.into(),
    }
}

/// The panel that had the last word.
pub(super) fn last_panel(stored: &StoredDecision) -> Option<&Value> {
    let attempts = array(stored.choices().first()?.get("attempts"));
    attempts.iter().rev().find_map(|attempt| array(attempt.get("panels")).last())
}

/// What its members said, as far as it was not erased.
fn last_words(stored: &StoredDecision) -> Json {
    let attempts = stored.choices().first().map_or(0, |one| array(one.get("attempts")).len());
    (0..attempts)
        .rev()
        .find_map(|attempt| stored.words(&format!("votes.0.{attempt}")))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, part: ContributorKind, influence: f64) -> Contribution {
        Contribution { name: name.into(), part, influence, reasoning: String::new() }
    }

    fn share_of(all: &[Contribution], name: &str) -> f64 {
        all.iter().find(|one| one.name == name).map_or(0.0, |one| one.influence)
    }

    #[test]
    fn whoever_is_taken_away_leaves_their_share_to_the_others() {
        let shaped = || {
            vec![
                one("longing", ContributorKind::Sensor, 0.3),
                one("fear", ContributorKind::Sensor, 0.1),
            ]
        };
        let judged = || {
            vec![
                one("crisis", ContributorKind::Verifier, 2.7),
                one("shadow", ContributorKind::Verifier, 0.9),
            ]
        };
        let all = weigh_together(shaped(), judged());
        let cases = [
            weigh_together(shaped().split_off(1), judged()),
            weigh_together(shaped(), judged().split_off(1)),
            weigh_together(Vec::new(), judged()),
            weigh_together(shaped(), Vec::new()),
        ];
        for fewer in &cases {
            let whole: f64 = fewer.iter().map(|one| one.influence).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{fewer:?}");
            assert_ne!(&all, fewer);
        }
        assert!(share_of(&cases[0], "fear") > share_of(&all, "fear"));
        assert!(share_of(&cases[1], "shadow") > share_of(&all, "shadow"));
    }
}
