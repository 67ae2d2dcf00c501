//! What must hold of every sequence of reservations, settlements and expiries.

use super::*;
use conclave_govern::{BudgetScope, Period};
use proptest::prelude::*;

const DAY: u64 = 86_400_000;

fn key(name: &str, period: Period, now_ms: u64) -> AccountKey {
    AccountKey {
        tenant: 7,
        scope: BudgetScope::Key,
        name: name.into(),
        period,
        number: period.number_at(now_ms),
    }
}

fn line(name: &str, now_ms: u64, limit: u64) -> AccountLimit {
    AccountLimit { key: key(name, Period::Day, now_ms), limit: MicroUsd(limit) }
}

fn order(id: u8, most: u64, now_ms: u64, lines: Vec<AccountLimit>) -> ReservationOrder {
    ReservationOrder {
        id: [id; 16],
        tenant: 7,
        lines,
        cost: CostBound::exact(MicroUsd(most)),
        cheaper: None,
        now_ms,
        expires_ms: now_ms + 1_000,
    }
}

#[test]
fn what_is_settled_twice_or_never_known_counts_once() {
    let mut page = AccountPage::default();
    page.reserve(&order(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    assert_eq!(
        page.reserve(&order(1, 60, 0, vec![line("a", 0, 100)])).unwrap().amount,
        MicroUsd(60)
    );
    assert_eq!(page.balance(&key("a", Period::Day, 0)).reserved, 60);
    for _ in 0..3 {
        page.settle([1; 16], MicroUsd(25), &[]).unwrap();
        page.settle([9; 16], MicroUsd(25), &[]).unwrap();
    }
    let balance = page.balance(&key("a", Period::Day, 0));
    assert_eq!((balance.spent, balance.reserved), (25, 0));
}

#[test]
fn whoever_is_not_settled_in_time_is_charged_in_full_and_corrected_later() {
    let mut page = AccountPage::default();
    page.reserve(&order(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    page.expire([1; 16], 999);
    assert_eq!(page.balance(&key("a", Period::Day, 0)).reserved, 60, "not yet");
    page.expire([1; 16], 1_000);
    page.expire([1; 16], 2_000);
    let balance = page.balance(&key("a", Period::Day, 0));
    assert_eq!((balance.spent, balance.reserved), (60, 0));
    page.settle([1; 16], MicroUsd(5), &[]).unwrap();
    assert_eq!(page.balance(&key("a", Period::Day, 0)).spent, 5);
}

#[test]
fn a_request_is_charged_to_the_day_it_began_in() {
    let mut page = AccountPage::default();
    let late = DAY - 1;
    page.reserve(&order(1, 100, late, vec![line("a", late, 100)])).unwrap();
    page.reserve(&order(2, 100, DAY, vec![line("a", DAY, 100)])).unwrap();
    page.settle([1; 16], MicroUsd(40), &[]).unwrap();
    assert_eq!(page.balance(&key("a", Period::Day, late)).spent, 40);
    assert_eq!(page.balance(&key("a", Period::Day, DAY)).used(), 100);
}

#[test]
fn a_provider_that_charges_more_is_counted_and_nothing_more_is_granted() {
    let mut page = AccountPage::default();
    page.reserve(&order(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    page.settle([1; 16], MicroUsd(150), &[]).unwrap();
    assert_eq!(page.balance(&key("a", Period::Day, 0)).spent, 150);
    let refusal = page.reserve(&order(2, 1, 0, vec![line("a", 0, 100)])).unwrap_err();
    assert_eq!(refusal.left, MicroUsd(0));
}

#[test]
fn one_limit_that_does_not_hold_leaves_all_untouched() {
    let mut page = AccountPage::default();
    let lines = vec![line("a", 0, 100), line("b", 0, 10)];
    let refusal = page.reserve(&order(1, 50, 0, lines)).unwrap_err();
    assert_eq!((refusal.line.key.name.as_str(), refusal.left), ("b", MicroUsd(10)));
    assert_eq!(page.balance(&key("a", Period::Day, 0)).used(), 0);
    assert!(page.reservations.is_empty());
}

#[test]
fn alerts_are_raised_once_and_the_highest_wins() {
    let mut page = AccountPage::default();
    let alerts = [70, 90, 100];
    let mut spend = |id: u8, amount: u64| {
        page.reserve(&order(id, amount, 0, vec![line("a", 0, 100)])).unwrap();
        let crossings = page.settle([id; 16], MicroUsd(amount), &alerts).unwrap();
        crossings.iter().map(|crossing| crossing.percent).collect::<Vec<_>>()
    };
    assert_eq!(spend(1, 69), [0_u8; 0]);
    assert_eq!(spend(2, 1), [70]);
    assert_eq!(spend(3, 1), [0_u8; 0]);
    assert_eq!(spend(4, 20), [90]);
    let refused = order(5, 50, 0, vec![line("a", 0, 100)]);
    let crossing = page.reserve(&refused).unwrap_err().crossing;
    assert_eq!(crossing, None, "91 of 100 are spent, whatever is asked for");
    // A reservation that nobody settled is charged, and nobody was told by that.
    page.reserve(&order(6, 9, 0, vec![line("a", 0, 100)])).unwrap();
    page.expire([6; 16], 1_000);
    let crossing = page.reserve(&refused).unwrap_err().crossing;
    assert_eq!(crossing.unwrap().percent, 100);
    assert_eq!(page.reserve(&refused).unwrap_err().crossing, None);
}

/// Likely to cost `likely`, and `most` at most.
fn estimated(id: u8, likely: u64, most: u64, lines: Vec<AccountLimit>) -> ReservationOrder {
    let cost = CostBound { most: MicroUsd(most), likely: MicroUsd(likely) };
    ReservationOrder { cost, ..order(id, most, 0, lines) }
}

#[test]
fn what_is_likely_to_fit_is_granted_and_others_wait_until_it_is_settled() {
    let mut page = AccountPage::default();
    let lines = || vec![line("a", 0, 100), line("b", 0, 1_000)];
    page.reserve(&order(1, 70, 0, lines())).unwrap();
    page.settle([1; 16], MicroUsd(70), &[]).unwrap();
    let granted = page.reserve(&estimated(2, 5, 80, lines())).unwrap();
    assert_eq!((granted.amount, granted.left), (MicroUsd(80), MicroUsd(30)));
    let waits = page.reserve(&estimated(3, 5, 80, lines())).unwrap_err();
    assert_eq!((waits.outlook, waits.left), (Outlook::Soon, MicroUsd(0)));
    page.settle([2; 16], MicroUsd(5), &[]).unwrap();
    assert_eq!(page.reserve(&estimated(3, 5, 80, lines())).unwrap().left, MicroUsd(25));
}

#[test]
fn a_refusal_tells_soon_from_the_next_period_and_from_never() {
    let mut page = AccountPage::default();
    let lines = || vec![line("a", 0, 100)];
    page.reserve(&order(1, 60, 0, lines())).unwrap();
    let outlook = |page: &mut AccountPage, likely| {
        page.reserve(&estimated(9, likely, 500, lines())).unwrap_err().outlook
    };
    assert_eq!(outlook(&mut page, 41), Outlook::Soon);
    assert_eq!(outlook(&mut page, 101), Outlook::Never);
    page.settle([1; 16], MicroUsd(60), &[]).unwrap();
    assert_eq!(outlook(&mut page, 41), Outlook::NextPeriod);
    page.reserve(&order(2, 40, 0, lines())).unwrap();
    page.settle([2; 16], MicroUsd(40), &[]).unwrap();
    assert_eq!(outlook(&mut page, 0), Outlook::NextPeriod, "used up");
}

#[test]
fn from_four_fifths_on_the_cheaper_model_is_asked() {
    let mut page = AccountPage::default();
    let orders = |id: u8| ReservationOrder {
        cheaper: Some(CheaperOption { cost: CostBound::exact(MicroUsd(2)), from_percent: 80 }),
        ..order(id, 20, 0, vec![line("a", 0, 100)])
    };
    for id in 1..=4 {
        assert!(!page.reserve(&orders(id)).unwrap().is_cheaper);
        page.settle([id; 16], MicroUsd(20), &[]).unwrap();
    }
    let reservation = page.reserve(&orders(5)).unwrap();
    assert_eq!((reservation.amount, reservation.is_cheaper), (MicroUsd(2), true));
    // Where the dear one does not fit any more, the cheaper one may.
    let mut page = AccountPage::default();
    page.reserve(&order(1, 90, 0, vec![line("a", 0, 100)])).unwrap();
    assert!(page.reserve(&orders(2)).unwrap().is_cheaper);
}

#[test]
fn a_reservation_that_cannot_be_read_is_not_settled_on_nothing() {
    let id = [1; 16];
    let unreadable = UnreadableReservation { id, why: "its limit `x` cannot be read".into() };
    let mut page = AccountPage {
        balances: [(key("a", Period::Day, 0), Balance { reserved: 60, ..Balance::default() })]
            .into(),
        unreadable: [(id, unreadable.clone())].into(),
        ..AccountPage::default()
    };
    let before = page.clone();
    assert_eq!(page.settle(id, MicroUsd(25), &[]), Err(unreadable));
    page.expire(id, u64::MAX);
    assert_eq!(page, before);
}

#[derive(Clone, Debug)]
enum Act {
    Reserve { id: u8, most: u64, both: bool },
    Settle { id: u8, part: u64 },
    Expire { id: u8 },
    Wait { ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u8..40, 0_u64..60, any::<bool>()).prop_map(|(id, most, both)| Act::Reserve {
            id,
            most,
            both
        }),
        (0_u8..40, 0_u64..=100).prop_map(|(id, part)| Act::Settle { id, part }),
        (0_u8..40).prop_map(|id| Act::Expire { id }),
        (0_u64..DAY / 3).prop_map(|ms| Act::Wait { ms }),
    ]
}

proptest! {
    /// Nobody spends more than was reserved here, as the upper bound of a request promises.
    #[test]
    fn spent_and_reserved_never_exceed_a_limit(acts in prop::collection::vec(act(), 1..200)) {
        let (mut page, mut now_ms) = (AccountPage::default(), 0);
        for act in acts {
            match act {
                Act::Reserve { id, most, both } => {
                    let mut lines = vec![line("a", now_ms, 100)];
                    if both {
                        lines.push(line("b", now_ms, 70));
                    }
                    let _ = page.reserve(&order(id, most, now_ms, lines));
                }
                Act::Settle { id, part } => {
                    let most = page.reservations.get(&[id; 16]).map_or(0, |open| open.amount);
                    page.settle([id; 16], MicroUsd(most * part / 100), &[70, 90, 100]).unwrap();
                }
                Act::Expire { id } => {
                    page.expire([id; 16], now_ms);
                }
                Act::Wait { ms } => now_ms += ms,
            }
            for (key, balance) in &page.balances {
                let limit = if key.name == "a" { 100 } else { 70 };
                prop_assert!(balance.used() <= limit, "{key:?} {balance:?}");
                let open = page.reservations.values().filter(|open| !open.charged);
                let reserved: u64 = open
                    .filter(|open| open.lines.iter().any(|line| line.key == *key))
                    .map(|open| open.amount)
                    .sum();
                prop_assert_eq!(reserved, balance.reserved, "as open reservations say");
            }
        }
    }

    /// Requests are granted by what they are likely to cost, and cost anything up to their most, whatever
    /// runs at once: over a limit stands at most what one of them can cost beyond what was likely.
    #[test]
    fn only_the_tail_of_one_request_ever_stands_over_a_limit(
        acts in prop::collection::vec((0_u8..30, 0_u64..60, 0_u64..=100, 0_u64..=100, any::<bool>()), 1..200),
    ) {
        let mut page = AccountPage::default();
        let mut tail_max = BTreeMap::<AccountKey, u64>::new();
        for (id, most, likely, cost, both) in acts {
            if let Some(open) = page.reservations.get(&[id; 16]) {
                let cost = open.amount * cost / 100;
                page.settle([id; 16], MicroUsd(cost), &[100]).unwrap();
            } else {
                let mut lines = vec![line("a", 0, 100)];
                if both {
                    lines.push(line("b", 0, 70));
                }
                let likely = most * likely / 100;
                if page.reserve(&estimated(id, likely, most, lines.clone())).is_ok() {
                    for line in lines {
                        let known = tail_max.entry(line.key).or_default();
                        *known = (*known).max(most - likely);
                    }
                }
            }
            for (key, balance) in &page.balances {
                let limit = if key.name == "a" { 100 } else { 70 };
                prop_assert!(balance.used() <= limit + tail_max[key], "{key:?} {balance:?}");
            }
        }
    }
}
