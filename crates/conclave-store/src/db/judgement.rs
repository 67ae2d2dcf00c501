//! What the query tables say about how a decision was judged: votes, consensus, drift, as JSON.
//!
//! **Invariant:** everything here stands in the leaf, so it holds numbers and names of closed lists,
//! never words, and can be derived again when the words are gone.

use conclave_ledger::{Leaf, Value};
use serde_json::{Value as Json, json};

/// The part of a row that says how it was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The votes of the last panel of each choice.
    pub(crate) verifying_agents: String,
    /// What they came to.
    pub(crate) consensus_result: String,
    /// Which drifts stood when it was decided.
    pub(crate) drift_alerts: String,
    /// How often the person had spoken in this conversation.
    pub(crate) exchange_count: Option<i64>,
    /// Digests of the policy and the directives in force.
    pub(crate) policy: [u8; 32],
    pub(crate) directives: [u8; 32],
}

impl Judgement {
    /// What a leaf says; what it lacks, because another version wrote it, is empty.
    pub(crate) fn of(leaf: &Leaf) -> Self {
        let public = &leaf.draft.public;
        let exchange = public.get("exchange").and_then(Value::as_u64);
        Self {
            verifying_agents: Json::Array(votes(public)).to_string(),
            consensus_result: consensus(public).to_string(),
            drift_alerts: Json::Array(drifts(public)).to_string(),
            exchange_count: exchange.map(super::columns::column),
            policy: leaf.draft.policy,
            directives: leaf.draft.directives,
        }
    }
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

/// The panel that had the last word on a choice.
fn last_panel(choice: &Value) -> Option<&Value> {
    items(choice, "attempts").iter().rev().find_map(|attempt| items(attempt, "panels").last())
}

/// A number of hundredths, or of ten-thousandths, as people write it.
fn fraction(number: u64, of: u32) -> Json {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    json!(f64::from(number) / f64::from(of))
}

fn plain(value: Option<&Value>) -> Json {
    match value {
        Some(Value::Uint(number)) => json!(number),
        Some(Value::Bool(is)) => json!(is),
        Some(value) => value.as_str().map_or(Json::Null, |text| json!(text)),
        None => Json::Null,
    }
}

fn votes(public: &Value) -> Vec<Json> {
    let choices = items(public, "choices").iter().enumerate();
    let ballots = choices.flat_map(|(choice, said)| {
        let panel = last_panel(said).map(|panel| items(panel, "ballots")).unwrap_or_default();
        panel.iter().filter_map(move |ballot| vote(choice, ballot.as_array()?))
    });
    ballots.collect()
}

/// A ballot of the leaf: `[verifier, cast, hundredths or cause, priority, weight, required, monitor,
/// latency in ms]`.
fn vote(choice: usize, ballot: &[Value]) -> Option<Json> {
    let at = |place: usize| plain(ballot.get(place));
    let mut vote = json!({
        "choice": choice, "agent": at(0), "vote": at(1), "priority": at(3), "weight": at(4),
        "required": at(5), "monitor": at(6), "latency_ms": at(7),
    });
    let (name, detail) = match ballot.get(2)? {
        Value::Uint(hundredths) => ("confidence", fraction(*hundredths, 100)),
        other => ("cause", plain(Some(other))),
    };
    vote[name] = detail;
    Some(vote)
}

fn consensus(public: &Value) -> Json {
    let choices: Vec<Json> = items(public, "choices").iter().map(choice).collect();
    let outcome = public.get("outcome").and_then(Value::as_str);
    let score = public.get("score").and_then(Value::as_u64);
    let bars = items(public, "bars");
    json!({
        "approved": matches!(outcome, Some("delivered" | "redacted")),
        "action": plain(public.get("action")),
        "safety_score": score.map(|score| fraction(score, 10_000)),
        "scrutiny": plain(public.get("scrutiny")),
        "quorum": plain(bars.first()),
        "choices": choices,
    })
}

/// A choice with the sums of its last panel: `[S, D, W, votes cast, delivers]`.
fn choice(said: &Value) -> Json {
    let sums = last_panel(said).map(|panel| items(panel, "sums")).unwrap_or_default();
    let number = |at: usize| sums.get(at).and_then(Value::as_u64);
    let assurance = number(0).zip(number(2).filter(|seated| *seated > 0));
    let assurance =
        assurance.map(|(safe, seated)| fraction(safe.saturating_mul(100) / seated, 10_000));
    json!({
        "outcome": plain(said.get("outcome")),
        "attempts": items(said, "attempts").len(),
        "votes": number(3),
        "assurance": assurance,
        "delivers": plain(sums.get(4)),
    })
}

/// The alerts of the leaf: `[pattern, state, hundredths, recommended action]`.
fn drifts(public: &Value) -> Vec<Json> {
    let alerts = items(public, "drift_alerts").iter().filter_map(Value::as_array);
    let alerts = alerts.map(|alert| {
        let confidence = alert.get(2).and_then(Value::as_u64);
        json!({
            "pattern": plain(alert.first()), "state": plain(alert.get(1)),
            "confidence": confidence.map(|hundredths| fraction(hundredths, 100)),
            "recommended_action": plain(alert.get(3)),
        })
    });
    alerts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(values.into_iter().collect())
    }

    #[test]
    fn the_last_panel_speaks_for_its_choice() {
        let ballot = |vote: &str, confidence: u64| {
            let rest = [3_u64.into(), 3_u64.into(), true.into(), false.into(), 7_u64.into()];
            list([Value::from("crisis"), vote.into(), confidence.into()].into_iter().chain(rest))
        };
        let panel = |vote: &str, sums: [u64; 4], delivers: bool| {
            let sums = sums.into_iter().map(Value::from).chain([delivers.into()]);
            let ballots = list([ballot(vote, 90)]);
            list([Value::map([("ballots", ballots), ("sums", list(sums))])])
        };
        let first = Value::map([("panels", panel("harmful", [0, 270, 3, 1], false))]);
        let second = Value::map([("panels", panel("safe", [270, 0, 3, 1], true))]);
        let failed = Value::map([("failure", "timeout".into())]);
        let choice = Value::map([
            ("outcome", "delivered".into()),
            ("attempts", list([first, second, failed])),
        ]);
        let alert =
            list(["isolation".into(), "red".into(), 80_u64.into(), "resource_offer".into()]);
        let public = Value::map([
            ("outcome", "delivered".into()),
            ("action", "deliver".into()),
            ("score", 9_350_u64.into()),
            ("bars", list([3_u64.into(), 80_u64.into(), 50_u64.into()])),
            ("choices", list([choice])),
            ("drift_alerts", list([alert])),
        ]);
        let votes = votes(&public);
        assert_eq!(votes.len(), 1);
        assert_eq!((&votes[0]["vote"], &votes[0]["confidence"]), (&json!("safe"), &json!(0.9)));
        let consensus = consensus(&public);
        assert_eq!(consensus["approved"], true);
        assert_eq!((&consensus["safety_score"], &consensus["quorum"]), (&json!(0.935), &json!(3)));
        assert_eq!(consensus["choices"][0]["attempts"], 3);
        assert_eq!(consensus["choices"][0]["assurance"], 0.9);
        assert_eq!(drifts(&public)[0]["recommended_action"], "resource_offer");
    }

    #[test]
    fn a_leaf_without_any_of_it_gives_empty_lists() {
        for public in [Value::Null, Value::map([("choices", "none".into())])] {
            assert!(votes(&public).is_empty() && drifts(&public).is_empty());
            assert_eq!(consensus(&public)["approved"], false);
        }
    }
}
