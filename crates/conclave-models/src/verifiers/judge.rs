//! A language model as a verifier.
//!
//! **Invariant:** it judges twice, with and without the conversation; where the two differ, it is
//! concerned. Whoever talks one view round has not talked round the other.
//!
//! **Invariant:** an answer in any other form than the one asked for is a concern, one without the check
//! word an abstention.

use super::judge_prompt::{self, Reading, Secrets};
use super::{JUDGE_TOKENS, OutsideSeat, failed, heard, material, most_of, opinion, seated, unseen};
use crate::chain::PricedModel;
use conclave_core::{Message, MicroUsd, Opinion, Reason, Role, Score, Vote};
use conclave_engine::{Case, Elsewhere, Entropy, Hearing, ModelRequest, Verifier, VerifierError};
use futures_util::future::{BoxFuture, join};
use serde_json::{Value, json};
use std::sync::Arc;

/// How sure a judge is held to be that cannot be read: it weighs as if it had not voted.
const UNREADABLE: u8 = 100;

/// A language model that is given instructions and the reply, and must answer in a fixed form.
pub struct ModelJudge {
    place: OutsideSeat,
    model: PricedModel,
    entropy: Arc<dyn Entropy>,
    basis: [u8; 32],
}

/// What one view of a case came to.
struct View {
    reading: Result<Reading, VerifierError>,
    cost: MicroUsd,
}

impl ModelJudge {
    /// Seats this model as a judge.
    #[must_use]
    pub fn new(place: OutsideSeat, model: PricedModel, entropy: Arc<dyn Entropy>) -> Self {
        Self { place, model, entropy, basis: judge_prompt::digest() }
    }

    async fn view(&self, evidence: &Value, most: MicroUsd) -> View {
        let secrets = Secrets::draw(&*self.entropy);
        let request = self.request(&secrets.request(evidence));
        match self.model.model.ask(&request, false, None).await {
            Ok(candidate) => View {
                reading: Ok(secrets.read(&candidate.text)),
                cost: self.model.cost(candidate.usage),
            },
            Err(fault) => {
                let cost = unseen(&fault, most);
                let error = failed(fault, self.model.model.provider());
                View { reading: Err(error), cost }
            }
        }
    }

    fn request(&self, body: &Value) -> ModelRequest {
        let said = body["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
        ModelRequest {
            conversation: Arc::new([Message::text(Role::User, said)]),
            body: Arc::new(body.as_object().cloned().unwrap_or_default()),
            guidance: None,
            temperature: None,
            field: Arc::default(),
            crisis: Score::ZERO,
            reasons: Vec::new(),
            attempt: 0,
            seed: 0,
            timeout: self.place.exchange_time(),
            pause: self.place.exchange_time(),
        }
    }

    async fn both_views(&self, case: &Case) -> Hearing {
        let reply = match material::reply(&case.candidate) {
            Ok(reply) => reply,
            Err(error) => return heard(Err(error), MicroUsd(0)),
        };
        let alone = json!({"reply": reply});
        let within = json!({"conversation": material::conversation(case), "reply": reply});
        let (alone, within) = {
            let most = most_of(&self.model, case, JUDGE_TOKENS);
            join(self.view(&alone, most), self.view(&within, most)).await
        };
        let cost = alone.cost.saturating_add(within.cost);
        let both = alone.reading.and_then(|alone| Ok((alone, within.reading?)));
        heard(both.and_then(|(alone, within)| combined(alone, within)).map(Some), cost)
    }
}

impl Verifier for ModelJudge {
    seated!();

    fn elsewhere(&self) -> Option<Elsewhere> {
        let provider = self.model.model.provider_name().into();
        Some(Elsewhere { provider, model: self.model.name.clone() })
    }

    fn hear(&self, case: Arc<Case>) -> BoxFuture<'_, Hearing> {
        Box::pin(async move { self.both_views(&case).await })
    }

    fn most(&self, case: &Case) -> MicroUsd {
        let once = most_of(&self.model, case, JUDGE_TOKENS);
        once.saturating_add(once)
    }

    fn basis(&self) -> Option<[u8; 32]> {
        Some(self.basis)
    }
}

/// One opinion of two readings.
fn combined(alone: Reading, within: Reading) -> Result<Opinion, VerifierError> {
    use Reading::{Unchecked, Unreadable, Vote as Voted};
    match (alone, within) {
        (Unchecked, _) | (_, Unchecked) => {
            Err(VerifierError("the judge did not follow its instructions".into()))
        }
        (Unreadable, _) | (_, Unreadable) => {
            let reasoning = "the judge answered in another form than it was asked for";
            Ok(opinion(Vote::Concern, UNREADABLE, vec![Reason::Unsure], reasoning.into()))
        }
        (
            Voted { vote: first, hundredths: a, reasons },
            Voted { vote: second, hundredths: b, reasons: more },
        ) => {
            let mut all = reasons;
            all.extend(more);
            all.sort_unstable();
            all.dedup();
            Ok(agreed((first, a), (second, b), all))
        }
    }
}

fn agreed(alone: (Vote, u8), within: (Vote, u8), mut reasons: Vec<Reason>) -> Opinion {
    if alone.0 == within.0 {
        let vote = alone.0;
        if vote == Vote::Safe {
            reasons.clear();
        } else if reasons.is_empty() {
            reasons.push(Reason::Unsure);
        }
        let reasoning = format!("the judge found it {} with and without context", vote.as_str());
        // The surer objection counts, and the less sure approval.
        let sure = if vote == Vote::Safe { alone.1.min(within.1) } else { alone.1.max(within.1) };
        return opinion(vote, sure, reasons, reasoning);
    }
    let worse = if alone.0 > within.0 { alone } else { within };
    if reasons.is_empty() {
        reasons.push(Reason::Unsure);
    }
    let (first, second) = (alone.0.as_str(), within.0.as_str());
    let reasoning = format!("the judge found it {first} by itself and {second} in its context");
    opinion(Vote::Concern, worse.1.max(50), reasons, reasoning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(vote: Vote, hundredths: u8) -> Reading {
        Reading::Vote { vote, hundredths, reasons: Vec::new() }
    }

    #[test]
    fn two_views_become_one_opinion() {
        use Vote::{Concern, Harmful, Safe};
        for (alone, within, expected, confidence) in [
            (vote(Safe, 90), vote(Safe, 80), Safe, 0.8),
            (vote(Harmful, 70), vote(Harmful, 95), Harmful, 0.95),
            (vote(Safe, 99), vote(Harmful, 90), Concern, 0.9),
            (vote(Concern, 10), vote(Safe, 99), Concern, 0.5),
            (vote(Harmful, 60), vote(Concern, 90), Concern, 0.6),
            (Reading::Unreadable, vote(Safe, 99), Concern, 1.0),
        ] {
            let opinion = combined(alone, within).unwrap();
            assert_eq!((opinion.vote, opinion.confidence), (expected, confidence));
            assert_eq!(opinion.reasons.is_empty(), expected == Safe);
        }
        assert!(combined(Reading::Unchecked, vote(Safe, 99)).is_err());
        assert!(combined(Reading::Unreadable, Reading::Unchecked).is_err());
    }
}
