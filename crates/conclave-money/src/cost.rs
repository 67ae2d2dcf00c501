//! What a turn cost, as far as its end was seen: every candidate at the price of whoever wrote it, and every
//! verifier that was paid.

use conclave_core::{Attempt, Candidate, MicroUsd};
use conclave_govern::Price;

/// What these attempts cost, as far as it is known; `price` is that of the model that was asked.
#[must_use]
pub fn cost_of_attempts<'a>(
    attempts: impl IntoIterator<Item = &'a Attempt>,
    price: &Price,
) -> MicroUsd {
    let each = attempts.into_iter().map(|attempt| cost_of_attempt(attempt, price));
    each.fold(MicroUsd(0), MicroUsd::saturating_add)
}

fn cost_of_attempt(attempt: &Attempt, price: &Price) -> MicroUsd {
    let written =
        attempt.candidate.as_ref().map_or(MicroUsd(0), |one| cost_of_candidate(one, price));
    let ballots = attempt.panels.iter().flat_map(|panel| &panel.ballots);
    ballots.fold(written, |sum, ballot| sum.saturating_add(ballot.cost))
}

fn cost_of_candidate(candidate: &Candidate, price: &Price) -> MicroUsd {
    match &candidate.stand_in {
        // Its end was not seen: whoever asked charges the most that it can have cost.
        _ if candidate.is_cut_off => MicroUsd(0),
        Some(stand_in) => stand_in.cost,
        None => price.cost(candidate.usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{
        Ballot, Cast, GenerationFailure, PanelRun, Priority, Scrutiny, Seat, StandIn, Usage, decide,
    };
    use conclave_govern::Usd;

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
        let price = Price {
            input_usd_per_million: Usd(MicroUsd(1_000_000)),
            output_usd_per_million: Usd(MicroUsd(2_000_000)),
            output_tokens_max: None,
        };
        let stand_in = StandIn { model: "spare".into(), cost: MicroUsd(1_000) };
        let failed = Attempt { candidate: Err(GenerationFailure::Timeout), panels: Vec::new() };
        let attempts = [attempt(None, 300), failed, attempt(Some(stand_in), 0)];
        assert_eq!(cost_of_attempts(&attempts, &price), MicroUsd(20 + 600 + 1_000));
    }
}
