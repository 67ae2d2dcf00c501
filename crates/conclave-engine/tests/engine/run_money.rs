//! Runs of recipes under a policy: what they may cost, what they are charged, and what is counted of them.

use crate::fakes::Scripted;
use crate::keepers::Keeper;
use crate::money::{Kept, kept, settle_tasks};
use crate::turns::turn;
use conclave_core::{Candidate, MicroUsd, StandIn, TenantId, Usage};
use conclave_engine::{
    DeliverError, Model, ModelDirectory, ModelError, ModelRequest, OfferedModel,
};
use conclave_govern::{BudgetScope, TenantPolicy};
use conclave_ledger::{Kind, Value as Public};
use conclave_money::{BudgetRefusal, Steward, VerifierFee};
use conclave_recipes::{ExecutedRun, RecipeSettings, Run, RunEnding, RunRequest, Workshop};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const OWN: &str = r#"
name = "story-titles"
title = "Suggests titles"
work = "model"
human_in_loop = HUMAN
kpis = ["human_edit_distance", "pii_false_negative_rate", "cost_per_successful_run"]
[models]
class = "large"
fallback = "small"
[limits]
input_tokens_max = 1000
output_tokens_max = 100
[[guards]]
guard = "budget"
action = "BUDGET"
[prompt]
user = "Job: a title. PADDING<material>{{input}}</material>"
[schema]
input = '{"type": "object"}'
output = '{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}'
"#;
const TITLE: &str = r#"{"title": "A long walk by the river"}"#;

fn tenant() -> TenantId {
    TenantId::new("default").unwrap()
}

/// `scripted` costs 1 dollar and 2 for a million tokens, `small` a tenth of it.
fn house(model: Arc<Scripted>, policy: Value, recipe: &str) -> Kept {
    let mut kept = kept(model, policy);
    let settings = RecipeSettings {
        large: Some("scripted".into()),
        small: Some("small".into()),
        ..RecipeSettings::default()
    };
    let files = [("own.toml".to_owned(), recipe.to_owned())];
    kept.house.workshop = Arc::new(Workshop::new(&files, settings).unwrap());
    kept
}

fn recipe(budget: &str) -> String {
    OWN.replace("BUDGET", budget).replace("HUMAN", "false").replace("PADDING", "")
}

fn titles(policy: Value, budget: &str) -> Kept {
    house(Scripted::saying(&[Ok(TITLE)]), policy, &recipe(budget))
}

fn asked(recipe: &str, input: Value) -> Run {
    let request = RunRequest { input, ..RunRequest::default() };
    Run { tenant: tenant(), key: None, recipe: recipe.into(), request, approved_run: None }
}

async fn run(kept: &Kept) -> ExecutedRun {
    let run = asked("story-titles", json!({"story": "a walk"}));
    let done = kept.house.recipes().execute(run).await.unwrap();
    settle_tasks().await;
    done
}

fn refusal(done: &ExecutedRun) -> (&'static str, String) {
    match &done.ending {
        RunEnding::Refused { code, message } => (code.as_str(), message.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_with_a_model_without_a_price_is_refused_under_a_budget() {
    let mut kept = titles(json!({"daily_budget_usd": 5}), "block");
    let state = kept.house.engine.steward.as_ref().unwrap().state.clone();
    let policy = TenantPolicy::parse(json!({"daily_budget_usd": 5})).unwrap();
    let policies = BTreeMap::from([(tenant(), policy)]);
    let unpriced = Steward::new(state, policies, BTreeMap::new(), Duration::from_secs(30));
    kept.house.keep_money(unpriced);
    let done = run(&kept).await;
    assert_eq!(refusal(&done).0, "unpriced");
    assert!(kept.house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_run_is_charged_at_the_tenants_own_price() {
    let own = json!({"input_usd_per_million": 100, "output_usd_per_million": 200});
    let kept = titles(json!({"daily_budget_usd": 100, "prices": {"scripted": own}}), "block");
    let done = run(&kept).await;
    assert_eq!((&done.ending, done.cost), (&RunEnding::Done, MicroUsd(2_000)), "{}", done.response);
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (2_000, 0));
}

#[tokio::test]
async fn the_whole_prompt_of_a_recipe_is_paid_for_in_advance() {
    let policy = json!({"daily_budget_usd": 5, "max_cost_per_request_usd": 0.04});
    assert_eq!(run(&titles(policy.clone(), "block")).await.ending, RunEnding::Done);
    // Four attempts at 200,000 bytes each may cost some $0.80, and are likely to cost $0.05.
    let long = recipe("block").replace("Job:", &format!("Job: {}", "word ".repeat(40_000)));
    let kept = house(Scripted::saying(&[Ok(TITLE)]), policy, &long);
    assert_eq!(refusal(&run(&kept).await).0, "insufficient_quota");
}

#[tokio::test]
async fn from_the_share_of_the_policy_on_runs_ask_its_cheaper_model() {
    // A run may cost some 45,000 micro-USD and costs 20; a hundredth of the budget are 600.
    let policy = json!({
        "daily_budget_usd": 0.06, "auto_downgrade_enabled": true, "downgrade_model": "small",
        "downgrade_at_percent": 1,
    });
    let kept = titles(policy, "block");
    assert_eq!(run(&kept).await.response["metadata"]["model"], "scripted");
    for _ in 0..30 {
        run(&kept).await;
    }
    let done = run(&kept).await;
    assert_eq!(done.response["metadata"]["model"], "small", "{}", done.response);
    let guards = done.response["metadata"]["guards"].to_string();
    assert!(guards.contains("downgraded"), "{guards}");
}

#[tokio::test]
async fn no_downgrade_to_a_model_that_the_tenant_blocks() {
    // A run may cost some $0.045, and is likely to cost $0.0028.
    let poor = json!({"daily_budget_usd": 0.002});
    let done = run(&titles(poor, "downgrade")).await;
    assert_eq!(done.response["metadata"]["model"], "small", "{}", done.response);
    let blocked = json!({"daily_budget_usd": 0.002, "blocked_models": ["small"]});
    let kept = titles(blocked, "downgrade");
    assert_eq!(refusal(&run(&kept).await).0, "insufficient_quota");
    assert!(kept.house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn whoever_asks_for_runs_that_are_refused_is_stopped_and_told_until_when() {
    let policy = json!({"daily_budget_usd": 0, "breaker": {"refusals_per_minute": 3}});
    let kept = titles(policy, "block");
    for _ in 0..3 {
        let done = run(&kept).await;
        assert!(refusal(&done).1.contains("limit"), "{:?}", done.ending);
        assert_eq!(done.retry_at_ms, None, "it never fits");
    }
    let done = run(&kept).await;
    assert!(refusal(&done).1.contains("may go on later"), "{:?}", done.ending);
    assert_eq!(done.retry_at_ms, Some(1_800_000_000_000 + 60_000));
}

/// A model in whose place another wrote, which is dearer.
struct StoodIn;

impl Model for StoodIn {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        let candidate = Candidate {
            text: TITLE.into(),
            usage: Usage { input_tokens: 10, output_tokens: 5 },
            stand_in: Some(StandIn { model: "spare".into(), cost: MicroUsd(777) }),
            ..Candidate::default()
        };
        std::future::ready(Ok(candidate)).boxed()
    }
}

impl ModelDirectory for StoodIn {
    fn find(&self, _: &str) -> Option<OfferedModel> {
        Some(OfferedModel {
            model: Arc::new(Self),
            provider: "test".into(),
            input_price: MicroUsd(1),
            output_price: MicroUsd(1),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_run_is_charged_at_the_price_of_whoever_stood_in() {
    let mut kept = titles(json!({"daily_budget_usd": 1}), "block");
    kept.house.engine.models = Arc::new(StoodIn);
    let done = run(&kept).await;
    assert_eq!((&done.ending, done.cost), (&RunEnding::Done, MicroUsd(777)));
    assert_eq!(kept.balance(BudgetScope::Tenant).spent, 777);
}

fn judged_by(kept: &mut Kept, policy: Value, per_call: u64) {
    let state = kept.house.engine.steward.as_ref().unwrap().state.clone();
    let policies = BTreeMap::from([(tenant(), TenantPolicy::parse(policy).unwrap())]);
    let fee = VerifierFee {
        calls: 1,
        per_call: MicroUsd(per_call),
        model: None,
        input_tokens: 0,
        output_tokens: 0,
    };
    let steward = Steward::new(state, policies, BTreeMap::new(), Duration::from_secs(30));
    kept.house.keep_money(steward.with_fees(vec![fee]));
}

#[tokio::test]
async fn judging_a_reply_that_was_made_elsewhere_is_paid_for_in_advance() {
    let policy = json!({"daily_budget_usd": 0.001});
    let mut kept = titles(policy.clone(), "block");
    let reply = || Candidate { text: "I am here with you.".into(), ..Candidate::default() };
    judged_by(&mut kept, policy.clone(), 8_100);
    let refused = kept.house.engine.verify(turn("My day was long."), reply()).await;
    let Err(DeliverError::Unpaid(BudgetRefusal::LineExceeded(exceeded), _)) = refused else {
        panic!("a panel may run twice, and a sixteenth of 16,200 is more than 1,000")
    };
    assert_eq!(exceeded.left, MicroUsd(1_000));
    judged_by(&mut kept, policy, 500);
    let judged = kept.house.engine.verify(turn("My day was long."), reply()).await.unwrap();
    assert_eq!(judged.decision.cost, MicroUsd(0), "the jury here asks for nothing");
    settle_tasks().await;
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (0, 0), "what was reserved is free again");
}

#[tokio::test]
async fn a_request_is_made_to_fit_its_limit_with_judges_and_attempts_or_is_refused() {
    // Three attempts of $0.004096 each, and each judged twice for $0.0005: $0.015288, and likely a sixteenth.
    let policy = |limit: f64| {
        json!({"daily_budget_usd": 5, "max_cost_per_request_usd": limit, "prices": {
            "scripted": {"input_usd_per_million": 0, "output_usd_per_million": 1},
        }})
    };
    for (limit, fits) in [(0.000_9, false), (0.013, true), (0.02, true)] {
        let mut kept = titles(policy(limit), "block");
        judged_by(&mut kept, policy(limit), 500);
        let reply = kept.house.engine.deliver(turn("My day was long.")).await;
        assert_eq!(reply.is_ok(), fits, "{limit}");
        assert_eq!(kept.house.model.asked.lock().unwrap().is_empty(), !fits);
    }
}

#[tokio::test]
async fn the_cost_steward_reads_accounts_and_policy_and_not_the_caller() {
    let kept = titles(json!({"daily_budget_usd": 0.001, "blocked_models": ["small"]}), "block");
    let input = json!({
        "request": {"model": "scripted", "allowed_models": ["small"]},
        "estimated_tokens": {"input": 1_000, "output": 1_000},
        "budget": {"remaining_microusd": 1_000_000_000, "per_request_microusd": 1_000_000_000},
    });
    let done = kept.house.recipes().execute(asked("cost-steward", input)).await.unwrap();
    let said = &done.response["data"];
    assert_eq!(said["budget_remaining_microusd"], 1_000, "{}", done.response);
    // A thousand tokens each cost three times the whole limit: no new day helps.
    assert_eq!((&said["within_budget"], &said["recommendation"]), (&json!(false), &json!("block")));
}

#[tokio::test]
async fn the_sentinel_reads_records_of_consent_and_protocols() {
    use conclave_govern::{ConsentState, CulturalFinding};
    let mut kept = titles(json!({}), "block");
    let keeper = Keeper::granting();
    kept.house.engine.governance = Some(keeper.clone());
    let input = json!({
        "request": {"context": {
            "storyteller_id": "teller", "consent_scope": ["research"], "purpose": "study",
            "country": "NZ", "party": "the university",
        }, "input": {"note": "hello"}},
        "phase": "pre",
    });
    let ask = || async {
        let run = asked("governance-sentinel", input.clone());
        let done = kept.house.recipes().execute(run).await.unwrap();
        done.response["data"]["audit_entry"]["decision"].clone()
    };
    assert_eq!(ask().await, "allow");
    let party = keeper.asked.lock().unwrap().last().unwrap().party.clone();
    assert_eq!(party.as_deref(), Some("the university"));
    *keeper.finding.lock().unwrap() = Ok(CulturalFinding::Flag { community: None, issues: vec![] });
    assert_eq!(ask().await, "flag");
    // What must wait for elders waits here as well: nothing is said about it.
    let held = CulturalFinding::Hold {
        community: None,
        others: Vec::new(),
        issues: vec![],
        sacred: false,
    };
    *keeper.finding.lock().unwrap() = Ok(held);
    assert_eq!(ask().await, Value::Null);
    *keeper.finding.lock().unwrap() = Ok(CulturalFinding::Clear);
    let state = ConsentState::Withdrawn { record: "c".into(), at_ms: 1 };
    *keeper.consent.lock().unwrap() = Ok(state);
    assert_eq!(ask().await, "deny");
}

#[tokio::test(start_paused = true)]
async fn a_recipe_that_misses_its_latency_objective_is_told_once_an_hour() {
    let slow = Scripted::slowly(&[Ok(TITLE)], Duration::from_secs(6));
    let kept = house(slow, json!({}), &recipe("block"));
    for _ in 0..25 {
        assert_eq!(run(&kept).await.ending, RunEnding::Done);
    }
    let leaves = kept.house.ledger.leaves().into_iter();
    let alerts: Vec<_> =
        leaves.filter(|leaf| leaf.draft.kind.as_str() == "latency.alert").collect();
    assert_eq!(alerts.len(), 1);
    let public = &alerts[0].draft.public;
    assert_eq!(public.get("objective_ms").and_then(Public::as_u64), Some(5_000));
    assert!(public.get("p95_ms").and_then(Public::as_u64).unwrap() >= 6_000);
}

#[tokio::test]
async fn what_reviewers_change_and_miss_is_counted() {
    let people = OWN.replace("BUDGET", "block").replace("HUMAN", "true").replace("PADDING", "");
    let mut kept = house(Scripted::saying(&[Ok(TITLE)]), json!({}), &people);
    let keeper = Keeper::granting();
    kept.house.records = Some(keeper.records.clone());
    kept.house.engine.governance = Some(keeper.clone());
    for _ in 0..3 {
        assert!(matches!(run(&kept).await.ending, RunEnding::Held { .. }));
    }
    keeper.decide("r-1", "approved", None).await;
    // Four of six words are others.
    let edited = json!(r#"{"title": "A short rest by a lake"}"#);
    keeper.decide("r-2", "approved", Some(edited)).await;
    let recipe = kept.house.workshop.recipes.find("story-titles").unwrap();
    let kpis = kept.house.recipes().recipe_kpis(&tenant(), &recipe).await.unwrap();
    assert_eq!(kpis["figures"]["human_edit_distance"], 0.3333, "{kpis}");
    assert_eq!(kpis["figures"]["cost_per_successful_run"], 30, "{kpis}");
}

#[tokio::test]
async fn the_decision_of_a_blocked_run_says_why() {
    let kept = titles(json!({"daily_budget_usd": 0}), "block");
    run(&kept).await;
    let leaves = kept.house.ledger.leaves();
    let leaf = leaves.iter().find(|leaf| leaf.draft.kind == Kind::Decision).unwrap();
    let word = |name| leaf.draft.public.get(name).and_then(Public::as_str);
    assert_eq!(word("refusal"), Some("insufficient_quota"));
    assert_eq!(word("safety_status"), Some("blocked"));
}
