//! What a turn cost: every candidate at the price of whoever wrote it, and every verifier that was
//! paid.

use crate::decision::Choice;
use crate::ports::OfferedModel;
use conclave_core::{Attempt, Candidate, MicroUsd};

/// The whole cost of a turn for which this model was asked.
pub(crate) fn of_turn(choices: &[Choice], offered: &OfferedModel) -> MicroUsd {
    let attempts = choices.iter().flat_map(|choice| &choice.attempts);
    attempts.fold(MicroUsd(0), |sum, attempt| sum.saturating_add(of_attempt(attempt, offered)))
}

fn of_attempt(attempt: &Attempt, offered: &OfferedModel) -> MicroUsd {
    let written = attempt.candidate.as_ref().map_or(MicroUsd(0), |one| of_candidate(one, offered));
    let ballots = attempt.panels.iter().flat_map(|panel| &panel.ballots);
    ballots.fold(written, |sum, ballot| sum.saturating_add(ballot.cost))
}

fn of_candidate(candidate: &Candidate, offered: &OfferedModel) -> MicroUsd {
    match &candidate.stand_in {
        Some(stand_in) => stand_in.cost,
        None => offered.cost(candidate.usage),
    }
}
