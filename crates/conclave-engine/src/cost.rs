//! What a turn cost, as far as its end was seen: every candidate at the price of whoever wrote it, and every
//! verifier that was paid.

use crate::decision::Choice;
use conclave_core::{Attempt, Candidate, MicroUsd, Usage};

/// The whole cost of a turn, as far as it is known; `price` is that of the model that was asked.
pub(crate) fn of_turn(choices: &[Choice], price: impl Fn(Usage) -> MicroUsd) -> MicroUsd {
    let attempts = choices.iter().flat_map(|choice| &choice.attempts);
    attempts.fold(MicroUsd(0), |sum, attempt| sum.saturating_add(of_attempt(attempt, &price)))
}

fn of_attempt(attempt: &Attempt, price: &impl Fn(Usage) -> MicroUsd) -> MicroUsd {
    let written = attempt.candidate.as_ref().map_or(MicroUsd(0), |one| of_candidate(one, price));
    let ballots = attempt.panels.iter().flat_map(|panel| &panel.ballots);
    ballots.fold(written, |sum, ballot| sum.saturating_add(ballot.cost))
}

fn of_candidate(candidate: &Candidate, price: &impl Fn(Usage) -> MicroUsd) -> MicroUsd {
    match &candidate.stand_in {
        // Its end was not seen, and is charged apart.
        _ if candidate.is_cut_off => MicroUsd(0),
        Some(stand_in) => stand_in.cost,
        None => price(candidate.usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{
        Ballot, Cast, GenerationFailure, Outcome, PanelRun, Priority, Scrutiny, Seat, StandIn,
        decide,
    };
    use std::time::Duration;

    fn attempt(stand_in: Option<StandIn>, judge_cost: u64) -> Attempt {
        let usage = Usage { input_tokens: 10, output_tokens: 5 };
        let seat = Seat::new("judge", Priority::Middle);
        let ballot =
            Ballot { cost: MicroUsd(judge_cost), ..Ballot::bare(seat, Cast::NotApplicable) };
        let consensus = decide(&[], Scrutiny::Normal.bars(), false);
        let panel = PanelRun { ballots: vec![ballot], consensus };
        let candidate = Ok(Candidate { usage, stand_in, ..Candidate::default() });
        Attempt { candidate, panels: vec![panel.clone(), panel] }
    }

    #[test]
    fn every_candidate_every_stand_in_and_every_panel_is_paid() {
        let price = |usage: Usage| MicroUsd(usage.input_tokens + 2 * usage.output_tokens);
        let stand_in = StandIn { model: "spare".into(), cost: MicroUsd(1_000) };
        let failed = Attempt { candidate: Err(GenerationFailure::Timeout), panels: Vec::new() };
        let choice = Choice {
            outcome: Outcome::Delivered,
            verdict: None,
            attempts: vec![attempt(None, 300), failed, attempt(Some(stand_in), 0)],
            delivered: Default::default(),
            model_time: Duration::ZERO,
            windows: Vec::new(),
        };
        assert_eq!(of_turn(&[choice], price), MicroUsd(20 + 600 + 1_000));
    }
}
