//! The cost steward: which model, what it will cost, and whether the money is there. Whole numbers only.

use conclave_core::MicroUsd;
use serde_json::{Value, json};

/// A model that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub model: String,
    /// Per million tokens read.
    pub input_price: MicroUsd,
    /// Per million tokens written.
    pub output_price: MicroUsd,
}

impl Offer {
    fn cost(&self, read: u64, written: u64) -> MicroUsd {
        MicroUsd::for_tokens(read, self.input_price)
            .saturating_add(MicroUsd::for_tokens(written, self.output_price))
    }
}

/// What this house's own books say. A caller may state less money, never more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Micro-USD that one request may cost.
    pub per_request: Option<u64>,
    /// Micro-USD that are left under the tightest limit.
    pub remaining: Option<u64>,
    /// Micro-USD of the least limit of a day or month, when nothing of it is spent.
    pub period_limit: Option<u64>,
    /// When that limit begins anew, in seconds.
    pub resets_in_s: Option<u64>,
    /// The model that the policy names for when money is scarce.
    pub downgrade: Option<String>,
    /// The slowest of the fastest 95 % of the latest runs.
    pub p95_ms: Option<u64>,
    /// How long they may take.
    pub slo_ms: u64,
}

/// What the steward says of a request, under the house's own books; `offers` are the models that the
/// tenant's policy permits.
#[must_use]
pub fn steward(input: &Value, offers: &[Offer], books: &Books) -> Value {
    let wanted = input["request"]["model"].as_str().unwrap_or_default();
    let tokens = &input["estimated_tokens"];
    let (read, written) = (tokens["input"].as_u64(), tokens["output"].as_u64());
    let (read, written) = (read.unwrap_or(0), written.unwrap_or(0));
    let budget = &input["budget"];
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let per_request = least(budget["per_request_microusd"].as_u64(), books.per_request);
    let remaining = least(budget["remaining_microusd"].as_u64(), books.remaining);
    let most = least(per_request, remaining);
    let latency = input["latency_ms"].as_u64().or(books.p95_ms);
    let answer = |model: Option<&str>, cost: Option<MicroUsd>, advice: &str, reason: &str| {
        let fits = cost.is_some_and(|cost| most.is_none_or(|most| cost.0 <= most));
        json!({
            "selected_model": model, "cost_estimate_microusd": cost.map(|cost| cost.0),
            "within_budget": fits, "recommendation": advice, "reason": reason,
            "budget_remaining_microusd": remaining, "slo_compliant": latency.map(|ms| ms <= books.slo_ms),
        })
    };
    let Some(first) = offers.iter().find(|offer| offer.model == wanted) else {
        return answer(None, None, "block", "This model is not permitted, or has no price.");
    };
    let cost = first.cost(read, written);
    if most.is_none_or(|most| cost.0 <= most) {
        return answer(Some(wanted), Some(cost), "proceed", "It fits.");
    }
    let allowed = input["request"]["allowed_models"].as_array();
    let may = |offer: &&Offer| match allowed {
        Some(list) => list.iter().any(|name| name == offer.model.as_str()),
        None => books.downgrade.as_ref() == Some(&offer.model),
    };
    let cheapest = offers.iter().filter(may).min_by_key(|offer| offer.cost(read, written));
    let cheaper = cheapest.map(|offer| (offer, offer.cost(read, written)));
    if let Some((offer, less)) = cheaper.filter(|(_, less)| most.is_none_or(|most| less.0 <= most))
    {
        return answer(
            Some(&offer.model),
            Some(less),
            "downgrade",
            "A permitted model costs less.",
        );
    }
    let later = budget["resets_in_s"].as_u64().or(books.resets_in_s).is_some();
    if books.period_limit.is_some_and(|whole| cost.0 > whole) {
        return answer(
            None,
            Some(cost),
            "block",
            "It costs more than the whole limit of a period.",
        );
    }
    if later && per_request.is_none_or(|most| cost.0 <= most) {
        let reason = match books.period_limit {
            Some(_) => "It fits once the budget begins again.",
            // A caller that states its own money does not say how much of it there is in all.
            None => "It does not fit in what is left of this budget.",
        };
        return answer(Some(wanted), Some(cost), "queue", reason);
    }
    answer(None, Some(cost), "block", "No permitted model fits the budget.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<Offer> {
        let offer = |model: &str, price| Offer {
            model: model.into(),
            input_price: MicroUsd(price),
            output_price: MicroUsd(price * 2),
        };
        vec![offer("large", 10_000_000), offer("small", 100_000)]
    }

    #[test]
    fn cost_steward_proceeds_downgrades_queues_and_blocks() {
        let tokens = json!({"input": 1_000, "output": 500});
        for (request, budget, advice, model, cost) in [
            (json!({"model": "large"}), json!({}), "proceed", json!("large"), json!(20_000)),
            (
                json!({"model": "large", "allowed_models": ["small"]}),
                json!({"per_request_microusd": 1_000}),
                "downgrade",
                json!("small"),
                json!(200),
            ),
            (
                json!({"model": "large"}),
                json!({"per_request_microusd": 1_000}),
                "block",
                json!(null),
                json!(20_000),
            ),
            (
                json!({"model": "large"}),
                json!({"remaining_microusd": 10, "resets_in_s": 60}),
                "queue",
                json!("large"),
                json!(20_000),
            ),
            (json!({"model": "unheard-of"}), json!({}), "block", json!(null), json!(null)),
        ] {
            let input = json!({"request": request, "estimated_tokens": tokens, "budget": budget});
            let books = Books { p95_ms: Some(10), slo_ms: 5_000, ..Books::default() };
            let said = steward(&input, &offers(), &books);
            assert_eq!(said["recommendation"], advice, "{input}");
            assert_eq!((&said["selected_model"], &said["cost_estimate_microusd"]), (&model, &cost));
            assert_eq!(said["slo_compliant"], true);
        }
    }

    #[test]
    fn a_caller_may_state_less_money_than_the_books_never_more() {
        let input = json!({
            "request": {"model": "large"}, "estimated_tokens": {"input": 1_000, "output": 500},
            "budget": {"remaining_microusd": 1_000_000_000, "per_request_microusd": 1_000_000_000},
        });
        let books = Books { remaining: Some(300), ..Books::default() };
        let said = steward(&input, &offers(), &books);
        assert_eq!(
            (&said["recommendation"], &said["within_budget"]),
            (&json!("block"), &json!(false))
        );
        assert_eq!(said["budget_remaining_microusd"], 300);
        let later = Books { resets_in_s: Some(60), ..books.clone() };
        assert_eq!(steward(&input, &offers(), &later)["recommendation"], "queue");
        for (whole, advice, reason) in [
            (20_000, "queue", "It fits once the budget begins again."),
            (19_999, "block", "It costs more than the whole limit of a period."),
        ] {
            let known = Books { period_limit: Some(whole), ..later.clone() };
            let said = steward(&input, &offers(), &known);
            assert_eq!(
                (&said["recommendation"], &said["reason"]),
                (&json!(advice), &json!(reason))
            );
        }
        let cheaper = Books { downgrade: Some("small".into()), ..books };
        let said = steward(&input, &offers(), &cheaper);
        assert_eq!(
            (&said["recommendation"], &said["selected_model"]),
            (&json!("downgrade"), &json!("small"))
        );
    }
}
