//! Who decides what waits, and that no sequence of acts breaks the rules.

use super::*;
use conclave_core::TenantId;
use proptest::prelude::*;

fn new(community: Option<&str>, four_eyes: bool) -> NewReview {
    NewReview {
        kind: if community.is_some() { ReviewKind::ElderReview } else { ReviewKind::Escalation },
        tenant: TenantId::new("t").unwrap(),
        content_type: "chat".into(),
        community: community.map(str::to_owned),
        others: vec![],
        issues: vec![],
        priority: ReviewPriority::Urgent,
        audit_id: None,
        author: Some("author".into()),
        subject: None,
        four_eyes,
    }
}

fn elder(person: &str) -> Decider {
    let elder_of = vec!["river people".to_owned()];
    let holder = format!("key:{person}");
    Decider { person: person.into(), named: true, holder, reviewer: false, elder_of }
}

fn reviewer(person: &str) -> Decider {
    Decider { reviewer: true, elder_of: vec![], ..elder(person) }
}

fn say(ruling: Ruling) -> Said {
    Said { ruling, notes: "n".into(), conditions: vec![], pii_missed: None, answer: None }
}

fn edit(text: &str) -> Said {
    say(Ruling::EditAndApprove { text: text.into() })
}

#[test]
fn only_elders_of_the_community_decide_what_is_theirs() {
    let mut review = Review::open(&new(Some("River People"), false), 0);
    let mut stranger = elder("s");
    stranger.elder_of = vec!["hill people".into()];
    for who in [reviewer("r"), stranger] {
        assert_eq!(review.claim(&who, 1), Err(ReviewRefusal::NotAnElder));
        assert_eq!(review.decide(&who, 0, say(Ruling::Approve), 1), Err(ReviewRefusal::NotAnElder));
    }
    assert_eq!(review.claim(&elder("author"), 1), Err(ReviewRefusal::OwnWork));
    let token = review.claim(&elder("a"), 1).unwrap();
    review.decide(&elder("a"), token, say(Ruling::Approve), 2).unwrap();
    assert_eq!(review.status, ReviewStatus::Approved);
    let nobodys = NewReview { community: None, ..new(Some("x"), true) };
    let mut nobodys = Review::open(&nobodys, 0);
    assert_eq!(nobodys.claim(&reviewer("r"), 1), Err(ReviewRefusal::NotAnElder));
    let mut plain = Review::open(&new(None, false), 0);
    assert_eq!(plain.claim(&elder("a"), 1), Err(ReviewRefusal::NotAReviewer));
    assert!(plain.claim(&reviewer("r"), 1).is_ok());
}

#[test]
fn a_claim_is_a_lease_and_an_old_token_decides_nothing() {
    let mut review = Review::open(&new(None, false), 0);
    let old = review.claim(&reviewer("a"), 0).unwrap();
    assert_eq!(review.claim(&reviewer("b"), 1), Err(ReviewRefusal::Claimed));
    let ruling = || say(Ruling::Approve);
    let late = review.decide(&reviewer("a"), old, ruling(), LEASE_MS);
    assert_eq!(late, Err(ReviewRefusal::Stale), "the lease is over");
    let token = review.claim(&reviewer("b"), LEASE_MS).unwrap();
    assert!(token > old);
    assert_eq!(
        review.decide(&reviewer("a"), old, ruling(), LEASE_MS + 1),
        Err(ReviewRefusal::Stale)
    );
    assert_eq!(
        review.decide(&reviewer("a"), token, ruling(), LEASE_MS + 1),
        Err(ReviewRefusal::Stale)
    );
    let again = review.claim(&reviewer("b"), LEASE_MS + 1).unwrap();
    assert_eq!(
        review.decide(&reviewer("b"), token, ruling(), LEASE_MS + 2),
        Err(ReviewRefusal::Stale)
    );
    review.release(&reviewer("b"), again, LEASE_MS + 2).unwrap();
    assert_eq!(review.status, ReviewStatus::Pending);
}

#[test]
fn four_eyes_are_those_of_two_people_on_one_text() {
    let mut review = Review::open(&new(Some("River People"), true), 0);
    let token = review.claim(&elder("a"), 1).unwrap();
    review.decide(&elder("a"), token, say(Ruling::Approve), 2).unwrap();
    assert_eq!(review.status, ReviewStatus::Pending, "one yes is half a yes");
    let other_key = Decider { holder: "key:second".into(), ..elder("a") };
    assert_eq!(review.claim(&other_key, 3), Err(ReviewRefusal::SamePerson));
    let token = review.claim(&elder("b"), 3).unwrap();
    review.decide(&elder("b"), token, edit("other words"), 4).unwrap();
    assert_eq!(review.status, ReviewStatus::Pending, "nobody else has seen the new words");
    let token = review.claim(&elder("a"), 5).unwrap();
    review.decide(&elder("a"), token, say(Ruling::Approve), 6).unwrap();
    assert_eq!(review.status, ReviewStatus::Approved);
    assert_eq!(review.edited.as_deref(), Some("other words"));
}

#[test]
fn where_two_must_agree_a_key_without_a_name_says_no_but_never_yes() {
    let nobody = |key: &str| Decider { named: false, ..reviewer(key) };
    let mut alone = Review::open(&new(None, false), 0);
    let token = alone.claim(&nobody("k1"), 1).unwrap();
    alone.decide(&nobody("k1"), token, say(Ruling::Approve), 2).unwrap();
    assert_eq!(alone.status, ReviewStatus::Approved, "one is enough, whoever it is");
    let mut council = Review::open(&new(None, false), 0);
    council.council = true;
    for ruling in [say(Ruling::Approve), edit("other words")] {
        let token = council.claim(&nobody("k1"), 1).unwrap();
        let refused = council.decide(&nobody("k1"), token, ruling, 2);
        assert_eq!(refused, Err(ReviewRefusal::Unnamed));
        assert!(council.approvals.is_empty() && council.rulings.is_empty());
        council.release(&nobody("k1"), token, 3).unwrap();
    }
    for person in ["a", "b"] {
        let token = council.claim(&reviewer(person), 4).unwrap();
        council.decide(&reviewer(person), token, say(Ruling::Approve), 5).unwrap();
    }
    assert_eq!(council.status, ReviewStatus::Approved);
    let mut rejected = Review::open(&new(None, true), 0);
    let token = rejected.claim(&nobody("k1"), 1).unwrap();
    rejected.decide(&nobody("k1"), token, say(Ruling::Reject), 2).unwrap();
    assert_eq!(rejected.status, ReviewStatus::Rejected);
}

#[test]
fn one_who_found_what_was_missed_is_not_outvoted() {
    let mut review = Review::open(&new(Some("River People"), true), 0);
    assert_eq!(review.pii_missed, None, "nobody looked");
    for (at, person, found) in [(1, "a", true), (3, "b", false)] {
        let token = review.claim(&elder(person), at).unwrap();
        let said = Said { pii_missed: Some(found), ..say(Ruling::Approve) };
        review.decide(&elder(person), token, said, at + 1).unwrap();
    }
    assert_eq!((review.status, review.pii_missed), (ReviewStatus::Approved, Some(true)));
}

#[test]
fn time_reminds_then_calls_the_council_and_frees_claims() {
    const HOUR: u64 = 3_600_000;
    let mut review = Review::open(&new(None, false), 0);
    assert_eq!(review.next_ms(), Some(12 * HOUR));
    assert_eq!(review.pass(11 * HOUR), None);
    assert_eq!(review.pass(12 * HOUR), Some(Notice::Half));
    assert_eq!(review.pass(13 * HOUR), None, "once");
    review.claim(&reviewer("a"), 13 * HOUR).unwrap();
    assert_eq!(review.pass(24 * HOUR), Some(Notice::Due));
    assert_eq!(review.status, ReviewStatus::Pending, "the claim was over");
    assert_eq!(review.pass(25 * HOUR), Some(Notice::Overdue));
    assert!(review.council);
    assert_eq!(review.approvals_needed(), 2);
    assert_eq!(review.pass(25 * HOUR + 1), None);
}

#[test]
fn consultation_starts_over_and_ends_some_time() {
    let mut review = Review::open(&new(None, false), 0);
    for at in 0..RULINGS_MAX as u64 {
        let token = review.claim(&reviewer("a"), at).unwrap();
        review.decide(&reviewer("a"), token, say(Ruling::NeedsConsultation), at).unwrap();
        assert_eq!(review.status, ReviewStatus::NeedsConsultation);
    }
    let token = review.claim(&reviewer("a"), 99).unwrap();
    let again = review.decide(&reviewer("a"), token, say(Ruling::NeedsConsultation), 99);
    assert_eq!(again, Err(ReviewRefusal::Exhausted));
    let unfit = Said { notes: "x".repeat(5_000), ..say(Ruling::Approve) };
    assert!(matches!(
        review.decide(&reviewer("a"), token, unfit, 99),
        Err(ReviewRefusal::Unfit(_))
    ));
}

/// Anything that anybody might do.
#[derive(Clone, Debug)]
enum Act {
    Claim(usize),
    Release(usize, u64),
    Decide(usize, u64, u8),
    Pass,
}

fn acts() -> impl Strategy<Value = Vec<(Act, u64)>> {
    let act = prop_oneof![
        (0usize..5).prop_map(Act::Claim),
        (0usize..5, 0u64..12).prop_map(|(who, token)| Act::Release(who, token)),
        (0usize..5, 0u64..12, 0u8..4).prop_map(|(who, token, what)| Act::Decide(who, token, what)),
        Just(Act::Pass),
    ];
    let pause = prop_oneof![Just(1u64), Just(LEASE_MS), Just(90_000_000u64)];
    proptest::collection::vec((act, pause), 0..60)
}

/// Two elders, a reviewer, an elder of others, the author.
fn people() -> [Decider; 5] {
    let mut stranger = elder("stranger");
    stranger.elder_of = vec!["hill people".into()];
    [elder("a"), elder("b"), reviewer("r"), stranger, elder("author")]
}

fn ruling(number: u8) -> Said {
    match number {
        0 => say(Ruling::Approve),
        1 => say(Ruling::Reject),
        2 => say(Ruling::NeedsConsultation),
        _ => edit("e"),
    }
}

proptest! {
    #[test]
    fn no_sequence_of_acts_breaks_the_rules(acts in acts(), four_eyes in any::<bool>()) {
        let mut review = Review::open(&new(Some("River People"), four_eyes), 0);
        let (people, mut now_ms) = (people(), 0);
        for (act, pause) in acts {
            now_ms += pause;
            let before = review.clone();
            match act {
                Act::Claim(who) => {
                    let claimed = review.claim(&people[who], now_ms);
                    prop_assert!(claimed.is_err() || who < 2, "only its elders");
                    prop_assert!(claimed.is_err() || claimed == Ok(before.fence + 1));
                }
                Act::Release(who, token) => drop(review.release(&people[who], token, now_ms)),
                Act::Decide(who, token, what) => {
                    let decided = review.decide(&people[who], token, ruling(what), now_ms);
                    if decided.is_ok() {
                        prop_assert!(who < 2, "only its elders");
                        prop_assert_eq!(token, before.fence, "only the latest token");
                        let claim = before.claim.clone().unwrap();
                        prop_assert!(claim.by == people[who].person && now_ms < claim.until_ms);
                    } else {
                        prop_assert_eq!(&review, &before, "a refusal changes nothing");
                    }
                }
                Act::Pass => drop(review.pass(now_ms)),
            }
            if before.status == ReviewStatus::Rejected {
                prop_assert_eq!(review.status, ReviewStatus::Rejected, "never released");
            }
            if review.status == ReviewStatus::Approved {
                let mut agreed = review.approvals.clone();
                agreed.sort();
                agreed.dedup();
                prop_assert!(agreed.len() >= review.approvals_needed());
            }
        }
    }
}

#[test]
fn what_belongs_to_two_communities_needs_an_elder_of_each() {
    let of = |person: &str, communities: &[&str]| Decider {
        elder_of: communities.iter().map(|one| (*one).to_owned()).collect(),
        ..elder(person)
    };
    let new = NewReview { others: vec!["Sea People".into()], ..new(Some("River People"), true) };
    let say_yes = |review: &mut Review, who: &Decider| {
        let token = review.claim(who, 1).unwrap();
        review.decide(who, token, say(Ruling::Approve), 2).unwrap();
        review.status
    };
    let mut review = Review::open(&new, 0);
    assert_eq!(say_yes(&mut review, &elder("a")), ReviewStatus::Pending);
    assert_eq!(say_yes(&mut review, &elder("b")), ReviewStatus::Pending, "two, but of one people");
    assert_eq!(review.claim(&of("h", &["hill people"]), 1), Err(ReviewRefusal::NotAnElder));
    assert_eq!(say_yes(&mut review, &of("s", &["sea people"])), ReviewStatus::Approved);
    let mut review = Review::open(&new, 0);
    let both = of("m", &["river people", "sea people"]);
    assert_eq!(say_yes(&mut review, &both), ReviewStatus::Pending, "four eyes all the same");
    assert_eq!(say_yes(&mut review, &elder("a")), ReviewStatus::Approved);
    let mut review = Review::open(&new, 0);
    say_yes(&mut review, &of("s", &["sea people"]));
    let token = review.claim(&elder("a"), 1).unwrap();
    review.decide(&elder("a"), token, edit("other words"), 2).unwrap();
    assert_eq!(
        say_yes(&mut review, &elder("b")),
        ReviewStatus::Pending,
        "the sea has not seen them"
    );
    let mut review = Review::open(&new, 0);
    let token = review.claim(&of("s", &["sea people"]), 1).unwrap();
    review.decide(&of("s", &["sea people"]), token, say(Ruling::Reject), 2).unwrap();
    assert_eq!(review.status, ReviewStatus::Rejected, "one no is enough");
}
