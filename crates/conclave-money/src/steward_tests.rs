//! What the steward grants, whom it stops, and what it asks of the accounts.

use super::*;
use crate::accounts::{AccountBalance, ReserveOutcome, UnsettledReservation};
use crate::{AccountPage, AccountsInMemory};
use conclave_govern::Usd;
use conclave_ports::{
    DecisionFilter, DecisionRow, RecordsInMemory, Tally, UsageAsk, UsagePage, Whose,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use serde_json::json;

const NOW: u64 = 1_800_000_000_000;
const PAYER: Payer = Payer { tenant: 7, id: [7; 16] };

/// Nothing was ever recorded, and it is always the same time.
struct Nothing;

impl Archive for Nothing {
    fn find(&self, _: u64, _: AuditId) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn list(&self, _: DecisionFilter) -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn latest(
        &self,
        _: u64,
        _: Whose,
        _: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>> {
        ready(Ok(None)).boxed()
    }

    fn tally(&self, _: Option<u64>, _: u64) -> BoxFuture<'_, Result<Tally, ArchiveError>> {
        ready(Ok(Tally::default())).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>> {
        ready(Ok(())).boxed()
    }
}

impl UsageBook for Nothing {
    fn sums(&self, _: UsageAsk) -> BoxFuture<'_, Result<UsagePage, ArchiveError>> {
        ready(Ok(UsagePage::default())).boxed()
    }
}

impl Clock for Nothing {
    fn now_ms(&self) -> u64 {
        NOW
    }
}

/// Accounts that say they are away, or say nothing at all.
struct AccountsAway {
    is_silent: bool,
}

impl AccountsAway {
    fn answer<'a, T: Send + 'a>(&self) -> BoxFuture<'a, Result<T, AccountsError>> {
        if self.is_silent {
            return pending().boxed();
        }
        ready(Err(AccountsError::Unreachable("away".into()))).boxed()
    }
}

impl Accounts for AccountsAway {
    fn reserve(&self, _: ReservationOrder) -> BoxFuture<'_, Result<ReserveOutcome, AccountsError>> {
        self.answer()
    }

    fn settle(
        &self,
        _: [u8; 16],
        _: MicroUsd,
        _: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>> {
        self.answer()
    }

    fn unsettled(
        &self,
        _: u64,
        _: u32,
    ) -> BoxFuture<'_, Result<Vec<UnsettledReservation>, AccountsError>> {
        self.answer()
    }

    fn balances(
        &self,
        _: u64,
        _: u64,
        _: u32,
    ) -> BoxFuture<'_, Result<Vec<AccountBalance>, AccountsError>> {
        self.answer()
    }
}

fn steward(accounts: Arc<dyn Accounts>) -> Steward {
    let nothing = Arc::new(Nothing);
    let policies = Policies::over(Arc::new(RecordsInMemory::default()));
    let state = StewardState::new(accounts, policies, nothing.clone(), nothing.clone(), nothing);
    Steward::new(Arc::new(state), BTreeMap::new(), BTreeMap::new(), Duration::from_secs(30))
}

fn policy(value: serde_json::Value) -> TenantPolicy {
    TenantPolicy::parse(value).unwrap()
}

/// Reserves for request `id`; the accounts of these tests answer at once or never.
fn reserve(
    steward: &Steward,
    policy: &TenantPolicy,
    id: u8,
    most: u64,
    cheaper: Option<u64>,
) -> Option<Result<Option<Reservation>, BudgetRefusal>> {
    let tenant = TenantId::new("acme").unwrap();
    let scopes = Scopes { tenant, key: None, user: None, session: None, recipe: None };
    let request = ReservationRequest {
        id: [id; 16],
        policy,
        scopes: &scopes,
        cost: CostBound::exact(MicroUsd(most)),
        cheaper: cheaper.map(MicroUsd).map(CostBound::exact),
        payer: PAYER,
        now_ms: NOW,
    };
    steward.reserve(request).now_or_never()
}

fn only_balance(page: &AccountPage) -> crate::Balance {
    *page.balances.values().next().unwrap()
}

#[test]
fn accounts_that_are_away_refuse_and_nobody_runs_away_by_that() {
    let steward = steward(Arc::new(AccountsAway { is_silent: false }));
    let policy = policy(json!({"daily_budget_usd": 1, "breaker": {"refusals_per_minute": 2}}));
    for id in 0..5 {
        let refused = reserve(&steward, &policy, id, 10, None).unwrap();
        assert_eq!(refused, Err(BudgetRefusal::Unavailable));
    }
}

#[test]
fn a_request_that_is_too_dear_reserves_what_the_cheaper_model_costs() {
    let accounts = Arc::<AccountsInMemory>::default();
    let steward = steward(accounts.clone());
    let policy = policy(json!({"daily_budget_usd": 1, "max_cost_per_request_usd": 0.000_05}));
    let reservation = reserve(&steward, &policy, 1, 100, Some(10)).unwrap().unwrap().unwrap();
    assert_eq!((reservation.amount, reservation.is_cheaper), (MicroUsd(10), true));
    assert_eq!(only_balance(&accounts.page()).reserved, 10);
    let refused = reserve(&steward, &policy, 2, 100, Some(60)).unwrap();
    let limit = MicroUsd(50);
    assert_eq!(refused, Err(BudgetRefusal::RequestLimit { likely: MicroUsd(60), limit }));
}

#[test]
fn under_a_limit_for_single_requests_alone_no_account_is_asked() {
    let steward = steward(Arc::new(AccountsAway { is_silent: true }));
    let policy = policy(json!({"max_cost_per_request_usd": 1}));
    let reservation = reserve(&steward, &policy, 1, 100, None).unwrap().unwrap();
    let settled = steward.settle(reservation, MicroUsd(5), &policy, PAYER).now_or_never();
    assert_eq!((reservation.unwrap().amount, settled), (MicroUsd(100), Some(Vec::new())));
    assert_eq!(reserve(&steward, &TenantPolicy::default(), 1, 100, None), Some(Ok(None)));
}

#[test]
fn whoever_stops_waiting_for_the_accounts_does_not_count_as_running() {
    let silent = steward(Arc::new(AccountsAway { is_silent: true }));
    let policy = policy(json!({"daily_budget_usd": 1}));
    assert_eq!(reserve(&silent, &policy, 1, 10, None), None, "still waiting when it was dropped");
    assert!(lock(&silent.state.running).is_empty());
    let kept = steward(Arc::<AccountsInMemory>::default());
    let reservation = reserve(&kept, &policy, 1, 10, None).unwrap().unwrap();
    assert!(lock(&kept.state.running).contains_key(&[1; 16]));
    kept.settle(reservation, MicroUsd(5), &policy, PAYER).now_or_never().unwrap();
    assert!(lock(&kept.state.running).is_empty());
}

#[test]
fn whoever_spends_too_fast_is_stopped_also_where_no_budget_is_set() {
    let steward = steward(Arc::<AccountsInMemory>::default());
    let policy = policy(json!({"breaker": {"spend_per_minute_usd": 0.000_1}}));
    assert_eq!(reserve(&steward, &policy, 1, 0, None), Some(Ok(None)));
    drop(steward.settle(None, MicroUsd(101), &policy, PAYER));
    let until_ms = NOW + 60_000;
    let refused = reserve(&steward, &policy, 2, 0, None).unwrap();
    assert_eq!(refused, Err(BudgetRefusal::RunningAway { until_ms }));
}

#[test]
fn a_refusal_says_in_dollars_what_is_left_and_when_to_ask_again_or_that_it_never_fits() {
    let steward = steward(Arc::<AccountsInMemory>::default());
    let policy = policy(json!({"daily_budget_usd": 0.05}));
    let never = reserve(&steward, &policy, 1, 110_000, None).unwrap().unwrap_err();
    assert_eq!((never.crossing(), never.retry_at_ms(NOW)), (None, None));
    assert_eq!(
        never.to_string(),
        "this request is likely to cost $0.11, more than the whole tenant limit of $0.05 a day"
    );
    let first = reserve(&steward, &policy, 2, 40_000, None).unwrap().unwrap();
    let waits = reserve(&steward, &policy, 3, 20_000, None).unwrap().unwrap_err();
    assert_eq!(waits.retry_at_ms(NOW), Some(NOW + 1_000));
    steward.settle(first, MicroUsd(40_000), &policy, PAYER).now_or_never().unwrap();
    let spent = reserve(&steward, &policy, 3, 20_000, None).unwrap().unwrap_err();
    let midnight = (NOW / 86_400_000 + 1) * 86_400_000;
    assert_eq!((spent.crossing(), spent.retry_at_ms(NOW)), (None, Some(midnight)));
    assert!(spent.to_string().contains("$0.01 are left"), "{spent}");
}

#[test]
fn whoever_waits_for_others_to_be_settled_does_not_run_away() {
    let steward = steward(Arc::<AccountsInMemory>::default());
    let policy = policy(json!({"daily_budget_usd": 1, "breaker": {"refusals_per_minute": 2}}));
    reserve(&steward, &policy, 1, 900_000, None).unwrap().unwrap();
    for _ in 0..5 {
        let waits = reserve(&steward, &policy, 2, 200_000, None).unwrap().unwrap_err();
        assert!(matches!(waits, BudgetRefusal::LineExceeded(_)), "{waits}");
    }
}

#[test]
fn a_bound_far_over_what_requests_cost_turns_nobody_away() {
    let steward = steward(Arc::<AccountsInMemory>::default());
    let policy = policy(json!({"daily_budget_usd": 0.05, "max_cost_per_request_usd": 0.02}));
    let tenant = TenantId::new("acme").unwrap();
    let most = MicroUsd(28_800);
    let scopes =
        Scopes { tenant: tenant.clone(), key: None, user: None, session: None, recipe: None };
    let mut spent = 0;
    for id in 0..=u8::MAX {
        let request = ReservationRequest {
            id: [id; 16],
            policy: &policy,
            scopes: &scopes,
            cost: steward.estimate(&tenant, "m", most),
            cheaper: None,
            payer: PAYER,
            now_ms: NOW,
        };
        let Ok(reservation) = steward.reserve(request).now_or_never().unwrap() else { break };
        assert!(reservation.unwrap().left <= MicroUsd(20_000), "the limit of one request");
        let cost = MicroUsd(1_800);
        steward.learn_cost(&tenant, "m", most, cost);
        steward.settle(reservation, cost, &policy, PAYER).now_or_never().unwrap();
        spent += cost.0;
    }
    assert_eq!(spent, 27 * 1_800, "no other would have fitted in $0.05");
}

fn price(input: u64, output: u64) -> Price {
    Price {
        input_usd_per_million: Usd(MicroUsd(input)),
        output_usd_per_million: Usd(MicroUsd(output)),
        output_tokens_max: Some(100),
    }
}

#[test]
fn a_bound_counts_the_dearest_stand_in_and_none_without_a_price() {
    let mut steward = steward(Arc::<AccountsInMemory>::default());
    steward.prices.insert("large".into(), price(3, 4));
    steward.prices.insert("spare".into(), price(2, 9));
    let names = |others: &[&str]| others.iter().map(|name| (*name).to_owned()).collect();
    let stand_ins =
        [("large".to_owned(), names(&["spare"])), ("spare".to_owned(), names(&["new"]))];
    let steward = steward.with_stand_ins(stand_ins.into());
    // What the tenant states about the stand-in is not what that one is charged at.
    let own = json!({"input_usd_per_million": 0, "output_usd_per_million": 0});
    let policy = policy(json!({"prices": {"spare": own, "new": own}}));
    assert_eq!(steward.price_at_most(&policy, "large"), Ok(price(3, 9)));
    let unpriced = Err(BudgetRefusal::Unpriced { model: "new".into() });
    assert_eq!(steward.price_at_most(&policy, "spare"), unpriced);
}

#[test]
fn judging_by_a_model_without_a_price_has_no_bound() {
    let fee = |model: &str| VerifierFee {
        calls: 2,
        per_call: MicroUsd(5),
        model: Some(model.to_owned()),
        input_tokens: 1_000_000,
        output_tokens: 0,
    };
    let size = RequestSize { panels: 2, ..RequestSize::default() };
    let mut steward = steward(Arc::<AccountsInMemory>::default());
    steward.prices.insert("judge".into(), price(3, 4));
    let steward = steward.with_fees(vec![fee("judge")]);
    assert_eq!(steward.judging_cost(&size), Ok(MicroUsd(32)));
    let steward = steward.with_fees(vec![fee("judge"), fee("new")]);
    let unpriced = Err(BudgetRefusal::Unpriced { model: "new".into() });
    assert_eq!(steward.judging_cost(&size), unpriced);
}
