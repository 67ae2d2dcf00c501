//! Seats on the panel and the ballots cast from them.

use crate::{Confidence, MicroUsd, Reason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a verifier says of a reply, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// May leave.
    Safe,
    /// Something is not right.
    Concern,
    /// Would hurt someone.
    Harmful,
}

impl Vote {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Concern => "concern",
            Self::Harmful => "harmful",
        }
    }
}

/// How grave a verifier's field is, 1 to 3; decides its veto, and its weight unless data says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Priority {
    /// 1.
    Low = 1,
    /// 2.
    Middle = 2,
    /// 3.
    High = 3,
}

impl Priority {
    /// The confidence in hundredths from which `harmful` is a veto.
    #[must_use]
    pub const fn veto_from(self) -> u8 {
        match self {
            Self::High => 70,
            Self::Low | Self::Middle => 90,
        }
    }

    /// 1 to 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// From 1 to 3.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Low),
            2 => Some(Self::Middle),
            3 => Some(Self::High),
            _ => None,
        }
    }
}

/// One place on the panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The verifier's name; one seat each.
    pub verifier: Arc<str>,
    /// How grave its field is.
    pub priority: Priority,
    /// Its weight in the sum.
    pub weight: u16,
    /// Nothing is delivered without its vote.
    pub required: bool,
    /// Recorded, never counted.
    pub monitor: bool,
}

impl Seat {
    /// The verifier whose word on a person in danger nobody outvotes.
    pub const CRISIS: &'static str = "crisis";
    /// The verifier that judges what an action would do. It sits only where there is one.
    pub const COUNTERFACTUAL: &'static str = "counterfactual";
    /// The seat of the directives' floor. Nobody sits there until it stops a reply, and no
    /// configuration knows it: it can be neither weighed nor watched nor left out.
    pub const FLOOR: &'static str = "floor";

    /// A seat weighted by its priority; Crisis is always required.
    #[must_use]
    pub fn new(verifier: &str, priority: Priority) -> Self {
        Self {
            verifier: verifier.into(),
            priority,
            weight: u16::from(priority.number()),
            required: verifier == Self::CRISIS,
            monitor: false,
        }
    }
}

/// What a verifier answered, before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// Its vote.
    pub vote: Vote,
    /// Its confidence as claimed; may be nonsense.
    pub confidence: f64,
    /// What it objects to.
    pub reasons: Vec<Reason>,
    /// In words a person can act on.
    pub reasoning: String,
    /// The names of what it matched.
    pub flagged_patterns: Vec<String>,
}

/// Why a seated verifier gave no valid vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abstention {
    /// It answered with an error.
    Failed,
    /// Its time ran out.
    Late,
    /// It crashed.
    Panicked,
    /// Its confidence was no number within 0..=1.
    Invalid,
    /// It voted more than once.
    Duplicate,
}

impl Abstention {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Late => "late",
            Self::Panicked => "panicked",
            Self::Invalid => "invalid",
            Self::Duplicate => "duplicate",
        }
    }
}

/// What stands on a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cast {
    /// A valid vote.
    Voted {
        /// The vote.
        vote: Vote,
        /// How sure.
        confidence: Confidence,
    },
    /// Seated, but no valid vote: counts against delivery.
    Abstained(Abstention),
    /// Seated, but no valid vote, and the operator said to go on without it: counts for nothing.
    Excused(Abstention),
    /// Not seated for this candidate: counts for nothing.
    NotApplicable,
}

/// One verifier's ballot on one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ballot {
    /// Whose.
    pub seat: Seat,
    /// What.
    pub cast: Cast,
    /// Objections from the catalogue.
    pub reasons: Vec<Reason>,
    /// In words a person can act on.
    pub reasoning: String,
    /// The names of what it matched.
    pub flagged_patterns: Vec<String>,
    /// How long it took.
    pub latency_ms: u32,
    /// What asking it cost.
    #[serde(default)]
    pub cost: MicroUsd,
    /// The digest of the fixed instructions it judged by, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<[u8; 32]>,
}

impl Ballot {
    /// A ballot without words, as tests and replays need it.
    #[must_use]
    pub fn bare(seat: Seat, cast: Cast) -> Self {
        Self {
            seat,
            cast,
            reasons: Vec::new(),
            reasoning: String::new(),
            flagged_patterns: Vec::new(),
            latency_ms: 0,
            cost: MicroUsd(0),
            basis: None,
        }
    }

    /// Whether the directives' floor stops the reply by it, however the seat is marked.
    #[must_use]
    pub fn is_floor(&self) -> bool {
        *self.seat.verifier == *Seat::FLOOR
            && matches!(self.cast, Cast::Voted { vote: Vote::Harmful, .. })
    }

    /// Whether it takes part in the sum.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.seat.monitor && !matches!(self.cast, Cast::NotApplicable | Cast::Excused(_))
    }

    /// The ballot of a verifier without which the operator wants to go on: one that gave no valid
    /// vote is left out of the sum. A required verifier is never excused.
    #[must_use]
    pub fn excused(self) -> Self {
        match self.cast {
            Cast::Abstained(cause) if !self.seat.required => {
                Self { cast: Cast::Excused(cause), ..self }
            }
            _ => self,
        }
    }

    /// Whether it is a `harmful` strong enough to stop everything.
    #[must_use]
    pub fn is_veto(&self) -> bool {
        self.counts()
            && matches!(self.cast, Cast::Voted { vote: Vote::Harmful, confidence }
                if confidence.hundredths() >= self.seat.priority.veto_from())
    }

    /// Whether it objects.
    #[must_use]
    pub fn dissents(&self) -> bool {
        self.counts() && matches!(self.cast, Cast::Voted { vote, .. } if vote != Vote::Safe)
    }
}

/// Makes ballots of answers: quantises confidences, and turns what is invalid into abstentions.
#[must_use]
pub fn intake(seat: Seat, answer: Result<Option<Opinion>, Abstention>, latency_ms: u32) -> Ballot {
    let opinion = match answer {
        Ok(Some(opinion)) => opinion,
        Ok(None) => {
            return Ballot { latency_ms, ..Ballot::bare(seat, Cast::NotApplicable) };
        }
        Err(cause) => {
            return Ballot { latency_ms, ..Ballot::bare(seat, Cast::Abstained(cause)) };
        }
    };
    let cast = match Confidence::quantise(opinion.confidence) {
        Some(confidence) => Cast::Voted { vote: opinion.vote, confidence },
        None => Cast::Abstained(Abstention::Invalid),
    };
    Ballot {
        reasons: opinion.reasons,
        reasoning: opinion.reasoning,
        flagged_patterns: opinion.flagged_patterns,
        latency_ms,
        ..Ballot::bare(seat, cast)
    }
}

/// Whoever voted more than once has not voted: its ballots become one abstention at its largest weight.
pub(crate) fn one_each(ballots: &[Ballot]) -> Vec<Ballot> {
    let mut by_name: BTreeMap<&str, Vec<&Ballot>> = BTreeMap::new();
    for ballot in ballots.iter().filter(|ballot| ballot.counts()) {
        by_name.entry(&ballot.seat.verifier).or_default().push(ballot);
    }
    by_name.into_values().filter_map(sole_or_void).collect()
}

fn sole_or_void(mut same: Vec<&Ballot>) -> Option<Ballot> {
    same.sort_by_key(|ballot| (ballot.seat.weight, ballot.seat.priority, ballot.seat.required));
    let heaviest = (*same.last()?).clone();
    if same.len() == 1 {
        return Some(heaviest);
    }
    Some(Ballot { cast: Cast::Abstained(Abstention::Duplicate), ..heaviest })
}
