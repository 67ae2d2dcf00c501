//! Reading: everything that was appended before, and only what is one's own.

use crate::support::*;
use conclave_engine::{DecisionFilter, DecisionRow, Whose};
use conclave_ledger::{Body, Leaf, StoredBody, tenant_number};
use conclave_store::Store;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::tempdir;

fn page(limit: u32) -> DecisionFilter {
    DecisionFilter { limit, ..DecisionFilter::default() }
}

fn ids(rows: &[DecisionRow]) -> Vec<conclave_core::AuditId> {
    rows.iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn a_read_sees_what_was_appended_before_it() {
    let dir = tempdir().unwrap();
    let mut lazy = lazy(dir.path());
    lazy.soon = Duration::from_secs(3_600);
    let store = Store::open(lazy).unwrap();
    let archive = store.archive();
    for n in 1..=30 {
        let appended = append(&store, n).await;
        let found = archive.find(tenant_number("acme"), audit(n)).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(Leaf::decode(&found[0].leaf).unwrap().id, appended.id);
        store.ledger().append_soon(delivery(n, appended.id), Body::empty());
        let found = archive.find(tenant_number("acme"), audit(n)).await.unwrap();
        assert_eq!(found.len(), 2, "also what nobody waited for");
        assert!(found[0].seq < found[1].seq);
        let body = found[0].body.as_deref().unwrap();
        let text = StoredBody::decode(body).unwrap().open("request").unwrap();
        assert_eq!(text, format!("request {n}").into_bytes());
        assert_eq!(found[1].body, None);
    }
}

#[tokio::test]
async fn a_tenant_finds_only_its_own() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let (draft, body) = decision_of("acme", 1, "delivered");
    store.ledger().append(draft, body).await.unwrap();
    let archive = store.archive();
    assert_eq!(archive.find(tenant_number("other"), audit(1)).await.unwrap(), []);
    assert_eq!(archive.find(tenant_number("acme"), audit(2)).await.unwrap(), []);
    let other = DecisionFilter { tenant: Some(tenant_number("other")), ..page(10) };
    assert_eq!(archive.list(other).await.unwrap(), []);
}

#[tokio::test]
async fn decisions_are_listed_newest_first_and_by_page() {
    let dir = tempdir().unwrap();
    let clock = Arc::new(HandClock::default());
    let mut with_clock = options(dir.path());
    with_clock.clock = Arc::clone(&clock) as _;
    let store = Store::open(with_clock).unwrap();
    for n in 1..=20 {
        // Several decisions share a millisecond.
        clock.0.store(1_000 + n / 4, Ordering::Relaxed);
        let outcome = if n % 5 == 0 { "blocked" } else { "delivered" };
        let (draft, body) = decision_of(if n % 2 == 0 { "even" } else { "odd" }, n, outcome);
        store.ledger().append(draft, body).await.unwrap();
    }
    let archive = store.archive();
    let filters = [
        page(3),
        DecisionFilter { tenant: Some(tenant_number("even")), ..page(3) },
        DecisionFilter { outcome: Some("blocked".into()), ..page(3) },
        DecisionFilter { action: Some("block".into()), ..page(3) },
        DecisionFilter { subject: Some([1; 16]), ..page(3) },
    ];
    let wanted: [Vec<u64>; 5] = [
        (1..=20).rev().collect(),
        (1..=10).rev().map(|n| n * 2).collect(),
        vec![20, 15, 10, 5],
        vec![20, 15, 10, 5],
        (1..=20).rev().filter(|n| n % 3 == 1).collect(),
    ];
    for (filter, wanted) in filters.into_iter().zip(wanted) {
        let mut listed = Vec::new();
        let mut next = filter.clone();
        loop {
            let rows = archive.list(next.clone()).await.unwrap();
            let Some(last) = rows.last() else { break };
            assert!(rows.len() <= 3);
            next.before = Some(last.id);
            listed.extend(ids(&rows));
        }
        assert_eq!(listed, wanted.into_iter().map(audit).collect::<Vec<_>>(), "{filter:?}");
    }
    let unknown = DecisionFilter { before: Some(audit(999)), ..page(3) };
    assert_eq!(archive.list(unknown).await.unwrap(), []);
}

#[tokio::test]
async fn a_row_says_what_was_decided() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    append(&store, 7).await;
    let rows = store.archive().list(page(1)).await.unwrap();
    let expected = DecisionRow {
        id: audit(7),
        seq: 0,
        timestamp_ms: 1_800_000_000_000,
        outcome: "delivered".into(),
        action: "deliver".into(),
        safety_score: Some(0.9007),
        attempts: 1,
        crisis: false,
        scrutiny: "normal".into(),
        model: "builtin".into(),
        latency_ms: 7,
        tenant: rows[0].tenant,
    };
    assert_eq!(rows, [expected]);
}

#[tokio::test]
async fn outcomes_are_counted_by_hour_and_tenant() {
    const HOUR: u64 = 3_600_000;
    let dir = tempdir().unwrap();
    let clock = Arc::new(HandClock::default());
    let mut with_clock = options(dir.path());
    with_clock.clock = Arc::clone(&clock) as _;
    let store = Store::open(with_clock).unwrap();
    let turns = [
        (HOUR + 1, "a", "delivered"),
        (HOUR + 2, "a", "blocked"),
        (HOUR + 3, "b", "redacted"),
        (3 * HOUR, "a", "delivered"),
        (3 * HOUR + 5, "b", "safe_completion"),
    ];
    for (n, (now, tenant, outcome)) in (1..).zip(turns) {
        clock.0.store(now, Ordering::Relaxed);
        let (draft, body) = decision_of(tenant, n, outcome);
        store.ledger().append(draft, body).await.unwrap();
    }
    let archive = store.archive();
    let all = archive.tally(None, 0).await.unwrap();
    let named = |pairs: &[(&str, u64)]| {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    let outcomes =
        named(&[("blocked", 1), ("delivered", 2), ("redacted", 1), ("safe_completion", 1)]);
    assert_eq!(all.outcomes, outcomes);
    assert_eq!(all.hours, [(HOUR, 2, 1), (3 * HOUR, 1, 1)]);
    assert_eq!(all.entries, 5);
    let later = archive.tally(None, HOUR + 3).await.unwrap();
    assert_eq!(later.hours, [(HOUR, 1, 0), (3 * HOUR, 1, 1)]);
    let one = archive.tally(Some(tenant_number("a")), HOUR + 2).await.unwrap();
    assert_eq!(one.outcomes, named(&[("blocked", 1), ("delivered", 1)]));
    assert_eq!(one.hours, [(HOUR, 0, 1), (3 * HOUR, 1, 0)]);
    drop(store);
    let root: String = all.root.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(root, sound(dir.path()).root);
}

#[tokio::test]
async fn an_empty_log_answers_too() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let archive = store.archive();
    archive.health().await.unwrap();
    let tally = archive.tally(None, 0).await.unwrap();
    assert_eq!((tally.entries, tally.root), (0, conclave_ledger::empty_root()));
    assert_eq!(archive.list(page(10)).await.unwrap(), []);
    assert_eq!(archive.latest(0, Whose::Subject([1; 16]), None).await.unwrap(), None);
    drop(store);
    assert_eq!(sound(dir.path()).entries, 0);
}

#[tokio::test]
async fn the_latest_decision_of_a_person_is_found_under_their_tenant_only() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for n in 1..=12 {
        append(&store, n).await;
    }
    settle(&store);
    let archive = store.archive();
    let person = Whose::Subject([0; 16]);
    let tenant = tenant_number("acme");
    let latest = archive.latest(tenant, person, None).await.unwrap().unwrap();
    let all = archive.list(DecisionFilter { subject: Some([0; 16]), ..page(10) }).await.unwrap();
    assert_eq!((all.len(), latest.seq), (4, all[0].seq));
    assert!(latest.body.is_some());
    assert_eq!(archive.latest(tenant_number("b"), person, None).await.unwrap(), None);
    assert_eq!(archive.latest(tenant, Whose::Subject([99; 16]), None).await.unwrap(), None);
    assert_eq!(archive.latest(tenant, Whose::Session([99; 16]), None).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_share_a_few_connections() {
    let dir = tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let readers = (1..=40).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            append(&store, n).await;
            let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
            assert_eq!(found.len(), 1);
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
}
