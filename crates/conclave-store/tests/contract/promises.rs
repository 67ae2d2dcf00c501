//! Append, read, exactly once, order, derived rows, keys and people.

use crate::forgetting::number;
use crate::place::Place;
use crate::support::*;
use conclave_core::TenantId;
use conclave_engine::{Consistency, DecisionFilter, KeyRole, ReceiptState, Whose};
use conclave_ledger::{
    Body, Kind, StoredBody, TileId, VerifierKey, tenant_number, verify_consistency,
};
use conclave_store::{NewKey, PersonRecord, Store, rebuild, rebuild_database};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOW: u64 = 1_800_000_000_000;

promises!(
    what_is_appended_is_read_and_verified,
    entries_are_there_once_and_in_order_after_any_number_of_starts,
    pages_and_counts_say_what_the_log_says,
    the_latest_decision_is_found_under_its_tenant_only,
    a_decision_without_delivery_is_marked_unknown_once,
    a_key_made_elsewhere_opens_and_is_entered_once,
    a_key_and_its_successor_open_together_for_a_while,
    the_first_key_and_the_first_person_are_made_once,
    entries_of_any_size_come_back_whole,
    a_receipt_proves_its_decision,
    the_query_tables_can_be_derived_again,
    views_say_what_the_design_asks_for,
    a_log_from_before_the_columns_of_today_gets_them_when_it_is_opened,
);

pub async fn what_is_appended_is_read_and_verified(place: &Place) {
    let store = place.open();
    assert!(store.is_new());
    for n in 1..=30 {
        turn(&store, n).await;
        let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
        assert_eq!(found.len(), 2, "the delivery nobody waited for is seen too");
        assert!(found[0].seq < found[1].seq);
        let text = StoredBody::decode(found[0].body.as_deref().unwrap()).unwrap();
        assert_eq!(text.open("request").unwrap(), format!("request {n}").into_bytes());
        assert_eq!(found[1].body, None);
    }
    let archive = store.archive();
    assert_eq!(archive.find(tenant_number("other"), audit(1)).await.unwrap(), []);
    assert_eq!(archive.find(tenant_number("acme"), audit(99)).await.unwrap(), []);
    archive.health().await.unwrap();
    drop(store);
    let report = place.sound();
    assert_eq!((report.entries, report.bodies, report.pending), (60, 30, 0));
    assert_eq!(report.kinds.get("decision"), Some(&30));
}

async fn entries_are_there_once_and_in_order_after_any_number_of_starts(place: &Place) {
    let mut acknowledged = BTreeSet::new();
    for round in 0..5 {
        let mut small = place.options(0);
        small.segment_bytes = 16 << 10;
        let store = Store::open(small).unwrap();
        assert_eq!(store.is_new(), round == 0);
        for n in 0..40 {
            acknowledged.insert(turn(&store, round * 100 + n).await.id);
        }
    }
    let log = place.log();
    let there: BTreeSet<_> = log.iter().map(|leaf| leaf.id).collect();
    assert_eq!(there.len(), log.len(), "each once");
    assert!(acknowledged.is_subset(&there));
    let numbers: Vec<_> = log.iter().map(|leaf| leaf.id.n).collect();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>(), "in order, without holes");
}

async fn pages_and_counts_say_what_the_log_says(place: &Place) {
    let store = place.open();
    for n in 1..=20 {
        let outcome = if n % 5 == 0 { "blocked" } else { "delivered" };
        let (draft, body) = decision_of(if n % 2 == 0 { "even" } else { "odd" }, n, outcome);
        store.ledger().append(draft, body).await.unwrap();
    }
    let archive = store.archive();
    let page = |limit| DecisionFilter { limit, ..DecisionFilter::default() };
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
        let (mut listed, mut next) = (Vec::new(), filter.clone());
        loop {
            let rows = archive.list(next.clone()).await.unwrap();
            let Some(last) = rows.last() else { break };
            assert!(rows.len() <= 3);
            next.before = Some(last.id);
            listed.extend(rows.iter().map(|row| row.id));
        }
        assert_eq!(listed, wanted.into_iter().map(audit).collect::<Vec<_>>(), "{filter:?}");
    }
    let tally = archive.tally(None, 0).await.unwrap();
    let outcomes = vec![("blocked".to_owned(), 4), ("delivered".to_owned(), 16)];
    assert_eq!((tally.entries, &tally.outcomes), (20, &outcomes));
    assert_eq!(tally.hours, [(NOW, 16, 4)]);
    let even = archive.tally(Some(tenant_number("even")), NOW + 1).await.unwrap();
    assert!(even.outcomes.is_empty(), "nothing since then");
    drop(store);
    let root: String = tally.root.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(root, place.sound().root);
}

async fn the_latest_decision_is_found_under_its_tenant_only(place: &Place) {
    let store = place.open();
    for n in 1..=12 {
        append(&store, n).await;
    }
    settle(&store);
    let (archive, person) = (store.archive(), Whose::Subject([0; 16]));
    let tenant = tenant_number("acme");
    let latest = archive.latest(tenant, person, None).await.unwrap().unwrap();
    assert_eq!(latest.seq, 11);
    assert!(latest.body.is_some());
    let session = archive.latest(tenant, Whose::Session([7; 16]), None).await.unwrap();
    assert_eq!(session.unwrap().seq, 11);
    assert_eq!(archive.latest(tenant_number("b"), person, None).await.unwrap(), None);
    assert_eq!(archive.latest(tenant, Whose::Subject([99; 16]), None).await.unwrap(), None);
}

async fn a_decision_without_delivery_is_marked_unknown_once(place: &Place) {
    let store = place.open();
    turn(&store, 1).await;
    let undelivered = append(&store, 2).await;
    drop(store);
    for _ in 0..3 {
        let store = place.open();
        settle(&store);
        drop(store);
        let log = place.log();
        let unknown: Vec<_> = log
            .iter()
            .filter(|leaf| leaf.draft.public.get("status") == Some(&"unknown".into()))
            .collect();
        assert_eq!(unknown.len(), 1);
        assert_eq!(unknown[0].draft.parent, Some(undelivered.id));
    }
}

fn new_key(label: &str) -> NewKey {
    NewKey {
        environment: "test".into(),
        tenant: TenantId::new("acme").unwrap(),
        role: KeyRole::App,
        label: label.into(),
        person: Some("Mara".into()),
        expires_ms: Some(NOW + 1_000),
    }
}

pub async fn a_key_made_elsewhere_opens_and_is_entered_once(place: &Place) {
    let store = place.open();
    let (book, entropy) = place.book();
    let (record, text) = book.issue(new_key("first"), NOW, &entropy).unwrap();
    assert_eq!(store.keys().find(text.reveal()), Some(record.clone()));
    assert!(book.create(&record, &[1; 32], &entropy).is_err(), "the id is taken");
    book.revoke(record.id.as_str(), NOW + 5, &entropy).unwrap();
    book.revoke(record.id.as_str(), NOW + 9, &entropy).unwrap();
    assert!(book.revoke("nobody", NOW, &entropy).is_err());
    store.sync_keys().unwrap();
    assert_eq!(store.keys().find(text.reveal()).unwrap().revoked_ms, Some(NOW + 5));
    drop(store);
    drop(place.open());
    let listed = book.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].last_used_ms, Some(NOW), "written down when the store was closed");
    let log = place.log();
    let changes: Vec<_> = log
        .iter()
        .filter(|leaf| leaf.draft.kind == Kind::KeyChange)
        .map(|leaf| leaf.draft.public.get("change").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(changes, ["created", "revoked"]);
}

async fn a_key_and_its_successor_open_together_for_a_while(place: &Place) {
    let store = place.open();
    let (book, entropy) = place.book();
    let (old, text) = book.issue(new_key("first"), NOW, &entropy).unwrap();
    let (new, next) = book.rotate(old.id.as_str(), 200, NOW + 100, &entropy).unwrap();
    assert_eq!((&new.tenant, new.role, &new.label), (&old.tenant, old.role, &old.label));
    assert_eq!(new.expires_ms, Some(NOW + 1_100), "for as long as the first was made for");
    store.sync_keys().unwrap();
    let (ending, after) = (store.keys().find(text.reveal()), store.keys().find(next.reveal()));
    assert_eq!(ending.unwrap().expires_ms, Some(NOW + 300));
    assert_eq!(after, Some(new.clone()));
    assert_eq!(store.keys().find_id(&new.id), Some(new.clone()));
    assert!(book.rotate(old.id.as_str(), 200, NOW + 300, &entropy).is_err(), "it is over");
    book.revoke(new.id.as_str(), NOW + 400, &entropy).unwrap();
    assert!(book.rotate(new.id.as_str(), 200, NOW + 500, &entropy).is_err(), "it is withdrawn");
    assert!(book.rotate("nobody", 200, NOW, &entropy).is_err());
    assert_eq!(book.list().unwrap().len(), 2, "what is refused makes no key");
}

pub async fn the_first_key_and_the_first_person_are_made_once(place: &Place) {
    let store = Arc::new(place.open());
    let racers = (0..4).map(|racer| {
        let store = Arc::clone(&store);
        tokio::task::spawn_blocking(move || {
            let entropy = CountingEntropy::from(50_000 * (racer + 1));
            let key = store.key_book().issue_first(new_key("owner"), NOW, &entropy).unwrap();
            let person = PersonRecord {
                name: format!("person{racer}"),
                tenant: TenantId::new("acme").unwrap(),
                role: KeyRole::Owner,
                password_hash: "hash".into(),
                created_ms: NOW,
            };
            (key.is_some(), store.people_book().put_first(&person).unwrap())
        })
    });
    let mut made = (0, 0);
    for racer in racers.collect::<Vec<_>>() {
        let (key, person) = racer.await.unwrap();
        made = (made.0 + u32::from(key), made.1 + u32::from(person));
    }
    assert_eq!(made, (1, 1));
    assert_eq!(store.key_book().list().unwrap().len(), 1);
    let mut person = store.people().unwrap().remove(0);
    person.password_hash = "another".into();
    store.people_book().put(&person).unwrap();
    assert_eq!(store.people().unwrap(), [person]);
}

async fn entries_of_any_size_come_back_whole(place: &Place) {
    let mut wide = place.options(0);
    wide.segment_bytes = 4 << 20;
    let store = Store::open(wide).unwrap();
    let sizes = [0, 1, 1_999, 2_000, 8_200, 70_000, 1_500_000];
    for (n, size) in (1..).zip(sizes) {
        let (draft, _) = decision(n);
        let mut body = Body::empty();
        body.push("request", [9; 32], vec![0x00; size]);
        store.ledger().append(draft, body).await.unwrap();
        let found = store.archive().find(tenant_number("acme"), audit(n)).await.unwrap();
        let stored = StoredBody::decode(found[0].body.as_deref().unwrap()).unwrap();
        assert_eq!(stored.open("request").unwrap().len(), size);
    }
    drop(store);
    place.sound();
}

pub async fn a_receipt_proves_its_decision(place: &Place) {
    let store = place.open();
    for n in 1..=150 {
        turn(&store, n).await;
    }
    settle(&store);
    store.publish().unwrap();
    let (proofs, tenant) = (store.proofs(), tenant_number("acme"));
    let vkey = VerifierKey::parse(&proofs.vkeys().await.unwrap()[0]).unwrap();
    for n in [1, 77, 150] {
        let ReceiptState::Ready(receipt) = proofs.receipt(tenant, audit(n)).await.unwrap() else {
            panic!("no receipt of decision {n}");
        };
        let (checkpoint, leaf) = receipt.verify(std::slice::from_ref(&vkey)).unwrap();
        assert_eq!((checkpoint.size, leaf.draft.audit), (300, Some(audit(n).0.into_bytes())));
    }
    assert_eq!(proofs.receipt(1, audit(1)).await.unwrap(), ReceiptState::Unknown);
    let consistency = proofs.consistency(100, 300).await.unwrap().unwrap();
    let Consistency { from_root, to_root, proof } = consistency;
    assert!(verify_consistency(100, 300, &from_root, &to_root, &proof));
    let full = TileId::in_tree(0, 0, 300).unwrap();
    assert_eq!(proofs.tile(full).await.unwrap().unwrap().len(), 256 * 32);
    let edge = TileId::in_tree(1, 0, 300).unwrap();
    assert_eq!(proofs.tile(edge).await.unwrap().unwrap().len(), 32);
    assert!(proofs.bundle(1, 44).await.unwrap().is_some());
    assert!(proofs.bundle(1, 45).await.unwrap().is_none(), "beyond the checkpoint");
    drop(store);
    assert!(place.sound().checkpoints > 0);
}

/// Changes derived tables behind the program's back.
fn change(place: &Place, sql: &str) {
    match &place.cluster {
        Some(cluster) => drop(cluster.sql("fresh0", sql).unwrap()),
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ledger.db")).unwrap();
            conn.execute_batch(sql).unwrap();
        }
    }
}

async fn the_query_tables_can_be_derived_again(place: &Place) {
    let store = place.open();
    for n in 1..=40 {
        turn(&store, n).await;
    }
    store.ledger().append_soon(refusal(401, 7), Body::empty());
    settle(&store);
    drop(store);
    place.sound();
    // Rules that stand in no leaf said this; whoever derives again has them no more.
    change(
        place,
        "UPDATE response_audit_log SET data_retention_until = 1900000000000 WHERE seq < 9",
    );
    let kept = "SELECT count(*) FROM response_audit WHERE data_retention_until IS NOT NULL";
    let kept_before = number(place, kept);
    assert!(kept_before > 0);
    let damages = [
        "DELETE FROM response_audit_log WHERE seq > 20; \
         UPDATE response_audit_log SET outcome = 'blocked', delivery_status = NULL",
        "UPDATE response_audit_log SET verifying_agents = '[]' WHERE seq = 4; \
         UPDATE response_audit_log SET consensus_result = '{}' WHERE seq = 4",
        "UPDATE response_audit_log SET policy = directives WHERE seq = 4",
        "UPDATE response_audit_log SET anonymized = TRUE WHERE seq = 4",
        "DELETE FROM ai_usage_events WHERE seq > 20",
        "UPDATE ai_usage_events SET cost_microusd = 0 WHERE seq = 4",
        "UPDATE ai_usage_events SET safety_status = 'flagged' WHERE seq = 4",
        "UPDATE ai_usage_events SET requests = 6 WHERE requests = 7",
    ];
    for damage in damages {
        change(place, damage);
        assert!(!place.check().ok, "{damage}");
        let entries = match &place.url {
            Some(url) => rebuild_database(url).unwrap(),
            None => rebuild(&place.dir(0)).unwrap(),
        };
        assert_eq!(entries, 81);
        place.sound();
        assert_eq!(number(place, kept), kept_before, "{damage}");
    }
}

/// The names of the design, for people who look into the database.
async fn views_say_what_the_design_asks_for(place: &Place) {
    let store = place.open();
    for n in 1..=5 {
        turn(&store, n).await;
    }
    store.ledger().append_soon(refusal(401, 7), Body::empty());
    settle(&store);
    let count = |what: &str| number(place, &format!("SELECT count(*) FROM {what}"));
    assert_eq!(count("response_audit WHERE sealed_words IS NOT NULL AND NOT anonymized"), 5);
    let columns = "response_audit WHERE length(session_id) = 32 AND safety_score BETWEEN 0 AND 1
                   AND timestamp IS NOT NULL AND delivery_timestamp IS NOT NULL
                   AND leaf_position >= 0";
    assert_eq!(count(columns), 5);
    assert_eq!(number(place, "SELECT sum(requests) FROM ai_usage_daily"), 12);
    let daily = "SELECT count(*) FROM ai_usage_daily WHERE p95_duration_ms >= 0
                 AND cost_usd_estimate >= 0 AND flagged + blocked <= requests AND day IS NOT NULL";
    let all = number(place, "SELECT count(*) FROM ai_usage_daily");
    assert_eq!(number(place, daily), all);
    drop(store);
    place.sound();
}

async fn a_log_from_before_the_columns_of_today_gets_them_when_it_is_opened(place: &Place) {
    let store = place.open();
    for n in 1..=40 {
        turn(&store, n).await;
    }
    drop(store);
    // What the version before left.
    match &place.cluster {
        Some(_) => change(
            place,
            "DROP VIEW tenant_ai_policies, elder_review_queue, response_audit, ai_usage_daily; \
             DROP TABLE record, purse_account, purse_hold, restore_wait, restore_accepted; \
             DROP TABLE ai_usage_events, idle_key, root_handover, root_holder; \
             ALTER TABLE replica_lease DROP COLUMN idle_seen; \
             ALTER TABLE vault DROP COLUMN generation; ALTER TABLE api_key DROP COLUMN person; \
             DROP INDEX audit_by_score; \
             ALTER TABLE response_audit_log DROP COLUMN verifying_agents, \
                 DROP COLUMN consensus_result, DROP COLUMN drift_alerts, \
                 DROP COLUMN exchange_count, DROP COLUMN policy, DROP COLUMN directives; \
             UPDATE conclave_schema SET version = 1",
        ),
        None => {
            let columns = "verifying_agents consensus_result drift_alerts exchange_count policy \
                           directives";
            let drop = |column| format!("ALTER TABLE response_audit_log DROP COLUMN {column};");
            let drops: String = columns.split_whitespace().map(drop).collect();
            change(place, "DROP VIEW response_audit; DROP VIEW ai_usage_daily");
            let rest = "DROP INDEX audit_by_time; DROP TABLE ai_usage_events; DROP INDEX audit_escalated; \
                        PRAGMA user_version = 4;";
            change(place, &format!("{drops}{rest}"));
            place.sound();
        }
    }
    let store = place.open();
    turn(&store, 41).await;
    drop(store);
    place.sound();
}
