//! Counters and ledger, held against each other after a hundred thousand operations.

use crate::place::Place;
use crate::support::*;
use conclave_core::MicroUsd;
use conclave_engine::{UsageAsk, UsageBook, UsageBy};
use conclave_govern::{AccountKey, AccountLimit, BudgetScope, Period};
use conclave_ledger::{Body, Draft, Kind, Leaf, Value, tenant_number};
use conclave_money::{Accounts, Policies, ReservationOrder, StewardState};
use conclave_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const NOW: u64 = 1_800_000_000_000;
const CLIENTS: u64 = 64;
/// How many operations there are; `CONCLAVE_OPERATIONS` asks for more.
const OPERATIONS: u64 = 100_000;
/// Of this key there is not enough for all who come with it.
const SCARCE: &str = "k0";
const SCARCE_LIMIT: u64 = 30_000;

promises!(counters_equal_the_ledger_after_a_hundred_thousand_operations);

fn line(scope: BudgetScope, name: &str, limit: u64) -> AccountLimit {
    let (period, tenant) = (Period::Day, tenant_number("acme"));
    let number = period.number_at(NOW);
    let key = AccountKey { tenant, scope, name: name.to_owned(), period, number };
    AccountLimit { key, limit: MicroUsd(limit) }
}

fn key_of(n: u64) -> String {
    format!("k{}", n % 5)
}

/// What request `n` asks for; its money bears the id of its decision.
fn order(n: u64) -> ReservationOrder {
    let key = key_of(n);
    let enough = 1 << 40;
    let lines = vec![
        line(BudgetScope::Tenant, "", enough),
        line(BudgetScope::User, &hex::encode(subject_of(n)), enough),
        line(BudgetScope::Key, &key, if key == SCARCE { SCARCE_LIMIT } else { enough }),
    ];
    ReservationOrder {
        id: audit(n).0.into_bytes(),
        tenant: tenant_number("acme"),
        lines,
        cost: conclave_money::CostBound::exact(MicroUsd(20 + n % 5)),
        cheaper: None,
        now_ms: NOW,
        expires_ms: NOW + 3_600_000,
    }
}

const fn subject_of(n: u64) -> [u8; 16] {
    [(n % 7) as u8; 16]
}

/// Now and then a provider charges more than was reserved.
const fn cost_of(n: u64) -> u64 {
    if n.is_multiple_of(997) { 100 } else { n % 20 }
}

/// One in a hundred dies after its decision was recorded and before it was settled.
const fn dies(n: u64) -> bool {
    n % 100 == 7
}

async fn request(store: &Store, accounts: &dyn Accounts, n: u64) {
    let (mut draft, body) = decision_of("acme", n, "delivered");
    draft.subject = Some(subject_of(n));
    if accounts.reserve(order(n)).await.unwrap().is_err() {
        let refused = Draft { tenant: draft.tenant, subject: draft.subject, ..refusal(429, 1) };
        store.ledger().append(refused, Body::empty()).await.unwrap();
        return;
    }
    if let Value::Map(public) = &mut draft.public {
        public.insert("key", Value::from(key_of(n).as_str()));
        public.insert("cost", Value::Uint(cost_of(n)));
    }
    store.ledger().append(draft, body).await.unwrap();
    if !dies(n) {
        accounts.settle(audit(n).0.into_bytes(), MicroUsd(cost_of(n)), vec![]).await.unwrap();
    }
}

/// What the counters say was spent, by whoever they count for.
async fn counted(accounts: &dyn Accounts, scope: BudgetScope) -> BTreeMap<String, u64> {
    let all = accounts.balances(tenant_number("acme"), NOW, 1_000).await.unwrap();
    assert!(all.iter().all(|one| one.balance.reserved == 0), "nothing is reserved any more");
    let of = all.into_iter().filter(|one| one.key.scope == scope);
    of.map(|one| (one.key.name, one.balance.spent)).collect()
}

/// What the usage events say it cost; whoever was refused has no key and cost nothing.
async fn used(usage: &dyn UsageBook, by: UsageBy) -> BTreeMap<String, u64> {
    let ask = UsageAsk {
        tenant: tenant_number("acme"),
        from_ms: 0,
        to_ms: u64::MAX >> 1,
        by: vec![by],
        subject: None,
        offset: 0,
        limit: 1_000,
    };
    let rows = usage.sums(ask).await.unwrap().rows.into_iter();
    let costs = rows.map(|mut row| (row.of.remove(0), row.sums.cost_microusd));
    costs.filter(|(name, _)| !name.is_empty()).collect()
}

/// What the leaves of the log themselves say.
fn told(log: &[Leaf], name: impl Fn(&Leaf) -> String) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for leaf in log.iter().filter(|leaf| leaf.draft.kind == Kind::Decision) {
        let cost = leaf.draft.public.get("cost").and_then(Value::as_u64).unwrap();
        *sums.entry(name(leaf)).or_default() += cost;
    }
    sums
}

async fn settle_from_the_ledger(store: &Store) -> u32 {
    let clock = Arc::new(HandClock(AtomicU64::new(NOW + 60_000)));
    let policies = Policies::over(store.records());
    let (archive, usage) = (store.archive(), store.usage());
    let state = StewardState::new(store.accounts(), policies, archive, usage, clock);
    let mut all = 0;
    loop {
        match state.reconcile().await.unwrap() {
            0 => return all,
            some => all += some,
        }
    }
}

async fn counters_equal_the_ledger_after_a_hundred_thousand_operations(place: &Place) {
    // Each request reserves money, is decided and is settled: three operations.
    let operations = std::env::var("CONCLAVE_OPERATIONS").ok().and_then(|n| n.parse().ok());
    let requests = operations.unwrap_or(OPERATIONS).div_ceil(3);
    let mut options = place.options(0);
    options.segment_bytes = 8 << 20;
    let store = Arc::new(Store::open(options).unwrap());
    let accounts = store.accounts();
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (store, accounts) = (Arc::clone(&store), Arc::clone(&accounts));
            tokio::spawn(async move {
                for n in (client..requests).step_by(usize::try_from(CLIENTS).unwrap()) {
                    request(&store, &*accounts, n).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(settle_from_the_ledger(&store).await > 200, "those that died are found in the ledger");
    assert!(accounts.unsettled(u64::MAX >> 1, 10).await.unwrap().is_empty());
    let usage = store.usage();
    let mut counters = Vec::new();
    for (scope, by) in [(BudgetScope::User, UsageBy::User), (BudgetScope::Key, UsageBy::Key)] {
        let counted = counted(&*accounts, scope).await;
        assert_eq!(counted, used(&*usage, by).await, "by {}", by.as_str());
        counters.push(counted);
    }
    let whole = counted(&*accounts, BudgetScope::Tenant).await;
    drop((usage, accounts));
    drop(store);
    let log = place.log();
    let key =
        |leaf: &Leaf| leaf.draft.public.get("key").and_then(Value::as_str).unwrap().to_owned();
    assert_eq!(counters[0], told(&log, |leaf| hex::encode(leaf.draft.subject.unwrap())));
    assert_eq!(counters[1], told(&log, key));
    assert_eq!(whole, told(&log, |_| String::new()));
    let refused = log.iter().filter(|leaf| leaf.draft.kind == Kind::RequestRefused).count();
    assert!(refused > 0 && counters[1][SCARCE] <= SCARCE_LIMIT + 1_000, "there was not enough");
}
