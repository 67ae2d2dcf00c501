//! Who speaks for a community, and what it has laid down.

use crate::house::{Office, caller, office, tenant};
use conclave_govern::{
    CulturalAsk, CulturalFinding, NewReview, Protocol, ReviewKind, ReviewPriority, Ruling, Said,
};
use conclave_people::PeopleError;
use conclave_ports::{Caller, Governance, KeyRole};
use serde_json::json;

const RIVER: &str = "River People";

#[tokio::test]
async fn only_elders_change_what_is_theirs_and_others_see_the_public_part() {
    let office = office().with_elders().await;
    let people = &office.people;
    let protocol = river_protocol();
    for role in KeyRole::ALL {
        let stranger = caller("stranger", role);
        let refused = people.lay_down(&stranger, protocol.clone(), None).await;
        assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{role:?}");
        let named = people.name_elder(&stranger, "river people", "s", "S").await;
        match named {
            Ok(now) if role == KeyRole::Owner => assert_eq!(now.proposals.len(), 1, "no elder yet"),
            other => assert!(matches!(other, Err(PeopleError::Forbidden(_))), "{role:?}"),
        }
    }
    // The right key in the wrong role is the wrong key.
    let owner = caller("e1", KeyRole::Owner);
    assert!(people.lay_down(&owner, protocol.clone(), None).await.is_err());
    let elder = caller("e1", KeyRole::Elder);
    assert_eq!(people.lay_down(&elder, protocol.clone(), Some(0)).await, Ok(1));
    assert_eq!(people.lay_down(&elder, protocol, Some(0)).await, Err(PeopleError::Conflict));
    let own = people.protocol(&elder, "RIVER people").await.unwrap();
    assert_eq!(own.protocol.terms.len(), 1);
    let seen = people.protocol(&caller("a", KeyRole::Admin), "River People").await.unwrap();
    assert!(seen.protocol.terms.is_empty());
    let ask = |text: &str| CulturalAsk {
        texts: vec![text.into()],
        sensitivity: conclave_core::Sensitivity::Low,
        affiliations: vec![],
        labels: vec![],
        audience: None,
        now_ms: 0,
    };
    let found = people.look(&tenant("t"), ask("They carried the churinga.")).await.unwrap();
    assert!(matches!(found, CulturalFinding::Hold { sacred: true, .. }), "{found:?}");
    let found = people.look(&tenant("other"), ask("They carried the churinga.")).await.unwrap();
    assert_eq!(found, CulturalFinding::Clear, "each tenant has its own communities");
    let last = people.remove_elder(&elder, "River People", "e2").await.unwrap();
    assert_eq!(last.elders.len(), 1);
    assert!(people.remove_elder(&elder, "River People", "e1").await.is_err(), "the last stays");
}

fn river_protocol() -> Protocol {
    let protocol = json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]});
    serde_json::from_value(protocol).unwrap()
}

#[tokio::test]
async fn a_first_elder_without_a_key_does_not_lock_a_community_out_of_its_protocol() {
    let office = office();
    let people = &office.people;
    let owner = caller("o", KeyRole::Owner);
    people.name_elder(&owner, "River People", "person:ana", "Ana").await.unwrap();
    // An account decides reviews in the dashboard; a protocol is laid down with a key.
    people.name_elder(&owner, "River People", "k1", "Ana").await.unwrap();
    let elder = caller("k1", KeyRole::Elder);
    assert_eq!(people.lay_down(&elder, river_protocol(), None).await, Ok(1));
}

/// The River People, for whom the elder with the key `k1` has acted.
async fn river_people() -> (Office, Caller) {
    let office = office();
    let owner = caller("o", KeyRole::Owner);
    let people = &office.people;
    people.name_elder(&owner, RIVER, "person:ana", "Ana").await.unwrap();
    people.name_elder(&owner, RIVER, "k1", "Ben").await.unwrap();
    people.lay_down(&caller("k1", KeyRole::Elder), river_protocol(), None).await.unwrap();
    (office, owner)
}

async fn holders(office: &Office) -> Vec<String> {
    let elders = office.people.elders(&tenant("t"), RIVER).await.unwrap();
    elders.into_iter().map(|elder| elder.holder).collect()
}

/// The owner proposes somebody; returns the review.
async fn propose(office: &Office, owner: &Caller, holder: &str) -> String {
    let mut now = office.people.name_elder(owner, RIVER, holder, "Cora").await.unwrap();
    now.proposals.pop().unwrap().review_id
}

async fn decide(office: &Office, elder: &Caller, review: &str, ruling: Ruling) {
    let token = office.people.claim_review(elder, review).await.unwrap().review.fence;
    let said =
        Said { ruling, notes: String::new(), conditions: vec![], pii_missed: None, answer: None };
    office.people.decide_review(elder, review, token, &said).await.unwrap();
}

#[tokio::test]
async fn the_owner_corrects_whom_they_named_until_an_elder_has_acted() {
    let office = office();
    let people = &office.people;
    let owner = caller("o", KeyRole::Owner);
    people.name_elder(&owner, RIVER, "a typing error", "Ana").await.unwrap();
    people.remove_elder(&owner, RIVER, "a typing error").await.unwrap();
    assert!(holders(&office).await.is_empty());
    people.name_elder(&owner, RIVER, "e1", "Ana").await.unwrap();
    assert!(people.lay_down(&owner, river_protocol(), None).await.is_err(), "there is an elder");
    let new = NewReview {
        kind: ReviewKind::ElderReview,
        tenant: tenant("t"),
        content_type: "chat".into(),
        community: Some(RIVER.into()),
        others: vec![],
        issues: vec![],
        priority: ReviewPriority::High,
        audit_id: None,
        author: None,
        subject: None,
        four_eyes: false,
    };
    let review = people.submit(new).await.unwrap();
    people.claim_review(&caller("e1", KeyRole::Elder), &review).await.unwrap();
    assert!(people.remove_elder(&owner, RIVER, "e1").await.is_err(), "Ana has taken her seat");
    let now = people.name_elder(&owner, RIVER, "e2", "Ben").await.unwrap();
    assert_eq!((now.elders.len(), now.proposals.len()), (1, 1), "now it is for Ana to say");
}

#[tokio::test]
async fn the_owner_prepares_a_protocol_for_a_community_without_elders_only() {
    let office = office();
    let people = &office.people;
    let owner = caller("o", KeyRole::Owner);
    assert!(people.lay_down(&caller("a", KeyRole::Admin), river_protocol(), None).await.is_err());
    assert_eq!(people.lay_down(&owner, river_protocol(), None).await, Ok(1));
    let prepared = people.protocol(&owner, RIVER).await.unwrap();
    assert_eq!(prepared.protocol.terms.len(), 1, "who wrote it may read it");
    people.name_elder(&owner, RIVER, "e1", "Ana").await.unwrap();
    let refused = people.lay_down(&owner, river_protocol(), None).await;
    assert!(matches!(refused, Err(PeopleError::Forbidden(_))), "{refused:?}");
    assert!(people.protocol(&owner, RIVER).await.unwrap().protocol.terms.is_empty());
    let elder = caller("e1", KeyRole::Elder);
    assert_eq!(people.lay_down(&elder, river_protocol(), Some(1)).await, Ok(2));
}

#[tokio::test]
async fn whom_the_owner_proposes_is_an_elder_once_an_elder_agrees_and_never_when_one_refuses() {
    let (office, owner) = river_people().await;
    // Ana has an account and no key: she decides in the dashboard.
    let ana = caller("person:ana", KeyRole::Elder);
    let refused = propose(&office, &owner, "k2").await;
    decide(&office, &ana, &refused, Ruling::Reject).await;
    let agreed = propose(&office, &owner, "k3").await;
    assert_eq!(holders(&office).await, ["person:ana", "k1"], "nobody has agreed yet");
    let stranger = caller("k3", KeyRole::Elder);
    assert!(office.people.claim_review(&stranger, &agreed).await.is_err(), "not by themselves");
    assert!(office.people.claim_review(&owner, &agreed).await.is_err(), "nor by the owner");
    decide(&office, &ana, &agreed, Ruling::Approve).await;
    assert_eq!(holders(&office).await, ["person:ana", "k1", "k3"]);
    office.pass(365 * 86_400_000);
    assert_eq!(holders(&office).await, ["person:ana", "k1", "k3"], "a refusal is final");
    let renewed = office.people.lay_down(&stranger, river_protocol(), None).await;
    assert_eq!(renewed, Ok(2));
    let told = format!("{:?}", office.records.entries());
    assert!(!told.contains("Cora") && told.contains("elder_proposed"), "{told}");
}

#[tokio::test]
async fn a_community_whose_elders_lost_their_keys_is_recovered_after_long_silence() {
    let (office, owner) = river_people().await;
    propose(&office, &owner, "k2").await;
    office.pass(30 * 86_400_000 - 1);
    assert_eq!(holders(&office).await, ["person:ana", "k1"]);
    let early = office.people.lay_down(&caller("k2", KeyRole::Elder), river_protocol(), None).await;
    assert!(matches!(early, Err(PeopleError::Forbidden(_))), "{early:?}");
    office.pass(1);
    assert_eq!(holders(&office).await, ["person:ana", "k1", "k2"]);
    let recovered = caller("k2", KeyRole::Elder);
    assert_eq!(office.people.lay_down(&recovered, river_protocol(), None).await, Ok(2));
    let left = office.people.remove_elder(&recovered, RIVER, "k1").await.unwrap();
    assert_eq!(left.elders.len(), 2);
}
