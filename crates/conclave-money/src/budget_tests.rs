//! What must hold of every sequence of holds, settlements and expiries.

use super::*;
use proptest::prelude::*;

const DAY: u64 = 86_400_000;

fn key(name: &str, period: Period, now_ms: u64) -> AccountKey {
    AccountKey {
        tenant: 7,
        scope: Scope::Key,
        name: name.into(),
        period,
        number: period.number_at(now_ms),
    }
}

fn line(name: &str, now_ms: u64, limit: u64) -> Line {
    Line { key: key(name, Period::Day, now_ms), limit: MicroUsd(limit) }
}

fn ask(id: u8, most: u64, now_ms: u64, lines: Vec<Line>) -> HoldAsk {
    HoldAsk {
        id: [id; 16],
        tenant: 7,
        lines,
        most: MicroUsd(most),
        cheaper: None,
        now_ms,
        expires_ms: now_ms + 1_000,
    }
}

#[test]
fn what_is_settled_twice_or_never_known_counts_once() {
    let mut page = Page::default();
    page.hold(&ask(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    assert_eq!(page.hold(&ask(1, 60, 0, vec![line("a", 0, 100)])).unwrap().held, MicroUsd(60));
    assert_eq!(page.account(&key("a", Period::Day, 0)).held, 60);
    for _ in 0..3 {
        page.settle([1; 16], MicroUsd(25), &[]);
        page.settle([9; 16], MicroUsd(25), &[]);
    }
    let account = page.account(&key("a", Period::Day, 0));
    assert_eq!((account.spent, account.held), (25, 0));
}

#[test]
fn whoever_is_not_settled_in_time_is_charged_in_full_and_corrected_later() {
    let mut page = Page::default();
    page.hold(&ask(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    page.expire([1; 16], 999, &[]);
    assert_eq!(page.account(&key("a", Period::Day, 0)).held, 60, "not yet");
    page.expire([1; 16], 1_000, &[]);
    page.expire([1; 16], 2_000, &[]);
    let account = page.account(&key("a", Period::Day, 0));
    assert_eq!((account.spent, account.held), (60, 0));
    page.settle([1; 16], MicroUsd(5), &[]);
    assert_eq!(page.account(&key("a", Period::Day, 0)).spent, 5);
}

#[test]
fn a_request_is_charged_to_the_day_it_began_in() {
    let mut page = Page::default();
    let late = DAY - 1;
    page.hold(&ask(1, 100, late, vec![line("a", late, 100)])).unwrap();
    page.hold(&ask(2, 100, DAY, vec![line("a", DAY, 100)])).unwrap();
    page.settle([1; 16], MicroUsd(40), &[]);
    assert_eq!(page.account(&key("a", Period::Day, late)).spent, 40);
    assert_eq!(page.account(&key("a", Period::Day, DAY)).used(), 100);
}

#[test]
fn a_provider_that_charges_more_is_counted_and_nothing_more_is_granted() {
    let mut page = Page::default();
    page.hold(&ask(1, 60, 0, vec![line("a", 0, 100)])).unwrap();
    page.settle([1; 16], MicroUsd(150), &[]);
    assert_eq!(page.account(&key("a", Period::Day, 0)).spent, 150);
    let (refusal, _) = page.hold(&ask(2, 1, 0, vec![line("a", 0, 100)])).unwrap_err();
    assert_eq!(refusal.left, MicroUsd(0));
}

#[test]
fn one_limit_that_does_not_hold_leaves_all_untouched() {
    let mut page = Page::default();
    let lines = vec![line("a", 0, 100), line("b", 0, 10)];
    let (refusal, _) = page.hold(&ask(1, 50, 0, lines)).unwrap_err();
    assert_eq!((refusal.line.key.name.as_str(), refusal.left), ("b", MicroUsd(10)));
    assert_eq!(page.account(&key("a", Period::Day, 0)).used(), 0);
    assert!(page.holds.is_empty());
}

#[test]
fn alerts_are_raised_once_and_the_highest_wins() {
    let mut page = Page::default();
    let alerts = [70, 90, 100];
    let mut spend = |id: u8, amount: u64| {
        page.hold(&ask(id, amount, 0, vec![line("a", 0, 100)])).unwrap();
        let crossings = page.settle([id; 16], MicroUsd(amount), &alerts);
        crossings.iter().map(|crossing| crossing.percent).collect::<Vec<_>>()
    };
    assert_eq!(spend(1, 69), [0_u8; 0]);
    assert_eq!(spend(2, 1), [70]);
    assert_eq!(spend(3, 1), [0_u8; 0]);
    assert_eq!(spend(4, 20), [90]);
    let refused = ask(5, 50, 0, vec![line("a", 0, 100)]);
    let (_, crossing) = page.hold(&refused).unwrap_err();
    assert_eq!(crossing.unwrap().percent, 100);
    let (_, crossing) = page.hold(&refused).unwrap_err();
    assert_eq!(crossing, None);
}

#[test]
fn from_four_fifths_on_the_cheaper_model_is_asked() {
    let mut page = Page::default();
    let asks = |id: u8| HoldAsk {
        cheaper: Some((MicroUsd(2), 80)),
        ..ask(id, 20, 0, vec![line("a", 0, 100)])
    };
    for id in 1..=4 {
        assert!(!page.hold(&asks(id)).unwrap().is_cheaper);
        page.settle([id; 16], MicroUsd(20), &[]);
    }
    let grant = page.hold(&asks(5)).unwrap();
    assert_eq!(grant, Grant { held: MicroUsd(2), is_cheaper: true });
    // Where the dear one does not fit any more, the cheaper one may.
    let mut page = Page::default();
    page.hold(&ask(1, 90, 0, vec![line("a", 0, 100)])).unwrap();
    assert!(page.hold(&asks(2)).unwrap().is_cheaper);
}

#[test]
fn lines_come_back_as_they_were_written() {
    let mut lines = vec![line("", 0, 5), line("a key with spaces", DAY * 400, u64::MAX)];
    lines[0].key.scope = Scope::Tenant;
    assert_eq!(decode_lines(&encode_lines(&lines)), lines);
    assert_eq!(decode_lines("nonsense\n1 2 tenant day x y\n"), []);
}

#[derive(Clone, Debug)]
enum Act {
    Hold { id: u8, most: u64, both: bool },
    Settle { id: u8, part: u64 },
    Expire { id: u8 },
    Wait { ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_u8..40, 0_u64..60, any::<bool>()).prop_map(|(id, most, both)| Act::Hold {
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
    /// Nobody spends more than was set aside here, as the upper bound of a request promises.
    #[test]
    fn spent_and_held_never_exceed_a_limit(acts in prop::collection::vec(act(), 1..200)) {
        let (mut page, mut now_ms) = (Page::default(), 0);
        for act in acts {
            match act {
                Act::Hold { id, most, both } => {
                    let mut lines = vec![line("a", now_ms, 100)];
                    if both {
                        lines.push(line("b", now_ms, 70));
                    }
                    let _ = page.hold(&ask(id, most, now_ms, lines));
                }
                Act::Settle { id, part } => {
                    let most = page.holds.get(&[id; 16]).map_or(0, |hold| hold.most);
                    page.settle([id; 16], MicroUsd(most * part / 100), &[70, 90, 100]);
                }
                Act::Expire { id } => {
                    page.expire([id; 16], now_ms, &[]);
                }
                Act::Wait { ms } => now_ms += ms,
            }
            for (key, account) in &page.accounts {
                let limit = if key.name == "a" { 100 } else { 70 };
                prop_assert!(account.used() <= limit, "{key:?} {account:?}");
                let open = page.holds.values().filter(|hold| !hold.charged);
                let held: u64 = open
                    .filter(|hold| hold.lines.iter().any(|line| line.key == *key))
                    .map(|hold| hold.most)
                    .sum();
                prop_assert_eq!(held, account.held, "held is what open holds say");
            }
        }
    }
}
