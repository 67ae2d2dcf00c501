//! One reply's way from nothing to a verdict, as a state machine.
//!
//! **Invariant:** it ends: every answer it is given either finishes it or uses up one of
//! [`Limits::attempts_max`] attempts, each of which runs its panel at most twice.
//! **Invariant:** it delivers only a candidate whose last panel delivered.

use crate::consensus::{Consensus, decide};
use crate::{Ballot, Bars, Candidate, Reason};
use serde::{Deserialize, Serialize};

/// What bounds a deliberation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Candidates that may be asked for.
    pub attempts_max: u8,
    /// What a consensus must reach.
    pub bars: Bars,
    /// Whether the person is in crisis.
    pub crisis: bool,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the model; tell it what was wrong before.
    Generate {
        /// From 0.
        attempt: u8,
        /// From the catalogue, gravest verifier first.
        reasons: Vec<Reason>,
    },
    /// Put the last candidate before the panel.
    Verify {
        /// From 0.
        attempt: u8,
    },
    /// It is decided.
    Finish(Verdict),
}

/// How a deliberation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This attempt's candidate may leave.
    Deliver {
        /// From 0.
        attempt: u8,
    },
    /// Nothing may leave.
    Withhold(Withheld),
}

/// Why nothing may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// A person must look: a veto fell, or dissent prevailed to the end.
    Escalated,
    /// No attempt was good enough.
    Exhausted,
    /// The panel never stood.
    GuardUnavailable,
    /// The model gave no candidate at all.
    Failed(GenerationFailure),
}

/// Why a model gave no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GenerationFailure {
    /// It did not answer in time.
    Timeout,
    /// It could not be reached.
    Unreachable,
    /// It answered with an error.
    Refused,
    /// It answered with something that is no reply.
    Invalid,
    /// Its answer was too large.
    TooLarge,
}

impl GenerationFailure {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::TooLarge => "too_large",
        }
    }
}

/// One run of the panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelRun {
    /// Who voted what.
    pub ballots: Vec<Ballot>,
    /// What it came to.
    pub consensus: Consensus,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// What the model proposed, or why it did not.
    pub candidate: Result<Candidate, GenerationFailure>,
    /// One run of the panel, or two if the first did not stand.
    pub panels: Vec<PanelRun>,
}

impl Attempt {
    fn last_panel(&self) -> Option<&PanelRun> {
        self.panels.last()
    }
}

/// The state machine.
#[derive(Clone, Debug)]
pub struct Deliberation {
    limits: Limits,
    attempts: Vec<Attempt>,
    expired: bool,
}

/// How many reasons the next prompt carries at most.
const REASONS_MAX: usize = 6;

impl Deliberation {
    /// Nothing asked yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, attempts: Vec::new(), expired: false }
    }

    /// What is to be done next; asking twice gives the same answer.
    #[must_use]
    pub fn next(&self) -> Step {
        let Some(last) = self.attempts.last() else {
            return if self.expired { self.give_up() } else { self.generate() };
        };
        match (&last.candidate, last.last_panel()) {
            (Ok(_), Some(panel)) if panel.consensus.delivers() => {
                Step::Finish(Verdict::Deliver { attempt: self.last_index() })
            }
            (Ok(_), None) if !self.expired => Step::Verify { attempt: self.last_index() },
            (Ok(_), Some(panel))
                if !self.expired && !panel.consensus.stood() && last.panels.len() < 2 =>
            {
                Step::Verify { attempt: self.last_index() }
            }
            // A model that is down is not asked again in vain; one that was slow may be.
            (Err(failure), _) if *failure != GenerationFailure::Timeout => self.give_up(),
            _ if self.expired || self.attempts.len() >= usize::from(self.limits.attempts_max) => {
                self.give_up()
            }
            _ => self.generate(),
        }
    }

    /// The model answered a [`Step::Generate`].
    pub fn generated(&mut self, candidate: Result<Candidate, GenerationFailure>) {
        self.attempts.push(Attempt { candidate, panels: Vec::new() });
    }

    /// The panel answered a [`Step::Verify`].
    pub fn verified(&mut self, ballots: Vec<Ballot>) {
        let consensus = decide(&ballots, self.limits.bars, self.limits.crisis);
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.panels.push(PanelRun { ballots, consensus });
        }
    }

    /// The turn's time is over: what is not delivered by now will not be.
    pub const fn expire(&mut self) {
        self.expired = true;
    }

    /// Everything that happened.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The candidate last proposed, if the last attempt gave one.
    #[must_use]
    pub fn last_candidate(&self) -> Option<&Candidate> {
        self.attempts.last()?.candidate.as_ref().ok()
    }

    /// Everything that happened, given away.
    #[must_use]
    pub fn into_attempts(self) -> Vec<Attempt> {
        self.attempts
    }

    fn last_index(&self) -> u8 {
        u8::try_from(self.attempts.len().saturating_sub(1)).unwrap_or(u8::MAX)
    }

    fn generate(&self) -> Step {
        let attempt = u8::try_from(self.attempts.len()).unwrap_or(u8::MAX);
        Step::Generate { attempt, reasons: self.objections() }
    }

    fn objections(&self) -> Vec<Reason> {
        let Some(panel) = self.attempts.last().and_then(Attempt::last_panel) else {
            return Vec::new();
        };
        let mut dissenters: Vec<_> = panel.ballots.iter().filter(|b| b.dissents()).collect();
        dissenters.sort_by_key(|ballot| std::cmp::Reverse(ballot.seat.priority));
        let mut reasons = Vec::new();
        for &reason in dissenters.iter().flat_map(|ballot| &ballot.reasons) {
            if !reasons.contains(&reason) && reasons.len() < REASONS_MAX {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// Veto first, because a person must hear of it even if the panel later fell silent; then a panel
    /// that never stood, because its score of 0 says nothing about the reply; then the score.
    fn give_up(&self) -> Step {
        let panels = || self.attempts.iter().flat_map(|attempt| &attempt.panels);
        let last = self.attempts.iter().rev().find_map(Attempt::last_panel);
        let withheld = if panels().any(|panel| !panel.consensus.vetoes.is_empty()) {
            Withheld::Escalated
        } else if let Some(last) = last {
            if !panels().any(|panel| panel.consensus.stood()) {
                Withheld::GuardUnavailable
            } else if last.consensus.is_mostly_dissent() {
                Withheld::Escalated
            } else {
                Withheld::Exhausted
            }
        } else {
            match self.attempts.last().map(|attempt| &attempt.candidate) {
                Some(Err(failure)) => Withheld::Failed(*failure),
                Some(Ok(_)) => Withheld::GuardUnavailable,
                None => Withheld::Failed(GenerationFailure::Timeout),
            }
        };
        Step::Finish(Verdict::Withhold(withheld))
    }
}

#[cfg(test)]
#[path = "deliberation_tests.rs"]
mod tests;
