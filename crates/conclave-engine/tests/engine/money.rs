//! Turns under a policy: who may ask what, and who pays.

use crate::fakes::{MemoryLedger, Scripted};
use crate::turns::{House, house, jury, turn};
use conclave_core::{GenerationFailure, MicroUsd, Mode, Outcome, Scrutiny, TenantId};
use conclave_engine::{
    ArchiveError, AuditFailure, Caller, Clock, DeliverError, ModelDirectory, OfferedModel, Records,
    RecordsInMemory, Settings, Turn, UsageAsk, UsageBook, UsagePage,
};
use conclave_govern::{BudgetScope, Period, Price, TenantPolicy, Usd};
use conclave_ledger::{Kind, Value};
use conclave_money::{
    Accounts, AccountsInMemory, Balance, BudgetRefusal, KnownPolicy, Policies, Steward,
    StewardState, TenantsError,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NOW: u64 = 1_800_000_000_000;

/// A clock that a test moves by hand.
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct NoUsage;

impl UsageBook for NoUsage {
    fn sums(&self, _: UsageAsk) -> BoxFuture<'_, Result<UsagePage, ArchiveError>> {
        std::future::ready(Ok(UsagePage::default())).boxed()
    }
}

/// Two models: `scripted`, and `small` for a tenth of its price.
struct TwoModels(Arc<Scripted>);

impl ModelDirectory for TwoModels {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        let tenth = match name {
            "scripted" => 10,
            "small" => 1,
            _ => return None,
        };
        Some(OfferedModel {
            model: self.0.clone(),
            provider: "test".into(),
            input_price: MicroUsd(tenth * 100_000),
            output_price: MicroUsd(tenth * 200_000),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        vec![("scripted".into(), "test".into()), ("small".into(), "test".into())]
    }
}

pub struct Kept {
    pub house: House,
    accounts: Arc<AccountsInMemory>,
    records: Arc<RecordsInMemory>,
    clock: Arc<HandClock>,
}

fn price(tenth: u64) -> Price {
    Price {
        input_usd_per_million: Usd(MicroUsd(tenth * 100_000)),
        output_usd_per_million: Usd(MicroUsd(tenth * 200_000)),
        output_tokens_max: Some(100),
    }
}

pub fn kept(model: Arc<Scripted>, policy: serde_json::Value) -> Kept {
    let mut house = house(model.clone(), jury());
    let accounts = Arc::<AccountsInMemory>::default();
    let clock = Arc::new(HandClock(AtomicU64::new(NOW)));
    house.engine.models = Arc::new(TwoModels(model));
    house.engine.clock = clock.clone();
    let prices =
        BTreeMap::from([("scripted".to_owned(), price(10)), ("small".to_owned(), price(1))]);
    let records = put_under(&mut house, accounts.clone(), policy, prices);
    Kept { house, accounts, records, clock }
}

/// Puts a house under a policy, with accounts that a test chooses; gives the records of policies.
pub fn put_under(
    house: &mut House,
    accounts: Arc<dyn Accounts>,
    policy: serde_json::Value,
    prices: BTreeMap<String, Price>,
) -> Arc<RecordsInMemory> {
    let records = Arc::<RecordsInMemory>::default();
    let state = StewardState::new(
        accounts,
        Policies::over(records.clone()),
        house.ledger.clone(),
        Arc::new(NoUsage),
        house.engine.clock.clone(),
    );
    let policies = BTreeMap::from([(tenant(), TenantPolicy::parse(policy).unwrap())]);
    let steward = Steward::new(Arc::new(state), policies, prices, Duration::from_secs(30));
    house.keep_money(steward);
    records
}

fn tenant() -> TenantId {
    TenantId::new("default").unwrap()
}

fn kind() -> Arc<Scripted> {
    Scripted::saying(&[Ok("I am here with you.")])
}

impl Kept {
    pub fn balance(&self, scope: BudgetScope) -> Balance {
        let page = self.accounts.page();
        let found = page.balances.iter().find(|(key, _)| key.scope == scope);
        found.map(|(_, balance)| *balance).unwrap_or_default()
    }

    async fn refusal(&self) -> BudgetRefusal {
        match self.house.engine.deliver(turn("My day was long.")).await {
            Err(DeliverError::Unpaid(refusal, _)) => refusal,
            Err(other) => panic!("{other}"),
            Ok(reply) => panic!("{:?}", reply.decision.outcome),
        }
    }
}

/// Settlements are handed over at once; what follows from them runs in tasks of its own.
pub async fn settle_tasks() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_turn_is_settled_with_what_it_cost_and_the_decision_says_so() {
    let kept = kept(kind(), json!({"daily_budget_usd": 1, "per_key": {"daily_usd": 1}}));
    let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    // Ten tokens in at 1 dollar and five out at 2 dollars a million.
    assert_eq!(reply.decision.cost, MicroUsd(20));
    settle_tasks().await;
    for scope in [BudgetScope::Tenant, BudgetScope::Key] {
        let balance = kept.balance(scope);
        assert_eq!((balance.spent, balance.reserved), (20, 0), "{scope:?}");
    }
    let asked = kept.house.model.asked.lock().unwrap();
    assert_eq!(asked[0].body["max_tokens"], 100, "it is told how much was reserved");
}

#[tokio::test]
async fn a_length_that_was_not_counted_does_not_reach_the_model() {
    let kept = kept(kind(), json!({"daily_budget_usd": 1}));
    let mut asked = turn("My day was long.");
    Arc::make_mut(&mut asked.body).insert("max_completion_tokens".into(), json!(1e9));
    kept.house.engine.deliver(asked).await.unwrap();
    let asked = kept.house.model.asked.lock().unwrap();
    assert_eq!(asked[0].body["max_tokens"], 100);
    assert_eq!(asked[0].body.get("max_completion_tokens"), None);
}

#[tokio::test]
async fn without_any_limit_nothing_is_reserved_and_nothing_is_added_to_the_request() {
    let kept = kept(kind(), json!({}));
    kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert!(kept.accounts.page().balances.is_empty());
    assert!(!kept.house.model.asked.lock().unwrap()[0].body.contains_key("max_tokens"));
}

#[tokio::test]
async fn a_limit_refuses_before_a_model_is_asked_and_names_its_scope() {
    for (policy, scope) in [
        (json!({"daily_budget_usd": 0.000_1}), "tenant limit"),
        (json!({"per_user": {"monthly_usd": 0.000_1}}), "user limit"),
        (json!({"per_session": {"daily_usd": 0.000_1}}), "session limit"),
        (json!({"max_cost_per_request_usd": 0.000_1}), "request limit"),
    ] {
        let kept = kept(kind(), policy);
        let sentence = kept.refusal().await.to_string();
        assert!(sentence.contains(scope), "{sentence}");
        assert!(kept.house.model.asked.lock().unwrap().is_empty());
        assert_eq!(kept.balance(BudgetScope::Tenant).reserved, 0);
    }
}

#[tokio::test]
async fn whoever_is_in_crisis_is_answered_without_money() {
    let kept = kept(kind(), json!({"daily_budget_usd": 0}));
    let reply = kept.house.engine.deliver(turn("I want to kill myself tonight")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::SafeCompletion);
    assert!(!reply.decision.choices[0].delivered.text.is_empty());
    assert!(kept.house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn models_and_modes_that_the_policy_does_not_permit_are_refused() {
    let kept = kept(
        kind(),
        json!({"blocked_models": ["scripted"], "allowed_models": ["scripted"], "modes": ["normal"]}),
    );
    let deliver = |model: &str, mode: Mode| {
        let mut turn = turn("My day was long.");
        turn.model = model.into();
        turn.context.mode = mode;
        kept.house.engine.deliver(turn)
    };
    let blocked = deliver("scripted", Mode::Normal).await;
    assert!(matches!(blocked, Err(DeliverError::Forbidden(why)) if why.contains("blocks")));
    let other = deliver("small", Mode::Normal).await;
    assert!(matches!(other, Err(DeliverError::UnknownModel(_))));
    let mode = deliver("scripted", Mode::Creative).await;
    assert!(matches!(mode, Err(DeliverError::Forbidden(why)) if why.contains("mode")));
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_under_a_budget() {
    let mut kept = kept(kind(), json!({"daily_budget_usd": 5}));
    let state = kept.house.engine.steward.as_ref().unwrap().state.clone();
    let policy = TenantPolicy::parse(json!({"daily_budget_usd": 5})).unwrap();
    let policies = BTreeMap::from([(tenant(), policy)]);
    let unpriced = Steward::new(state, policies, BTreeMap::new(), Duration::from_secs(30));
    kept.house.keep_money(unpriced);
    assert_eq!(kept.refusal().await, BudgetRefusal::Unpriced { model: "scripted".into() });
}

#[tokio::test]
async fn a_model_whose_stand_in_has_no_price_is_refused_under_a_budget() {
    for (policy, is_refused) in [(json!({"daily_budget_usd": 5}), true), (json!({}), false)] {
        let mut kept = kept(kind(), policy.clone());
        let state = kept.house.engine.steward.as_ref().unwrap().state.clone();
        let policies = BTreeMap::from([(tenant(), TenantPolicy::parse(policy).unwrap())]);
        let prices = BTreeMap::from([("scripted".to_owned(), price(10))]);
        let steward = Steward::new(state, policies, prices, Duration::from_secs(30));
        let stand_ins = BTreeMap::from([("scripted".to_owned(), vec!["spare".to_owned()])]);
        kept.house.keep_money(steward.with_stand_ins(stand_ins));
        if is_refused {
            let unpriced = BudgetRefusal::Unpriced { model: "spare".into() };
            assert_eq!(kept.refusal().await, unpriced);
        } else {
            kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn from_four_fifths_on_the_cheaper_model_answers_and_the_decision_says_so() {
    let policy = json!({
        "daily_budget_usd": 0.05, "auto_downgrade_enabled": true, "downgrade_model": "small",
        "downgrade_at_percent": 1,
    });
    let kept = kept(kind(), policy);
    let mut told = Vec::new();
    for _ in 0..40 {
        let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
        told.push((reply.decision.model.clone(), reply.decision.terms.downgraded_from.clone()));
        settle_tasks().await;
    }
    assert_eq!(told[0], ("scripted".into(), None));
    assert_eq!(told[39], ("small".into(), Some("scripted".into())));
    let leaf =
        kept.house.ledger.leaves().into_iter().rev().find(|l| l.draft.kind == Kind::Decision);
    let public = leaf.unwrap().draft.public;
    assert_eq!(public.get("downgraded_from").and_then(Value::as_str), Some("scripted"));
    assert_eq!(public.get("cost"), Some(&Value::Uint(2)), "at the price of the cheaper model");
}

#[tokio::test]
async fn alerts_stand_in_the_ledger_once() {
    // A turn can cost more than a tenth of it, and costs 20.
    let kept = kept(kind(), json!({"daily_budget_usd": 0.05, "alert_at_percent": [1, 100]}));
    for _ in 0..30 {
        kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
        settle_tasks().await;
    }
    let alerts = |ledger: &MemoryLedger| -> Vec<_> {
        let leaves = ledger.leaves().into_iter();
        leaves.filter(|leaf| leaf.draft.kind.as_str() == "budget.alert").collect()
    };
    let found = alerts(&kept.house.ledger);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].draft.public.get("percent"), Some(&Value::Uint(1)));
    let shown = kept.house.engine.steward.as_ref().unwrap().state.alerts();
    assert_eq!(shown.len(), 1);
    kept.clock.0.store(Period::Day.end_ms(Period::Day.number_at(NOW)), Ordering::Relaxed);
    assert!(kept.house.engine.steward.as_ref().unwrap().state.alerts().is_empty());
}

#[tokio::test]
async fn a_session_that_runs_away_is_stopped_for_a_minute() {
    let policy = json!({"daily_budget_usd": 0, "breaker": {"refusals_per_minute": 3}});
    let kept = kept(kind(), policy);
    for _ in 0..3 {
        assert!(matches!(kept.refusal().await, BudgetRefusal::LineExceeded(_)));
    }
    assert_eq!(kept.refusal().await, BudgetRefusal::RunningAway { until_ms: NOW + 60_000 });
    kept.clock.0.store(NOW + 60_000, Ordering::Relaxed);
    assert!(matches!(kept.refusal().await, BudgetRefusal::LineExceeded(_)));
}

#[tokio::test]
async fn a_call_whose_end_nobody_saw_is_charged_at_its_most() {
    let silent = Scripted::saying(&[Err(GenerationFailure::Timeout)]);
    let kept = kept(silent, json!({"daily_budget_usd": 1}));
    let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Failed);
    assert!(reply.decision.cost.0 > 200, "{:?}", reply.decision.cost);
    settle_tasks().await;
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (reply.decision.cost.0, 0));
    let down = Scripted::saying(&[Err(GenerationFailure::Unreachable)]);
    let kept = self::kept(down, json!({"daily_budget_usd": 1}));
    let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.cost, MicroUsd(0), "nobody was asked");
}

#[tokio::test]
async fn what_was_not_settled_is_settled_from_the_ledger() {
    let kept = kept(kind(), json!({"daily_budget_usd": 1}));
    let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    settle_tasks().await;
    // As if the process had ended between the decision and its settlement.
    use conclave_govern::{AccountKey, AccountLimit};
    use conclave_money::{CostBound, ReservationOrder};
    let number = Period::Day.number_at(NOW);
    let key = AccountKey {
        tenant: conclave_ledger::tenant_number("default"),
        scope: BudgetScope::Tenant,
        name: String::new(),
        period: Period::Day,
        number,
    };
    let orphan = ReservationOrder {
        id: reply.decision.id.0.into_bytes(),
        tenant: key.tenant,
        lines: vec![AccountLimit { key, limit: MicroUsd(1_000_000) }],
        cost: CostBound::exact(MicroUsd(500)),
        cheaper: None,
        now_ms: NOW - 10_000,
        expires_ms: NOW + 10_000,
    };
    kept.accounts.reserve(orphan).await.unwrap().unwrap();
    assert_eq!(kept.balance(BudgetScope::Tenant).reserved, 500);
    let state = &kept.house.engine.steward.as_ref().unwrap().state;
    assert_eq!(state.reconcile().await.unwrap(), 1);
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (40, 0));
    assert_eq!(state.reconcile().await.unwrap(), 0);
}

#[tokio::test]
async fn a_policy_tightens_the_reading_of_a_turn() {
    let kept = kept(kind(), json!({"scrutiny_min": "strict", "harm_threshold": 1}));
    let reply = kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.scrutiny, Scrutiny::Strict);
    assert_eq!(reply.decision.input.threshold.hundredths(), 1);
}

/// F-05: the operator lets replies leave unrecorded; a tenant may hold its own all the same, and no
/// tenant can let leave what the operator holds.
#[tokio::test]
async fn of_two_tenants_each_gets_the_stricter_word_about_what_no_disk_takes() {
    use AuditFailure::{DeliverAndAlert, Hold};
    let acme = TenantId::new("acme").unwrap();
    for (operator, own, leaves) in [
        (DeliverAndAlert, "hold", [true, false]),
        (DeliverAndAlert, "deliver_and_alert", [true, true]),
        (Hold, "deliver_and_alert", [false, false]),
    ] {
        let model = kind();
        let mut kept = kept(model.clone(), json!({}));
        let engine = &mut kept.house.engine;
        let settings = Settings { audit_failure: operator, ..(*engine.settings).clone() };
        engine.settings = Arc::new(settings);
        let policies = engine.steward.as_ref().unwrap().state.policies();
        policies.set(&acme, json!({"audit_failure": own}), None, NOW).await.unwrap();
        kept.house.ledger.ill.store(true, Ordering::Relaxed);
        kept.house.ledger.broken.store(true, Ordering::Relaxed);
        for (tenant, leaves) in [tenant(), acme.clone()].into_iter().zip(leaves) {
            let asked = model.asked.lock().unwrap().len();
            let turn = Turn { tenant, ..turn("My day was long.") };
            let reply = kept.house.engine.deliver(turn).await;
            assert_eq!(reply.is_ok(), leaves, "{operator:?}, {own}");
            let held = matches!(reply, Err(DeliverError::AuditUnavailable(_)));
            assert_eq!(held, !leaves, "{operator:?}, {own}");
            let paid = model.asked.lock().unwrap().len() > asked;
            assert_eq!(paid, leaves, "what is held costs nothing");
        }
    }
}

#[tokio::test]
async fn setting_a_policy_is_an_entry_with_before_and_after_and_holds_at_once() {
    let kept = kept(kind(), json!({}));
    let state = &kept.house.engine.steward.as_ref().unwrap().state;
    let policies = state.policies();
    let set = |policy: serde_json::Value, version| policies.set(tenant_ref(), policy, version, NOW);
    fn tenant_ref() -> &'static TenantId {
        static TENANT: std::sync::OnceLock<TenantId> = std::sync::OnceLock::new();
        TENANT.get_or_init(tenant)
    }
    assert_eq!(set(json!({"daily_budget_usd": 0}), None).await.unwrap().version, 1);
    assert!(matches!(kept.refusal().await, BudgetRefusal::LineExceeded(_)));
    let stale = set(json!({}), Some(0)).await.unwrap_err();
    assert!(stale.to_string().contains("somebody else"), "{stale}");
    let crossing = set(json!({"harm_threshold": 80}), Some(1)).await.unwrap_err();
    assert!(matches!(crossing, TenantsError::Policy(_)));
    assert_eq!(set(json!({"daily_budget_usd": 2}), Some(1)).await.unwrap().version, 2);
    let entries = kept.records.entries();
    assert_eq!(entries.len(), 2);
    let (kind, last) = &entries[1];
    assert_eq!(*kind, Kind::PolicySet);
    let day = |side: &str| last.get(side).unwrap().get("numbers").unwrap().get("day").cloned();
    assert_eq!((day("before"), day("after")), (Some(Value::Uint(0)), Some(Value::Uint(2_000_000))));
    // Another process sees it after reading again, and a copy brings it back.
    let other = Policies::over(kept.records.clone() as Arc<dyn Records>);
    assert_eq!(other.of(&tenant()), KnownPolicy::default());
    assert!(other.refresh().await.unwrap());
    assert!(!other.refresh().await.unwrap());
    assert_eq!(other.of(&tenant()).version, 2);
    let third = Policies::over(Arc::new(RecordsInMemory::default()));
    third.restore(&other.copy());
    assert_eq!(third.of(&tenant()), other.of(&tenant()));
}

#[tokio::test]
async fn webhooks_are_told_when_a_limit_comes_near() {
    let mut kept = kept(kind(), json!({"daily_budget_usd": 0.05, "alert_at_percent": [1]}));
    let office = crate::office::office();
    kept.house.engine.governance = Some(office.people.clone());
    let owner =
        Caller { tenant: tenant(), ..crate::office::caller("o", conclave_engine::KeyRole::Owner) };
    let place = crate::office::Place;
    let hook = "https://example.com/hook";
    let id = office.people.add_webhook(&owner, &place, hook, vec![]).await.unwrap().id;
    for _ in 0..30 {
        kept.house.engine.deliver(turn("My day was long.")).await.unwrap();
        settle_tasks().await;
    }
    let waiting = conclave_people::EventState::Waiting;
    let events = office.people.queued_events(&tenant(), &id, waiting, 9).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|one| one.event.kind.as_str()).collect();
    assert_eq!(kinds, ["budget.alert"], "once in a period");
    assert_eq!(events[0].event.data["percent"], 1);
    assert_eq!(events[0].event.data["scope"], "tenant");
}

#[tokio::test]
async fn a_turn_that_is_likely_to_fit_is_asked_for_with_fewer_attempts_and_a_shorter_reply() {
    // One attempt may cost some $0.0085, of which 100 tokens to write are $0.0002; three some $0.0255.
    for (left, granted) in
        [(0.1, true), (0.02, true), (0.009, true), (0.001_7, true), (0.001_5, false)]
    {
        let kept = kept(kind(), json!({"daily_budget_usd": left}));
        let delivered = kept.house.engine.deliver(turn("My day was long.")).await;
        assert_eq!(delivered.is_ok(), granted, "{left}");
        settle_tasks().await;
        let spent = if granted { 20 } else { 0 };
        assert_eq!(kept.balance(BudgetScope::Tenant).spent, spent, "{left}");
    }
}

#[tokio::test]
async fn what_a_budget_refuses_is_said_in_dollars_and_in_the_persons_language() {
    let kept = kept(kind(), json!({"daily_budget_usd": 0.000_1}));
    let mut asked = turn("My day was long.");
    asked.context.language = Some("ja".into());
    let Err(DeliverError::Unpaid(refusal, language)) = kept.house.engine.deliver(asked).await
    else {
        panic!("it is likely to cost more than the whole limit")
    };
    let told = conclave_engine::refusal_sentence(&refusal, language);
    assert!(told.contains("$0.0001") && told.contains("この組織の1日の上限"), "{told}");
    assert!(!told.to_lowercase().contains("micro"), "{told}");
    assert_eq!(refusal.retry_at_ms(NOW), None, "it never fits");
}
