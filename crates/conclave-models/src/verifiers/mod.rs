//! Verifiers that are asked over the network: a language model as a judge, a guard model, a moderation
//! service, a program of one's own.
//!
//! **Invariant:** an answer that is missing, late or not understood is never a safe vote.
//!
//! **Invariant:** what is judged is data to whoever judges: it is sent as a JSON value or a message of
//! its own, never as part of an instruction.
//!
//! **Invariant:** what such a verifier writes reaches nobody's prompt: its objections are reasons of the
//! catalogue, its words go into the sealed part of the record, cut to a length.

mod guard;
mod http;
mod judge;
mod judge_prompt;
mod material;
mod moderation;

pub use guard::{GuardModel, GuardTemplate};
pub use http::HttpVerifier;
pub use judge::ModelJudge;
pub use moderation::Moderation;

use crate::chain::PricedModel;
use crate::fault::Fault;
use conclave_core::{GenerationFailure, MicroUsd, Opinion, Reason, Seat, Usage, Vote};
use conclave_engine::{Case, Hearing, VerifierError, WhenFailing};
use std::time::Duration;

/// Where a verifier sits, how long it may take, and what its silence counts as.
#[derive(Clone, Debug)]
pub struct OutsideSeat {
    /// Its place on the panel.
    pub seat: Seat,
    /// How long it may take.
    pub timeout: Duration,
    /// What a failure counts as.
    pub when_failing: WhenFailing,
    /// Whether it is also asked about people who are long known and calm.
    pub always: bool,
}

impl OutsideSeat {
    /// How long an exchange may take: a little less, so that the link learns of whoever hangs and leaves
    /// them alone for a while, before the panel gives up.
    fn exchange_time(&self) -> Duration {
        self.timeout - self.timeout / 20
    }
}

/// An opinion without words of others in it.
fn opinion(vote: Vote, hundredths: u8, reasons: Vec<Reason>, reasoning: String) -> Opinion {
    Opinion {
        vote,
        confidence: f64::from(hundredths.min(100)) / 100.0,
        reasons,
        reasoning,
        flagged_patterns: Vec::new(),
    }
}

fn failed(fault: Fault, provider: &str) -> VerifierError {
    VerifierError(fault.into_error(provider).message)
}

/// What a judge is told besides the turn and the reply, and what it may answer, in tokens.
pub const JUDGE_TOKENS: (u64, u64) = (8_192, 300);
/// The same for a guard model.
pub const GUARD_TOKENS: (u64, u64) = (4_096, 32);

/// The most that one call of a model about a case can cost: a token for each byte that was said, what the
/// reply has, and what the verifier itself adds and answers.
fn most_of(model: &PricedModel, case: &Case, (told, answered): (u64, u64)) -> MicroUsd {
    let said: usize = case.conversation.iter().map(|one| one.content.as_text().len()).sum();
    let said = u64::try_from(said).unwrap_or(u64::MAX);
    let read = said.saturating_add(case.candidate.usage.output_tokens).saturating_add(told);
    model.cost(Usage { input_tokens: read, output_tokens: answered })
}

/// What a call that failed is charged with: the most, where it may have been answered and nobody saw it.
const fn unseen(fault: &Fault, most: MicroUsd) -> MicroUsd {
    match fault.failure {
        GenerationFailure::Timeout | GenerationFailure::Invalid | GenerationFailure::TooLarge => {
            most
        }
        _ => MicroUsd(0),
    }
}

const fn heard(answer: Result<Option<Opinion>, VerifierError>, cost: MicroUsd) -> Hearing {
    Hearing { answer, cost }
}

/// The port's methods that are the same for all of them: the seat says it.
macro_rules! seated {
    () => {
        fn seat(&self) -> &conclave_core::Seat {
            &self.place.seat
        }

        fn timeout(&self) -> std::time::Duration {
            self.place.timeout
        }

        fn when_failing(&self) -> conclave_engine::WhenFailing {
            self.place.when_failing
        }

        fn may_be_spared(&self) -> bool {
            // What is only watched is watched with everybody.
            let seat = &self.place.seat;
            !self.place.always && !seat.required && !seat.monitor
        }

        fn judge(
            &self,
            case: std::sync::Arc<conclave_engine::Case>,
        ) -> futures_util::future::BoxFuture<
            '_,
            Result<Option<conclave_core::Opinion>, conclave_engine::VerifierError>,
        > {
            Box::pin(async move { self.hear(case).await.answer })
        }
    };
}
use seated;
