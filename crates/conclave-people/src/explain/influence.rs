//! How much each sensor, verifier or guard had to do with what a person was told.
//!
//! **Invariant:** influences add up to one; whoever is taken away leaves their share to the others.

use super::correction::reasons_named;
use super::guard_rows::{GuardRow, stopping_guard};
use super::last_ballots;
use conclave_core::{Ballot, Cast, Disposition, Outcome, Phase, Reason, Vote};
use conclave_ledger::Value;
use conclave_ports::{SensorShare, StoredDecision, array, ballot_of};
use conclave_voice::{ContributionPhrase, FixedPhrase, Language, reason_phrase, sensor_phrase};
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
    /// Why, in plain words of the person's language.
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
    /// Stopped it, had it wait, or answered at once.
    Guard,
}

/// Everyone who had a part, sensors first. Those who shaped the reply have at most half of it: as much of that
/// half as the one who heard most heard. Those who judged it have the rest. Among themselves they share by how
/// much they sensed or how much their ballot weighed. Where a guard stopped it, that guard alone decided what
/// the person was told.
pub(super) fn contributions(stored: &StoredDecision, language: Language) -> Vec<Contribution> {
    let outcome = Outcome::parse(stored.text("outcome"));
    if let Some(row) = stopping_guard(stored, outcome) {
        return vec![guard(row.guard, stop_phrase(row), language)];
    }
    let sensed = stored.sensors();
    let strongest = sensed.iter().map(|one| one.intensity).fold(0.0, f64::max);
    let all = weigh_together(told(sensed, language), verifiers(stored, language), strongest);
    if all.is_empty() {
        return vec![guard("interpretation", lone_phrase(stored, outcome), language)];
    }
    all
}

fn weigh_together(
    mut shaped: Vec<Contribution>,
    mut judged: Vec<Contribution>,
    strongest: f64,
) -> Vec<Contribution> {
    let shape = match (shaped.is_empty(), judged.is_empty()) {
        (true, _) => 0.0,
        (false, true) => 1.0,
        (false, false) => strongest.clamp(0.0, 1.0) / 2.0,
    };
    scale(&mut shaped, shape);
    scale(&mut judged, 1.0 - shape);
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

fn told(sensed: Vec<SensorShare>, language: Language) -> Vec<Contribution> {
    let shares = sensed.into_iter().map(|sensor| Contribution {
        name: sensor.name,
        part: ContributorKind::Sensor,
        influence: sensor.influence,
        reasoning: sensor_phrase(sensor.sensor, language).to_owned(),
    });
    shares.collect()
}

fn verifiers(stored: &StoredDecision, language: Language) -> Vec<Contribution> {
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
            reasoning: verdict(&ballot, &spoken, language).in_language(language),
        })
        .filter(|one| one.influence > 0.0)
        .collect()
}

/// How a verifier of the last panel voted, for whoever decides about the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PanelVote {
    /// Who.
    pub verifier: String,
    /// `safe`, `concern` or `harmful`; otherwise why there is none.
    pub vote: &'static str,
    /// How sure, in hundredths.
    pub confidence: Option<u8>,
    /// Whether it alone stops a reply.
    pub veto: bool,
    /// Its reasons, in plain words.
    pub reasons: Vec<String>,
}

/// How the last panel voted, with reasons as far as they were not erased.
#[must_use]
pub fn panel_votes(stored: &StoredDecision, language: Language) -> Vec<PanelVote> {
    let spoken = last_words(stored);
    let vote = |ballot: Ballot| {
        let (vote, confidence) = match ballot.cast {
            Cast::Voted { vote, confidence } => (vote.as_str(), Some(confidence.hundredths())),
            Cast::Abstained(_) => ("abstained", None),
            Cast::Excused(_) => ("excused", None),
            Cast::NotApplicable => ("not_applicable", None),
        };
        let reasons = reasons_of(&ballot, &spoken).into_iter();
        PanelVote {
            verifier: ballot.seat.verifier.to_string(),
            vote,
            confidence,
            veto: ballot.is_veto(),
            reasons: reasons.map(|one| reason_phrase(one, language).to_owned()).collect(),
        }
    };
    last_ballots(stored).into_iter().map(vote).collect()
}

/// What a verifier objected to, by its own word.
fn reasons_of(ballot: &Ballot, spoken: &Json) -> Vec<Reason> {
    let said = spoken.as_array().into_iter().flatten();
    let own = said.into_iter().find(|said| said["verifier"] == *ballot.seat.verifier);
    own.map(|own| reasons_named(&own["reasons"])).unwrap_or_default()
}

/// How sure a ballot was; one that is missing counts in full against a reply.
fn certainty(ballot: &Ballot) -> f64 {
    match ballot.cast {
        Cast::Voted { confidence, .. } => f64::from(confidence.hundredths()) / 100.0,
        Cast::Abstained(_) => 1.0,
        Cast::Excused(_) | Cast::NotApplicable => 0.0,
    }
}

fn verdict(ballot: &Ballot, spoken: &Json, language: Language) -> ContributionPhrase {
    match ballot.cast {
        Cast::Voted { vote: Vote::Safe, .. } => FixedPhrase::FoundNothing.into(),
        Cast::Voted { .. } => {
            let reasons = reasons_of(ballot, spoken);
            if reasons.is_empty() {
                return FixedPhrase::ObjectedToIt.into();
            }
            let phrases = reasons.into_iter().map(|one| reason_phrase(one, language).to_owned());
            ContributionPhrase::Objected(phrases.collect())
        }
        Cast::Excused(_) => FixedPhrase::Excused.into(),
        Cast::Abstained(_) | Cast::NotApplicable => FixedPhrase::Missing.into(),
    }
}

fn stop_phrase(row: GuardRow<'_>) -> FixedPhrase {
    match row.disposition {
        Disposition::Held => FixedPhrase::HeldForPeople,
        Disposition::Failed => FixedPhrase::CouldNotLook,
        _ if row.phase == Phase::After.as_str() => FixedPhrase::StoppedReply,
        _ => FixedPhrase::StoppedRequest,
    }
}

/// What there is to say where nobody shaped, judged or stopped anything.
fn lone_phrase(stored: &StoredDecision, outcome: Option<Outcome>) -> FixedPhrase {
    match outcome {
        Some(Outcome::Blocked) => FixedPhrase::StoppedRequest,
        Some(Outcome::SafeCompletion) if stored.number("attempts") == 0 => {
            FixedPhrase::AnsweredWithCare
        }
        _ if stored.is_erased() => FixedPhrase::ErasedShape,
        _ => FixedPhrase::NothingToShape,
    }
}

fn guard(name: &str, phrase: FixedPhrase, language: Language) -> Contribution {
    Contribution {
        name: name.to_owned(),
        part: ContributorKind::Guard,
        influence: 1.0,
        reasoning: phrase.in_language(language).to_owned(),
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
        let all = weigh_together(shaped(), judged(), 0.8);
        let cases = [
            weigh_together(shaped().split_off(1), judged(), 0.8),
            weigh_together(shaped(), judged().split_off(1), 0.8),
            weigh_together(Vec::new(), judged(), 0.0),
            weigh_together(shaped(), Vec::new(), 0.8),
        ];
        for fewer in &cases {
            let whole: f64 = fewer.iter().map(|one| one.influence).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{fewer:?}");
            assert_ne!(&all, fewer);
        }
        assert!(share_of(&cases[0], "fear") > share_of(&all, "fear"));
        let faint = weigh_together(shaped(), judged(), 0.2);
        assert!(share_of(&faint, "longing") < share_of(&all, "longing"), "heard less, moved less");
        assert!(share_of(&cases[1], "shadow") > share_of(&all, "shadow"));
    }
}
