//! Accounts: never over, settled once, nothing reserved for ever; on both stores.

use crate::forgetting::number;
use crate::place::Place;
use crate::support::settle;
use conclave_core::MicroUsd;
use conclave_govern::{AccountKey, AccountLimit, BudgetScope, Period};
use conclave_money::{Accounts, AccountsError, Balance, ReservationOrder};
use conclave_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NOW: u64 = 1_800_000_000_000;

promises!(
    sixty_four_at_once_are_granted_exactly_what_there_is,
    what_is_settled_or_refused_is_so_after_a_start,
    every_scope_is_reserved_or_none,
    a_reservation_nobody_settles_is_charged_and_corrected_when_its_decision_is_found,
    a_reservation_that_cannot_be_read_is_reported_and_others_are_settled,
    c02_a_request_that_never_came_to_a_decision_is_entered_as_abandoned_once,
    a_hold_with_a_malformed_id_is_named_and_nothing_is_settled_under_another,
    a_note_with_a_malformed_id_is_named_and_never_entered_under_another,
);

/// Changes the operational tables behind the program's back; `{id}` is three bytes where sixteen belong.
fn tamper(place: &Place, sql: &str) {
    match &place.cluster {
        Some(cluster) => {
            drop(cluster.sql("fresh0", &sql.replace("{id}", "'\\x616263'::bytea")).unwrap());
        }
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ops.db")).unwrap();
            conn.execute_batch(&sql.replace("{id}", "x'616263'")).unwrap();
        }
    }
}

fn key(scope: BudgetScope, name: &str) -> AccountKey {
    let period = Period::Day;
    AccountKey { tenant: 7, scope, name: name.into(), period, number: period.number_at(NOW) }
}

fn line(scope: BudgetScope, name: &str, limit: u64) -> AccountLimit {
    AccountLimit { key: key(scope, name), limit: MicroUsd(limit) }
}

fn order(n: u64, most: u64, lines: Vec<AccountLimit>) -> ReservationOrder {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&n.to_be_bytes());
    ReservationOrder {
        id,
        tenant: 7,
        lines,
        cost: conclave_money::CostBound::exact(MicroUsd(most)),
        cheaper: None,
        now_ms: NOW,
        expires_ms: NOW + 60_000,
    }
}

async fn account(accounts: &dyn Accounts, wanted: &AccountKey) -> Balance {
    let all = accounts.balances(7, NOW, 1_000).await.unwrap();
    all.into_iter().find(|one| one.key == *wanted).map(|one| one.balance).unwrap_or_default()
}

async fn sixty_four_at_once_are_granted_exactly_what_there_is(place: &Place) {
    let store = place.open();
    let (accounts, granted) = (store.accounts(), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..64_u64)
        .map(|client| {
            let (accounts, granted) = (Arc::clone(&accounts), Arc::clone(&granted));
            tokio::spawn(async move {
                for turn in 0..25 {
                    let lines = vec![
                        line(BudgetScope::Tenant, "", 1_000),
                        line(BudgetScope::Key, "k", 5_000),
                    ];
                    let answer =
                        accounts.reserve(order(client * 100 + turn, 10, lines)).await.unwrap();
                    granted.fetch_add(u64::from(answer.is_ok()), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(granted.load(Ordering::Relaxed), 100, "100 of 1,600");
    let tenant = account(&*accounts, &key(BudgetScope::Tenant, "")).await;
    // Nothing is spent yet, so that nobody is told that everything is.
    assert_eq!((tenant.spent, tenant.reserved, tenant.alerted), (0, 1_000, 0));
    assert_eq!(account(&*accounts, &key(BudgetScope::Key, "k")).await.reserved, 1_000);
}

async fn what_is_settled_or_refused_is_so_after_a_start(place: &Place) {
    let store = place.open();
    let accounts = store.accounts();
    let lines = || vec![line(BudgetScope::Tenant, "", 100)];
    accounts.reserve(order(1, 60, lines())).await.unwrap().unwrap();
    accounts.reserve(order(2, 40, lines())).await.unwrap().unwrap();
    let crossings =
        accounts.settle(order(1, 0, vec![]).id, MicroUsd(90), vec![70, 90]).await.unwrap();
    assert_eq!(crossings.iter().map(|crossing| crossing.percent).collect::<Vec<_>>(), [90]);
    drop((accounts, store));
    let store = place.open();
    let accounts = store.accounts();
    // Settled twice counts once; the reservation that was open is still there.
    accounts.settle(order(1, 0, vec![]).id, MicroUsd(90), vec![70, 90]).await.unwrap();
    let now = account(&*accounts, &key(BudgetScope::Tenant, "")).await;
    assert_eq!((now.spent, now.reserved, now.alerted), (90, 40, 90));
    let refusal = accounts.reserve(order(3, 1, lines())).await.unwrap().unwrap_err();
    assert_eq!(refusal.left, MicroUsd(0));
    assert_eq!(
        accounts.reserve(order(2, 40, lines())).await.unwrap().unwrap().amount,
        MicroUsd(40)
    );
    assert_eq!(accounts.unsettled(NOW + 1, 10).await.unwrap().len(), 1);
}

async fn every_scope_is_reserved_or_none(place: &Place) {
    let store = place.open();
    let accounts = store.accounts();
    let both = || vec![line(BudgetScope::Tenant, "", 1_000), line(BudgetScope::User, "u", 10)];
    accounts.reserve(order(1, 11, both())).await.unwrap().unwrap_err();
    assert_eq!(account(&*accounts, &key(BudgetScope::Tenant, "")).await.reserved, 0);
    accounts.reserve(order(2, 10, both())).await.unwrap().unwrap();
    accounts.settle(order(2, 0, vec![]).id, MicroUsd(3), vec![]).await.unwrap();
    for key in [key(BudgetScope::Tenant, ""), key(BudgetScope::User, "u")] {
        let now = account(&*accounts, &key).await;
        assert_eq!((now.spent, now.reserved), (3, 0));
    }
}

pub async fn a_reservation_nobody_settles_is_charged_and_corrected_when_its_decision_is_found(
    place: &Place,
) {
    let store = place.open();
    let accounts = store.accounts();
    let late = ReservationOrder {
        expires_ms: NOW - 1_000,
        ..order(1, 60, vec![line(BudgetScope::Tenant, "", 100)])
    };
    let id = late.id;
    accounts.reserve(late).await.unwrap().unwrap();
    let store = Arc::new(store);
    let charging = Arc::clone(&store);
    tokio::task::spawn_blocking(move || charging.charge_expired()).await.unwrap();
    let now = account(&*accounts, &key(BudgetScope::Tenant, "")).await;
    assert_eq!((now.spent, now.reserved), (60, 0));
    assert_eq!(accounts.unsettled(u64::MAX >> 1, 10).await.unwrap()[0].id, id);
    accounts.settle(id, MicroUsd(4), vec![]).await.unwrap();
    assert_eq!(account(&*accounts, &key(BudgetScope::Tenant, "")).await.spent, 4);
}

async fn a_reservation_that_cannot_be_read_is_reported_and_others_are_settled(place: &Place) {
    let store = place.open();
    let accounts = store.accounts();
    let lines = || vec![line(BudgetScope::Tenant, "", 100), line(BudgetScope::Key, "k", 100)];
    let broken = order(1, 40, lines()).id;
    accounts.reserve(order(1, 40, lines())).await.unwrap().unwrap();
    accounts.reserve(order(2, 40, lines())).await.unwrap().unwrap();
    let corrupt = format!(
        "UPDATE purse_hold SET expires_ms = 0; \
         UPDATE purse_hold SET lines = replace(lines, 'key', 'kin') WHERE HEX = '{}'",
        hex::encode_upper(broken)
    );
    match &place.cluster {
        Some(cluster) => {
            let corrupt = corrupt.replace("HEX", "upper(encode(id, 'hex'))");
            cluster.sql("fresh0", &corrupt).unwrap();
        }
        None => {
            let conn = rusqlite::Connection::open(place.dir(0).join("ops.db")).unwrap();
            conn.execute_batch(&corrupt.replace("HEX", "hex(id)")).unwrap();
        }
    }
    let refused = accounts.settle(broken, MicroUsd(3), vec![]).await.unwrap_err();
    assert!(matches!(&refused, AccountsError::Unreadable(one) if one.id == broken), "{refused}");
    assert!(refused.to_string().contains("7 kin day"), "{refused}");
    let store = Arc::new(store);
    let charging = Arc::clone(&store);
    tokio::task::spawn_blocking(move || charging.charge_expired()).await.unwrap();
    for key in [key(BudgetScope::Tenant, ""), key(BudgetScope::Key, "k")] {
        let now = account(&*accounts, &key).await;
        assert_eq!((now.spent, now.reserved), (40, 40), "the other was charged, this one stays");
    }
    accounts.settle(order(2, 0, vec![]).id, MicroUsd(3), vec![]).await.unwrap();
    assert_eq!(account(&*accounts, &key(BudgetScope::Tenant, "")).await.spent, 3);
}

async fn c02_a_request_that_never_came_to_a_decision_is_entered_as_abandoned_once(place: &Place) {
    const DAY_MS: u64 = 86_400_000;
    let store = place.open();
    let lines = vec![line(BudgetScope::Tenant, "", 100)];
    let gone = ReservationOrder { expires_ms: NOW - 2 * DAY_MS, ..order(1, 60, lines.clone()) };
    let late = ReservationOrder { expires_ms: NOW - DAY_MS / 2, ..order(2, 30, lines) };
    for hold in [gone, late] {
        store.accounts().reserve(hold).await.unwrap().unwrap();
    }
    let abandoned = "SELECT count(*) FROM ai_usage_events WHERE status = 'abandoned'
                     AND cost_microusd = 60 AND requests = 1";
    // Charged by the first look, given up minutes later.
    let store = Arc::new(store);
    let looking = Arc::clone(&store);
    let look = move || (0..61).for_each(|_| looking.charge_expired());
    tokio::task::spawn_blocking(look).await.unwrap();
    let began = std::time::Instant::now();
    while number(place, abandoned) == 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "it is never entered");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let waiting = store.accounts().unsettled(u64::MAX >> 1, 10).await.unwrap();
    assert_eq!(waiting.len(), 1, "the other may still be corrected");
    settle(&store);
    drop(store);
    drop(place.open());
    let report = place.sound();
    assert_eq!(report.kinds.get("request.abandoned"), Some(&1));
}

async fn a_hold_with_a_malformed_id_is_named_and_nothing_is_settled_under_another(place: &Place) {
    let store = Arc::new(place.open());
    tamper(
        place,
        "INSERT INTO purse_hold (id, most, lines, tenant, made_ms, expires_ms, charged)
         VALUES ({id}, 60, '', 7, 0, 0, false)",
    );
    let late = ReservationOrder {
        expires_ms: NOW - 1_000,
        ..order(1, 60, vec![line(BudgetScope::Tenant, "", 100)])
    };
    store.accounts().reserve(late).await.unwrap().unwrap();
    let charge = async || {
        let charging = Arc::clone(&store);
        tokio::task::spawn_blocking(move || charging.charge_expired()).await.unwrap();
        account(&*store.accounts(), &key(BudgetScope::Tenant, "")).await.spent
    };
    let error = store.accounts().unsettled(u64::MAX >> 1, 10).await.unwrap_err().to_string();
    assert!(error.contains("purse_hold") && error.contains("616263"), "{error}");
    assert_eq!(charge().await, 0, "which holds are over cannot be told");
    tamper(place, "DELETE FROM purse_hold WHERE id = {id}");
    assert_eq!(charge().await, 60);
}

async fn a_note_with_a_malformed_id_is_named_and_never_entered_under_another(place: &Place) {
    let store = place.open();
    tamper(
        place,
        "INSERT INTO outbox_entry (id, kind, tenant, public, created_ms)
         VALUES ({id}, 'request.abandoned', 7, {id}, 0)",
    );
    let error = store.sync_keys().unwrap_err().to_string();
    assert!(error.contains("outbox_entry") && error.contains("616263"), "{error}");
    tamper(place, "DELETE FROM outbox_entry");
    store.sync_keys().unwrap();
    settle(&store);
    drop(store);
    assert_eq!(place.sound().kinds.get("request.abandoned"), None);
}

/// Three replicas and sixty-four requests race one limit: never a micro-dollar over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_never_grant_more_than_there_is() {
    let place = Place::postgres();
    let stores: Vec<Store> =
        (0..3).map(|replica| Store::open(place.options(replica)).unwrap()).collect();
    let granted = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..64_u64)
        .zip(stores.iter().cycle())
        .map(|(client, store)| {
            let accounts = store.accounts();
            let granted = Arc::clone(&granted);
            tokio::spawn(async move {
                for turn in 0..10 {
                    // Scopes are named in opposite orders: nobody waits for somebody who waits.
                    let mut lines = vec![
                        line(BudgetScope::Tenant, "", 1_003),
                        line(BudgetScope::Key, "k", 100_000),
                    ];
                    if client % 2 == 0 {
                        lines.reverse();
                    }
                    let hold = order(client * 100 + turn, 10, lines);
                    let id = hold.id;
                    if accounts.reserve(hold).await.unwrap().is_ok() {
                        granted.fetch_add(1, Ordering::Relaxed);
                        accounts.settle(id, MicroUsd(10), vec![100]).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(granted.load(Ordering::Relaxed), 100);
    let now = account(&*stores[1].accounts(), &key(BudgetScope::Tenant, "")).await;
    assert_eq!((now.spent, now.reserved), (1_000, 0));
}
