//! A program of one's own as a verifier: one POST, one small answer.

use super::{OutsideSeat, failed, heard, material, seated, unseen};
use crate::config::{ConfigError, ProviderConfig};
use crate::link::{Call, Link, Received};
use crate::ssrf::system_lookup;
use conclave_core::{MicroUsd, Opinion, Reason, Vote};
use conclave_engine::{Case, Elsewhere, Hearing, Verifier, VerifierError};
use futures_util::future::BoxFuture;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The version of the contract.
const VERSION: u8 = 1;
/// The most reasons an answer may have.
const REASONS_MAX: usize = 8;
/// How much of its reasoning is kept.
const REASONING_CHARS_MAX: usize = 1_000;
/// How many names of what it matched are kept, and how much of each.
const PATTERNS_MAX: usize = 16;
const PATTERN_CHARS_MAX: usize = 100;

/// A program at a URL as a verifier.
pub struct HttpVerifier {
    place: OutsideSeat,
    link: Link,
    url: Url,
    price: MicroUsd,
}

#[derive(Deserialize)]
struct Answer {
    vote: Vote,
    confidence: f64,
    #[serde(default)]
    reasons: Vec<Reason>,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    flagged_patterns: Vec<String>,
}

impl HttpVerifier {
    /// Seats the program at the configuration's base URL; each call costs `price`.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        place: OutsideSeat,
        config: ProviderConfig,
        price: MicroUsd,
    ) -> Result<Self, ConfigError> {
        let link = Link::new(config, system_lookup())?;
        let url = link.base().itself();
        Ok(Self { place, link, url, price })
    }

    async fn ask(&self, case: &Case) -> Hearing {
        let question = match question(case) {
            Ok(question) => question.to_string(),
            Err(error) => return heard(Err(error), MicroUsd(0)),
        };
        let call = Call {
            url: &self.url,
            body: question.into(),
            time: self.place.exchange_time(),
            pause: self.place.exchange_time(),
            conversation: &case.conversation,
            is_again: false,
            betas: None,
            pieces: None,
        };
        match self.link.ask(&call).await {
            Ok(Received::Body(StatusCode::NO_CONTENT, _)) => heard(Ok(None), self.price),
            Ok(Received::Body(_, bytes)) => heard(read(&bytes).map(Some), self.price),
            Ok(Received::Proposal(_)) => heard(Err(unreadable()), self.price),
            Err(fault) => {
                let cost = unseen(&fault, self.price);
                heard(Err(failed(fault, &self.link.config.name)), cost)
            }
        }
    }
}

impl Verifier for HttpVerifier {
    seated!();

    fn elsewhere(&self) -> Option<Elsewhere> {
        let name: Arc<str> = Arc::from(&*self.place.seat.verifier);
        Some(Elsewhere { provider: name.clone(), model: name })
    }

    fn most(&self, _case: &Case) -> MicroUsd {
        self.price
    }

    fn hear(&self, case: Arc<Case>) -> BoxFuture<'_, Hearing> {
        Box::pin(async move { self.ask(&case).await })
    }
}

fn question(case: &Case) -> Result<Value, VerifierError> {
    Ok(json!({
        "version": VERSION,
        "reply": material::reply(&case.candidate)?,
        "conversation": material::conversation(case),
        "context": case.context,
        "input": {"harm": case.input.harm, "crisis": case.input.crisis,
                  "injection": case.input.injection, "language": case.input.language},
    }))
}

fn unreadable() -> VerifierError {
    VerifierError("the answer is not what the contract says".into())
}

fn read(bytes: &[u8]) -> Result<Opinion, VerifierError> {
    let answer: Answer = serde_json::from_slice(bytes).map_err(|_| unreadable())?;
    if !(0.0..=1.0).contains(&answer.confidence) || answer.reasons.len() > REASONS_MAX {
        return Err(unreadable());
    }
    let cut = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
    let patterns = answer.flagged_patterns.iter().take(PATTERNS_MAX);
    Ok(Opinion {
        vote: answer.vote,
        confidence: answer.confidence,
        reasons: answer.reasons,
        reasoning: cut(&answer.reasoning, REASONING_CHARS_MAX),
        flagged_patterns: patterns.map(|name| cut(name, PATTERN_CHARS_MAX)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_within_its_bounds() {
        let long = "x".repeat(5_000);
        let answer = json!({
            "vote": "concern", "confidence": 0.75, "reasons": ["shames"], "reasoning": long,
            "flagged_patterns": vec![long.clone(); 50], "more": "ignored",
        });
        let opinion = read(answer.to_string().as_bytes()).unwrap();
        assert_eq!((opinion.vote, opinion.confidence), (Vote::Concern, 0.75));
        assert_eq!(opinion.reasons, [Reason::Shames]);
        assert_eq!(opinion.reasoning.len(), REASONING_CHARS_MAX);
        assert_eq!(opinion.flagged_patterns.len(), PATTERNS_MAX);
        assert!(read(br#"{"vote":"safe","confidence":1}"#).is_ok());
    }

    #[test]
    fn anything_else_is_no_vote() {
        for odd in [
            "",
            "safe",
            "{}",
            r#"{"vote":"safe"}"#,
            r#"{"vote":"fine","confidence":1}"#,
            r#"{"vote":"safe","confidence":1.01}"#,
            r#"{"vote":"safe","confidence":-0.1}"#,
            r#"{"vote":"safe","confidence":1e999}"#,
            r#"{"vote":"safe","confidence":"1"}"#,
            r#"{"vote":"concern","confidence":1,"reasons":["unheard_of"]}"#,
        ] {
            assert!(read(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
