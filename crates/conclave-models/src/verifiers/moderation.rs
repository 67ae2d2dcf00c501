//! A service that speaks OpenAI's moderation interface.
//!
//! **Invariant:** scores become whole hundredths before they are compared.

use super::{OutsideSeat, failed, heard, material, opinion, seated, unseen};
use crate::hosted::Provider;
use crate::link::{Call, Received};
use conclave_core::{Category, MicroUsd, Opinion, Reason, Vote};
use conclave_engine::{Case, Elsewhere, Hearing, Verifier, VerifierError};
use futures_util::future::BoxFuture;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// From which score what the service flags is harmful rather than a concern.
const HARMFUL_FROM: u8 = 70;

/// Its categories, and what they are to us.
const CATEGORIES: [(&str, Category); 13] = [
    ("harassment", Category::Harassment),
    ("harassment/threatening", Category::Violence),
    ("hate", Category::Hate),
    ("hate/threatening", Category::Hate),
    ("illicit", Category::Fraud),
    ("illicit/violent", Category::Weapons),
    ("self-harm", Category::SelfHarm),
    ("self-harm/intent", Category::SelfHarm),
    ("self-harm/instructions", Category::SelfHarm),
    ("sexual", Category::Sexual),
    ("sexual/minors", Category::SexualMinors),
    ("violence", Category::Violence),
    ("violence/graphic", Category::Violence),
];

/// To speak of these is no harm: a reply that names suicide kindly is flagged by them.
const TOPICS: [&str; 3] = ["self-harm", "self-harm/intent", "violence/graphic"];

/// A moderation service as a verifier.
pub struct Moderation {
    place: OutsideSeat,
    provider: Provider,
    url: Url,
    model: String,
    price: MicroUsd,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Judged>,
}

#[derive(Deserialize)]
struct Judged {
    flagged: bool,
    categories: BTreeMap<String, bool>,
    category_scores: BTreeMap<String, f64>,
}

impl Moderation {
    /// Seats the moderation service of a provider; each call costs `price`.
    #[must_use]
    pub fn new(place: OutsideSeat, provider: Provider, model: &str, price: MicroUsd) -> Self {
        let url = provider.link.base().endpoint("moderations");
        Self { place, provider, url, model: model.to_owned(), price }
    }

    async fn ask(&self, case: &Case) -> Hearing {
        let text = match material::reply_text(&case.candidate) {
            Ok(text) => text,
            Err(error) => return heard(Err(error), MicroUsd(0)),
        };
        let body = json!({"model": self.model, "input": text}).to_string();
        let call = Call {
            url: &self.url,
            body: body.into(),
            time: self.place.exchange_time(),
            pause: self.place.exchange_time(),
            conversation: &case.conversation,
            is_again: false,
            betas: None,
            pieces: None,
        };
        match self.provider.link.ask(&call).await {
            Ok(Received::Body(_, bytes)) => heard(read(&bytes).map(Some), self.price),
            Ok(Received::Proposal(_)) => heard(Err(unreadable()), self.price),
            Err(fault) => {
                let cost = unseen(&fault, self.price);
                heard(Err(failed(fault, self.provider.name())), cost)
            }
        }
    }
}

impl Verifier for Moderation {
    seated!();

    fn elsewhere(&self) -> Option<Elsewhere> {
        let model = self.model.as_str().into();
        Some(Elsewhere { provider: self.provider.name().into(), model })
    }

    fn most(&self, case: &Case) -> MicroUsd {
        if case.candidate.is_silence() { MicroUsd(0) } else { self.price }
    }

    fn hear(&self, case: Arc<Case>) -> BoxFuture<'_, Hearing> {
        Box::pin(async move {
            if case.candidate.is_silence() {
                return heard(Ok(None), MicroUsd(0));
            }
            self.ask(&case).await
        })
    }
}

fn unreadable() -> VerifierError {
    VerifierError("the moderation service gave an answer that cannot be read".into())
}

fn read(bytes: &[u8]) -> Result<Opinion, VerifierError> {
    let answer: Answer = serde_json::from_slice(bytes).map_err(|_| unreadable())?;
    let [judged] = &answer.results[..] else {
        return Err(unreadable());
    };
    let scores: Option<BTreeMap<&str, u8>> = judged
        .category_scores
        .iter()
        .map(|(name, score)| Some((name.as_str(), hundredths(*score)?)))
        .collect();
    let scores = scores.ok_or_else(unreadable)?;
    if !judged.flagged {
        let highest = scores.values().copied().max().ok_or_else(unreadable)?;
        let reasoning = "the moderation service found nothing".into();
        return Ok(opinion(Vote::Safe, 100 - highest, Vec::new(), reasoning));
    }
    Ok(flagged(judged, &scores))
}

fn flagged(judged: &Judged, scores: &BTreeMap<&str, u8>) -> Opinion {
    let named = judged.categories.iter().filter(|(_, is_flagged)| **is_flagged);
    let named: Vec<&str> = named.map(|(name, _)| name.as_str()).collect();
    let score = |name: &&str| scores.get(name).copied().unwrap_or(100);
    let grave = named.iter().filter(|name| !TOPICS.contains(name)).map(score).max();
    // Flagged without saying as what is flagged all the same.
    let grave = if named.is_empty() { Some(100) } else { grave };
    let (vote, sure, reason) = match grave {
        Some(score) if score >= HARMFUL_FROM => (Vote::Harmful, score, Reason::HarmfulContent),
        Some(score) => (Vote::Concern, score.max(50), Reason::HarmfulContent),
        None => (Vote::Concern, 50, Reason::Unsure),
    };
    let ours = CATEGORIES.iter().filter(|(name, _)| named.contains(name));
    let mut patterns: Vec<_> = ours.map(|(_, ours)| ours.as_str().to_owned()).collect();
    patterns.dedup();
    let reasoning = format!("the moderation service flagged it: {}", patterns.join(", "));
    Opinion { flagged_patterns: patterns, ..opinion(vote, sure, vec![reason], reasoning) }
}

/// 0 to 1 as whole hundredths, rounded up; `None` for anything else.
fn hundredths(score: f64) -> Option<u8> {
    if !(0.0..=1.0).contains(&score) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let whole = (score * 100.0).ceil() as u8;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn answer(flagged: bool, scores: &Value) -> Value {
        let scores = scores.as_object().unwrap();
        let categories: BTreeMap<_, _> =
            scores.iter().map(|(name, score)| (name, score.as_f64() >= Some(0.5))).collect();
        json!({"id": "m", "results": [
            {"flagged": flagged, "categories": categories, "category_scores": scores}]})
    }

    #[test]
    fn scores_become_votes() {
        for (flagged, scores, vote, confidence) in [
            (false, json!({"hate": 0.011, "violence": 0.0}), Vote::Safe, 0.98),
            (true, json!({"hate": 0.95, "violence": 0.2}), Vote::Harmful, 0.95),
            (true, json!({"violence": 0.6}), Vote::Concern, 0.6),
            (true, json!({"self-harm": 0.99, "self-harm/intent": 0.9}), Vote::Concern, 0.5),
            (true, json!({"self-harm/instructions": 0.9}), Vote::Harmful, 0.9),
            (true, json!({"something-new": 0.9}), Vote::Harmful, 0.9),
            (true, json!({"hate": 0.1}), Vote::Harmful, 1.0),
        ] {
            let judged = read(answer(flagged, &scores).to_string().as_bytes()).unwrap();
            assert_eq!((judged.vote, judged.confidence), (vote, confidence), "{scores}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_vote() {
        for odd in [
            json!({}),
            json!({"results": []}),
            json!({"results": [{"flagged": false}]}),
            json!({"results": [{"flagged": false, "categories": {}, "category_scores": {}}]}),
            answer(false, &json!({"hate": -1.0})),
            answer(false, &json!({"hate": 1.5})),
        ] {
            assert!(read(odd.to_string().as_bytes()).is_err(), "{odd}");
        }
        assert!(read(b"<html>").is_err());
    }
}
