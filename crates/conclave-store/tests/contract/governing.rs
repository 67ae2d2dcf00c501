//! Orchestration on both stores: what was used equals the log, what people lay down is sealed, nobody
//! claims what another has, and money moves with the ledger.

use crate::place::Place;
use crate::support::*;
use conclave_core::{AuditId, MicroUsd, TenantId};
use conclave_engine::{Caller, Governance, KeyRole, UsageAsk, UsageBy, UsageSums};
use conclave_govern::{
    AccountKey, AccountLimit, BudgetScope, LEASE_MS, NewReview, Period, Protocol, ReviewKind,
    ReviewPriority, ReviewRefusal, Ruling, Said,
};
use conclave_ledger::{Body, Kind, Leaf, Value, tenant_number};
use conclave_money::ReservationOrder;
use conclave_people::{People, PeopleError};
use conclave_store::{Store, move_to_postgres};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NOW: u64 = 1_800_000_000_000;
const DAY_MS: u64 = 86_400_000;

promises!(
    what_was_used_is_what_the_log_says,
    what_people_lay_down_and_write_is_sealed_with_their_tenants_key,
    sixteen_reviewers_never_hold_the_same_and_a_stale_claim_decides_nothing,
);

fn people(store: &Store, clock: &Arc<HandClock>) -> Arc<People> {
    let people = People::new(
        store.records(),
        store.subjects(),
        clock.clone(),
        Arc::new(CountingEntropy::from(9_000_000)),
        [9; 32],
    );
    Arc::new(people)
}

fn caller(holder: &str, role: KeyRole) -> Caller {
    Caller { holder: holder.into(), tenant: TenantId::new("acme").unwrap(), role, person: None }
}

fn whole(by: &[UsageBy]) -> UsageAsk {
    UsageAsk {
        tenant: tenant_number("acme"),
        from_ms: 0,
        to_ms: u64::MAX >> 1,
        by: by.to_vec(),
        subject: None,
        offset: 0,
        limit: 1_000,
    }
}

/// What the leaves of a log say was used, by what `name` finds in them.
fn told(log: &[Leaf], name: impl Fn(&Leaf) -> String) -> BTreeMap<String, (u64, u64, u64)> {
    let number = |leaf: &Leaf, key: &str| leaf.draft.public.get(key).and_then(Value::as_u64);
    let mut sums = BTreeMap::new();
    let ours = log.iter().filter(|leaf| leaf.draft.tenant == tenant_number("acme"));
    for leaf in ours {
        let requests = match leaf.draft.kind {
            Kind::Decision => 1,
            Kind::RequestRefused => number(leaf, "count").unwrap_or(1),
            _ => continue,
        };
        let sum: &mut (u64, u64, u64) = sums.entry(name(leaf)).or_default();
        sum.0 += requests;
        sum.1 += number(leaf, "cost").unwrap_or(0);
        sum.2 += number(leaf, "tokens_in").unwrap_or(0);
    }
    sums
}

/// Sixty decisions of two tenants, and a flood of refusals.
async fn use_it(store: &Store) {
    for n in 1..=60_u64 {
        let outcome = match n % 3 {
            0 => "delivered",
            1 => "blocked",
            _ => "failed",
        };
        let (mut draft, body) = decision_of(if n % 5 == 0 { "other" } else { "acme" }, n, outcome);
        if let Value::Map(public) = &mut draft.public {
            public.insert("key", Value::from(format!("k{}", n % 2).as_str()));
            public.insert("model", Value::from(format!("m{}", n % 4).as_str()));
            public.insert("cost", Value::Uint(n * 1_000));
            public.insert("tokens_in", Value::Uint(n));
            if n % 7 == 0 {
                public.insert("recipe", Value::from("interview-analyzer"));
            }
        }
        draft.session = Some([(n % 3) as u8; 16]);
        store.ledger().append(draft, body).await.unwrap();
    }
    let flood = conclave_ledger::Draft { tenant: tenant_number("acme"), ..refusal(429, 12) };
    store.ledger().append_soon(flood, Body::empty());
}

async fn what_was_used_is_what_the_log_says(place: &Place) {
    let store = place.open();
    use_it(&store).await;
    let usage = store.usage();
    let mut pages = BTreeMap::new();
    for by in UsageBy::ALL {
        pages.insert(by.as_str(), usage.sums(whole(&[by])).await.unwrap());
    }
    // A page is a part of the whole, and the sums are those of the whole.
    let first = UsageAsk { limit: 2, offset: 1, ..whole(&[UsageBy::Model]) };
    let page = usage.sums(first).await.unwrap();
    assert_eq!(page.rows, pages["model"].rows[1..3]);
    assert_eq!(page.total, pages["model"].total);
    let both = usage.sums(whole(&[UsageBy::Key, UsageBy::Outcome])).await.unwrap();
    assert!(both.rows.iter().all(|row| row.of.len() == 2));
    let none = UsageAsk { to_ms: 1, ..whole(&[UsageBy::Day]) };
    let none = usage.sums(none).await.unwrap();
    assert_eq!((none.rows, none.total), (vec![], UsageSums::default()));
    drop(usage);
    drop(store);
    let log = place.log();
    let text = |leaf: &Leaf, key: &str| {
        let found = leaf.draft.public.get(key).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let refused = |leaf: &Leaf| leaf.draft.kind == Kind::RequestRefused;
    let expected = [
        ("day", told(&log, |leaf| (leaf.ts_ms / DAY_MS).to_string())),
        ("model", told(&log, |leaf| text(leaf, "model"))),
        ("key", told(&log, |leaf| text(leaf, "key"))),
        ("provider", told(&log, |leaf| text(leaf, "provider"))),
        ("session", told(&log, |leaf| leaf.draft.session.map(hex::encode).unwrap_or_default())),
        ("user", told(&log, |leaf| leaf.draft.subject.map(hex::encode).unwrap_or_default())),
        (
            "outcome",
            told(&log, |leaf| match refused(leaf) {
                true => "refused".to_owned(),
                false => text(leaf, "outcome"),
            }),
        ),
        (
            "recipe",
            told(&log, |leaf| match text(leaf, "recipe") {
                name if name.is_empty() => "chat".to_owned(),
                name => name,
            }),
        ),
    ];
    for (by, expected) in expected {
        let page = &pages[by];
        let found: BTreeMap<_, _> = page
            .rows
            .iter()
            .map(|row| {
                let sums = &row.sums;
                (row.of[0].clone(), (sums.requests, sums.cost_microusd, sums.input_tokens))
            })
            .collect();
        assert_eq!(found, expected, "by {by}");
        let total = expected.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        assert_eq!((page.total.requests, page.total.cost_microusd), total, "by {by}");
    }
}

/// Whether a text stands in clear anywhere a record could be.
fn stands_in_clear(place: &Place, text: &str) -> bool {
    match &place.cluster {
        Some(cluster) => {
            let sql =
                format!("SELECT count(*) FROM record WHERE position('{text}'::bytea IN data) > 0");
            cluster.sql("fresh0", &sql).unwrap().trim() != "0"
        }
        None => ["ops.db", "ops.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(place.dir(0).join(name)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }),
    }
}

async fn what_people_lay_down_and_write_is_sealed_with_their_tenants_key(place: &Place) {
    let clock = Arc::new(HandClock(NOW.into()));
    let store = place.open();
    let office = people(&store, &clock);
    let (owner, elder) = (caller("o", KeyRole::Owner), caller("e1", KeyRole::Elder));
    office.name_elder(&owner, "River People", "e1", "Ana Maria").await.unwrap();
    let protocol: Protocol = serde_json::from_value(json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]}))
    .unwrap();
    office.lay_down(&elder, protocol, None).await.unwrap();
    let id = office.submit(review(1)).await.unwrap();
    let reviewer = caller("r", KeyRole::Reviewer);
    let token = office.claim_review(&reviewer, &id).await.unwrap().review.fence;
    let said = Said {
        ruling: Ruling::Approve,
        notes: "beside the old willow".into(),
        conditions: vec![],
        pii_missed: None,
        answer: None,
    };
    office.decide_review(&reviewer, &id, token, &said).await.unwrap();
    for words in ["churinga", "Ana Maria", "old willow"] {
        assert!(!stands_in_clear(place, words), "{words}");
    }
    let copy = store.seal_copy("protocols.json", b"churinga");
    assert!(!copy.windows(8).any(|window| window == b"churinga"));
    assert_eq!(store.open_copy("protocols.json", &copy).as_deref(), Some(&b"churinga"[..]));
    assert_eq!(store.open_copy("other", &copy), None);
    // Neither a restart nor other keys around it, nor retention, takes it away.
    drop((office, store));
    let store = place.open();
    store.purge_due().unwrap();
    store.rotate_keys(None).unwrap();
    let office = people(&store, &clock);
    let read = office.protocol(&elder, "River People").await.unwrap().protocol;
    assert_eq!(read.terms.len(), 1);
    let held = office.review(&owner, &id).await.unwrap().record;
    assert_eq!(held.review.rulings[0].notes, "beside the old willow");
}

fn review(audit: u64) -> NewReview {
    NewReview {
        kind: ReviewKind::Escalation,
        tenant: TenantId::new("acme").unwrap(),
        content_type: "chat".into(),
        community: None,
        others: vec![],
        issues: vec![],
        priority: ReviewPriority::High,
        audit_id: Some(AuditId::from_parts(audit, [1; 10])),
        author: Some("app".into()),
        subject: None,
        four_eyes: false,
    }
}

async fn sixteen_reviewers_never_hold_the_same_and_a_stale_claim_decides_nothing(place: &Place) {
    let items = std::env::var("CONCLAVE_ITEMS").ok().and_then(|n| n.parse().ok());
    let items: usize = items.unwrap_or(120);
    let clock = Arc::new(HandClock(NOW.into()));
    let store = place.open();
    let office = people(&store, &clock);
    let mut ids = Vec::with_capacity(items);
    for audit in 0..items {
        ids.push(office.submit(review(audit as u64)).await.unwrap());
    }
    let ids = Arc::new(ids);
    let won: Arc<Vec<AtomicUsize>> = Arc::new((0..items).map(|_| AtomicUsize::new(0)).collect());
    let tasks = (0..16_usize).map(|who| {
        let (office, ids, won) = (office.clone(), ids.clone(), won.clone());
        tokio::spawn(async move {
            let me = caller(&format!("r{who}"), KeyRole::Reviewer);
            for at in 0..ids.len() {
                match office.claim_review(&me, &ids[at]).await {
                    Ok(_) => drop(won[at].fetch_add(1, Ordering::Relaxed)),
                    Err(PeopleError::Refused(ReviewRefusal::Claimed) | PeopleError::Conflict) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let claims: Vec<_> = won.iter().map(|claims| claims.load(Ordering::Relaxed)).collect();
    assert!(claims.iter().all(|claims| *claims == 1), "{claims:?}");
    let owner = caller("o", KeyRole::Owner);
    let held = office.review(&owner, &ids[0]).await.unwrap().record;
    let before = held.review.claim.unwrap();
    clock.0.fetch_add(LEASE_MS, Ordering::Relaxed);
    let late = caller("r-late", KeyRole::Reviewer);
    let token = office.claim_review(&late, &ids[0]).await.unwrap().review.fence;
    assert!(token > before.token);
    let said = Said {
        ruling: Ruling::Approve,
        notes: String::new(),
        conditions: vec![],
        pii_missed: None,
        answer: None,
    };
    let stale = (0..16).map(|who| caller(&format!("r{who}"), KeyRole::Reviewer));
    for me in stale {
        let decided = office.decide_review(&me, &ids[0], before.token, &said).await;
        assert_eq!(decided.err(), Some(PeopleError::Refused(ReviewRefusal::Stale)));
    }
    office.decide_review(&late, &ids[0], token, &said).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_and_reservations_move_with_the_ledger() {
    let mut place = Place::postgres();
    let url = place.url.take().unwrap();
    let store = place.open();
    let accounts = store.accounts();
    let key = |scope, name: &str| AccountKey {
        tenant: 7,
        scope,
        name: name.into(),
        period: Period::Day,
        number: Period::Day.number_at(NOW),
    };
    let order = |n: u8| ReservationOrder {
        id: [n; 16],
        tenant: 7,
        lines: vec![
            AccountLimit { key: key(BudgetScope::Tenant, ""), limit: MicroUsd(1_000) },
            AccountLimit { key: key(BudgetScope::Key, "k"), limit: MicroUsd(800) },
        ],
        cost: conclave_money::CostBound::exact(MicroUsd(300)),
        cheaper: None,
        now_ms: NOW,
        expires_ms: NOW + 60_000,
    };
    accounts.reserve(order(1)).await.unwrap().unwrap();
    accounts.reserve(order(2)).await.unwrap().unwrap();
    accounts.settle([1; 16], MicroUsd(250), vec![]).await.unwrap();
    let before = accounts.balances(7, NOW, 100).await.unwrap();
    append(&store, 1).await;
    drop((accounts, store));
    let entropy = CountingEntropy::from(5_000_000);
    move_to_postgres(&place.dir(0), &url, &entropy, &mut |_, _| {}).unwrap();
    place.url = Some(url);
    let moved = place.open();
    let accounts = moved.accounts();
    assert_eq!(accounts.balances(7, NOW, 100).await.unwrap(), before, "what was spent stays spent");
    assert_eq!(accounts.unsettled(u64::MAX >> 1, 10).await.unwrap().len(), 1);
    let refused = accounts.reserve(order(3)).await.unwrap();
    assert!(refused.is_err(), "550 of 800 are spent or reserved: 300 more do not fit");
    accounts.settle([2; 16], MicroUsd(10), vec![]).await.unwrap();
    accounts.reserve(order(3)).await.unwrap().unwrap();
}
