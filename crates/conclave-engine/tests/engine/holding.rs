//! Turns and replies that wait for a person.

use crate::fakes::Scripted;
use crate::office::{Office, caller, hand_out, office};
use crate::turns::{House, KIND, house, jury, turn};
use conclave_core::{
    Candidate, FinishReason, GuardCode, KeyId, Message, Outcome, Role, Sensitivity, ToolCall,
};
use conclave_engine::{
    Caller, Engine, GovernError, Governance, KeyRole, Settings, StoredDecision, Turn,
};
use conclave_govern::{
    ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview, Ruling, Said,
};
use conclave_ledger::Kind;
use conclave_people::{ReviewResult, held_words};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub const TOLD: &str = "And then they carried the churinga to the cave.";

/// A house with two elders of the River People and their protocol.
pub async fn governed(model: Arc<Scripted>) -> (House, Office) {
    let office = office();
    let owner = Caller { tenant: turn("").tenant, ..caller("o", KeyRole::Owner) };
    let elder = Caller { holder: "e1".into(), role: KeyRole::Elder, ..owner.clone() };
    let people = &office.people;
    people.name_elder(&owner, "River People", "e1", "Ana").await.unwrap();
    people.name_elder(&elder, "River People", "e2", "Ben").await.unwrap();
    let protocol = json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]});
    let protocol = serde_json::from_value(protocol).unwrap();
    people.lay_down(&elder, protocol, None).await.unwrap();
    let mut house = house(model, jury());
    house.engine.governance = Some(people.clone());
    (house, office)
}

pub fn keyed(text: &str) -> Turn {
    Turn { key: Some(KeyId::new("app").unwrap()), ..turn(text) }
}

/// Both elders decide; the first ruling is given by the first, and so on.
async fn decide(office: &Office, id: &str, rulings: &[Ruling]) {
    for (holder, ruling) in ["e1", "e2"].into_iter().zip(rulings) {
        let elder = Caller { tenant: turn("").tenant, ..caller(holder, KeyRole::Elder) };
        let token = office.people.claim_review(&elder, id).await.unwrap().review.fence;
        let said = Said {
            ruling: ruling.clone(),
            notes: "n".into(),
            conditions: vec![],
            pii_missed: None,
            answer: None,
        };
        office.people.decide_review(&elder, id, token, &said).await.unwrap();
    }
}

#[tokio::test]
async fn what_the_input_holds_never_reaches_a_model() {
    let (house, office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    let reply = house.engine.deliver(keyed(TOLD)).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held);
    let delivered = &reply.decision.choices[0].delivered;
    assert_eq!(delivered.finish, FinishReason::ContentFilter);
    assert!(!delivered.text.is_empty() && !delivered.text.contains("churinga"));
    assert!(house.model.asked.lock().unwrap().is_empty());
    let id = reply.review_id.unwrap();
    let tenant = turn("").tenant;
    let desk = hand_out(&house.engine, &office.people);
    let released = || desk.fetch_reply(&tenant, reply.decision.id, "app");
    assert!(matches!(released().await.unwrap(), ReviewResult::Waiting { .. }));
    decide(&office, &id, &[Ruling::Approve, Ruling::EditAndApprove { text: "x".into() }]).await;
    assert!(
        matches!(released().await.unwrap(), ReviewResult::Waiting { .. }),
        "other words, other yes"
    );
    let sealed =
        held_words(&*house.engine.archive, &tenant, reply.decision.id).await.unwrap().unwrap();
    assert!(sealed.request.to_string().contains("churinga"));
}

#[tokio::test]
async fn a_reply_that_tells_is_held_and_released_by_two_elders_alone() {
    let (house, office) = governed(Scripted::saying(&[Ok(TOLD)])).await;
    let reply = house.engine.deliver(keyed("Tell me of the river.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held, "{:?}", reply.decision.choices);
    assert!(!reply.decision.choices[0].delivered.text.contains("churinga"));
    let tenant = turn("").tenant;
    decide(&office, &reply.review_id.clone().unwrap(), &[Ruling::Approve, Ruling::Approve]).await;
    let desk = hand_out(&house.engine, &office.people);
    let released = desk.fetch_reply(&tenant, reply.decision.id, "app").await.unwrap();
    let ReviewResult::Approved { text, edited, .. } = released else { panic!("{released:?}") };
    assert_eq!((text.as_deref(), edited), (Some(TOLD), false));
    let told = office.records.entries();
    let reviews = told.iter().filter(|(kind, _)| *kind == Kind::ReviewChange).count();
    assert_eq!(reviews, 5, "created, and twice claimed and approved");
    assert!(!format!("{told:?}").contains("churinga"), "no words in the log");
}

#[tokio::test]
async fn what_was_rejected_is_never_released() {
    let (house, office) = governed(Scripted::saying(&[Ok(TOLD)])).await;
    let reply = house.engine.deliver(keyed("Tell me of the river.")).await.unwrap();
    decide(&office, &reply.review_id.clone().unwrap(), &[Ruling::Reject]).await;
    let desk = hand_out(&house.engine, &office.people);
    let released = desk.fetch_reply(&turn("").tenant, reply.decision.id, "app").await.unwrap();
    assert!(matches!(released, ReviewResult::Rejected { .. }), "{released:?}");
}

#[tokio::test]
async fn a_lesson_goes_on_and_what_nobody_can_decide_is_refused_at_once() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    let lesson = keyed("In our school lesson we ask: what is a churinga?");
    let reply = house.engine.deliver(lesson).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Delivered);
    let mut sacred = keyed("Hello.");
    sacred.context.sensitivity = Sensitivity::Sacred;
    sacred.context.affiliations = vec!["Hill People".into()];
    let reply = house.engine.deliver(sacred).await.unwrap();
    assert_eq!((reply.decision.outcome, reply.review_id), (Outcome::Blocked, None));
}

#[tokio::test]
async fn a_person_in_crisis_is_answered_whatever_their_words_belong_to() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    let text = "I want to kill myself. And then they carried the churinga.";
    let reply = house.engine.deliver(keyed(text)).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::SafeCompletion);
    assert!(house.model.asked.lock().unwrap().is_empty(), "no model saw it");
}

#[tokio::test]
async fn an_escalated_reply_waits_for_a_reviewer_where_there_is_one() {
    let (house, office) = governed(Scripted::saying(&[Ok("Yeah, do it.")])).await;
    let angry = || keyed("I'm so angry I could hurt someone");
    let reply = house.engine.deliver(angry()).await.unwrap();
    assert_eq!((reply.decision.outcome, reply.review_id), (Outcome::Escalated, None));
    let settings = Settings { staffed: true, ..(*house.engine.settings).clone() };
    let staffed = Engine { settings: Arc::new(settings), ..house.engine.clone() };
    let reply = staffed.deliver(angry()).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Escalated);
    let reviewer = Caller { tenant: turn("").tenant, ..caller("r", KeyRole::Reviewer) };
    let held = office.people.review(&reviewer, &reply.review_id.unwrap()).await.unwrap();
    assert_eq!(held.record.review.kind.as_str(), "escalation");
}

/// A tenant in which nobody decides anything.
struct Unattended;

impl Governance for Unattended {
    fn consent<'a>(
        &'a self,
        _: &'a conclave_core::TenantId,
        _: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        std::future::ready(Err(GovernError("nobody".into()))).boxed()
    }

    fn look<'a>(
        &'a self,
        _: &'a conclave_core::TenantId,
        _: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        std::future::ready(Ok(CulturalFinding::Clear)).boxed()
    }

    fn submit(&self, _: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        std::future::ready(Ok("rev_1".into())).boxed()
    }

    fn has_reviewers<'a>(
        &'a self,
        _: &'a conclave_core::TenantId,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        std::future::ready(Ok(false)).boxed()
    }
}

#[tokio::test]
async fn a_person_is_promised_only_where_the_tenant_has_somebody_who_looks() {
    let (mut house, office) = governed(Scripted::saying(&[Ok("Yeah, do it.")])).await;
    let settings = Settings { staffed: true, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    let people: Arc<dyn Governance> = office.people.clone();
    for (governance, is_promised) in [(people, true), (Arc::new(Unattended), false)] {
        let engine = Engine { governance: Some(governance), ..house.engine.clone() };
        let angry = keyed("I'm so angry I could hurt someone");
        let decision = engine.deliver(angry).await.unwrap().decision;
        assert_eq!(decision.outcome, Outcome::Escalated);
        let text = &decision.choices[0].delivered.text;
        assert_eq!(text.contains("person will"), is_promised, "{text}");
    }
}

#[tokio::test]
async fn what_elders_decide_is_not_said_to_need_an_approval_that_nobody_gives() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    assert!(!house.engine.settings.staffed, "elders need no reviewers beside them");
    let reply = house.engine.deliver(keyed(TOLD)).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held);
    let text = &reply.decision.choices[0].delivered.text;
    assert!(text.contains("person's approval"), "{text}");
    assert!(!text.contains("not set up") && !text.contains("not available"), "{text}");
}

#[tokio::test]
async fn a_reply_for_a_community_without_elders_ends_like_an_input_for_it() {
    let office = office();
    let owner = Caller { tenant: turn("").tenant, ..caller("o", KeyRole::Owner) };
    let protocol = json!({"community": "Hill People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]});
    let protocol = serde_json::from_value(protocol).unwrap();
    office.people.lay_down(&owner, protocol, None).await.unwrap();
    let mut house = house(Scripted::saying(&[Ok(TOLD)]), jury());
    house.engine.governance = Some(office.people.clone());
    for (asked, phase) in [(TOLD, "pre"), ("Tell me of the river.", "post")] {
        let reply = house.engine.deliver(keyed(asked)).await.unwrap();
        let decision = &reply.decision;
        assert_eq!(decision.outcome, Outcome::Blocked, "{asked}");
        assert_eq!(decision.choices[0].outcome, Outcome::Blocked, "{asked}");
        assert_eq!(decision.refusal, Some(GuardCode::NoElders), "{asked}");
        assert_eq!(reply.review_id, None, "nobody could decide it");
        assert_eq!(decision.findings[0].phase.as_str(), phase);
        assert!(!decision.choices[0].delivered.text.contains("churinga"));
    }
}

/// Governance that never answers.
pub struct Silent;

impl Governance for Silent {
    fn consent<'a>(
        &'a self,
        _: &'a conclave_core::TenantId,
        _: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        std::future::ready(Err(GovernError("silent".into()))).boxed()
    }

    fn look<'a>(
        &'a self,
        _: &'a conclave_core::TenantId,
        _: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        std::future::ready(Err(GovernError("silent".into()))).boxed()
    }

    fn submit(&self, _: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        std::future::ready(Err(GovernError("silent".into()))).boxed()
    }
}

#[tokio::test]
async fn a_guard_that_does_not_answer_lets_nothing_through() {
    let mut house = house(Scripted::saying(&[Ok(KIND)]), jury());
    house.engine.governance = Some(Arc::new(Silent));
    let reply = house.engine.deliver(keyed("Hello.")).await.unwrap();
    let outcome = reply.decision.outcome;
    assert_eq!(outcome, Outcome::GuardUnavailable, "nobody is here who could decide");
    assert!(house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_reply_made_elsewhere_waits_for_elders_too() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    let reply = |text: &str| Candidate { text: text.into(), ..Candidate::default() };
    for (asked, told) in [("Tell me of the river.", TOLD), (TOLD, KIND)] {
        let judged = house.engine.verify(keyed(asked), reply(told)).await.unwrap();
        assert_eq!(judged.decision.outcome, Outcome::Held, "{asked}");
        assert!(judged.review_id.is_some());
        assert!(!judged.decision.choices[0].delivered.text.contains("churinga"));
    }
    let judged = house.engine.verify(keyed("Tell me of the river."), reply(KIND)).await.unwrap();
    assert_eq!((judged.decision.outcome, judged.review_id), (Outcome::Delivered, None));
    let read = house.engine.moderate(keyed(TOLD)).await.unwrap();
    assert_eq!(read.decision.outcome, Outcome::Delivered, "moderation only reads");
}

#[tokio::test]
async fn everything_a_model_would_be_shown_and_do_is_looked_at() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    for role in [Role::System, Role::Developer, Role::Assistant] {
        let mut turn = keyed("Tell me of the river.");
        turn.conversation =
            [Message::text(role, TOLD), Message::text(Role::User, "Tell me of the river.")].into();
        let reply = house.engine.deliver(turn).await.unwrap();
        assert_eq!(reply.decision.outcome, Outcome::Held, "{role:?}");
    }
    assert!(house.model.asked.lock().unwrap().is_empty());
    let call = ToolCall { id: "1".into(), name: "post".into(), arguments: TOLD.into() };
    let reply = Candidate { text: KIND.into(), tool_calls: vec![call], ..Candidate::default() };
    let judged = house.engine.verify(keyed("Tell me of the river."), reply).await.unwrap();
    assert_eq!(judged.decision.outcome, Outcome::Held);
}

#[tokio::test]
async fn every_held_choice_is_shown_and_released_with_the_others() {
    let other = "They sang to the churinga until morning.";
    let (house, office) = governed(Scripted::saying(&[Ok(TOLD), Ok(other)])).await;
    let asked = Turn { choices: 2, ..keyed("Tell me of the river.") };
    let reply = house.engine.deliver(asked).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held);
    let tenant = turn("").tenant;
    let words =
        held_words(&*house.engine.archive, &tenant, reply.decision.id).await.unwrap().unwrap();
    let reply_text = words.reply.unwrap();
    let approved = conclave_people::ReviewStanding::Approved;
    let shown = reply_text.open_decided(approved, conclave_people::DecisionReader::Words).unwrap();
    assert!(shown.contains(TOLD) && shown.contains(other), "{shown}");
    decide(&office, &reply.review_id.clone().unwrap(), &[Ruling::Approve, Ruling::Approve]).await;
    let desk = hand_out(&house.engine, &office.people);
    let released = desk.fetch_reply(&tenant, reply.decision.id, "app").await.unwrap();
    let ReviewResult::Approved { text, .. } = released else { panic!("{released:?}") };
    assert_eq!(text.as_deref(), Some(shown));
}

/// Protocols that can be asked once, and then again when they are back.
struct Fading {
    people: Arc<conclave_people::People>,
    asked: AtomicUsize,
}

impl Governance for Fading {
    fn consent<'a>(
        &'a self,
        tenant: &'a conclave_core::TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        Governance::consent(&*self.people, tenant, ask)
    }

    fn look<'a>(
        &'a self,
        tenant: &'a conclave_core::TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        if self.asked.fetch_add(1, Ordering::Relaxed) == 1 {
            panic!("told to");
        }
        self.people.look(tenant, ask)
    }

    fn submit(&self, review: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        self.people.submit(review)
    }
}

#[tokio::test]
async fn a_reply_nobody_could_look_at_is_looked_at_before_a_reviewers_yes_counts() {
    for (line, released) in [(TOLD, false), (KIND, true)] {
        let (mut house, office) = governed(Scripted::saying(&[Ok(line)])).await;
        let (people, asked) = (office.people.clone(), AtomicUsize::new(0));
        house.engine.governance = Some(Arc::new(Fading { people, asked }));
        let settings = Settings { staffed: true, ..(*house.engine.settings).clone() };
        house.engine.settings = Arc::new(settings);
        let reply = house.engine.deliver(keyed("Tell me of the river.")).await.unwrap();
        assert_eq!(reply.decision.outcome, Outcome::Held, "{:?}", reply.decision.choices);
        let tenant = turn("").tenant;
        let reviewer = Caller { tenant: tenant.clone(), ..caller("r", KeyRole::Reviewer) };
        let id = reply.review_id.unwrap();
        let token = office.people.claim_review(&reviewer, &id).await.unwrap().review.fence;
        let said = Said {
            ruling: Ruling::Approve,
            notes: "n".into(),
            conditions: vec![],
            pii_missed: None,
            answer: None,
        };
        office.people.decide_review(&reviewer, &id, token, &said).await.unwrap();
        let desk = hand_out(&house.engine, &office.people);
        let got = desk.fetch_reply(&tenant, reply.decision.id, "app").await.unwrap();
        assert_eq!(matches!(got, ReviewResult::Approved { .. }), released, "{got:?}");
    }
}

#[tokio::test]
async fn what_a_guard_did_in_a_conversation_stands_in_the_decision() {
    let (house, _office) = governed(Scripted::saying(&[Ok(KIND), Ok(KIND), Ok(KIND)])).await;
    let rows = |decision: &conclave_engine::Decision| {
        let row = |one: &conclave_core::Finding| {
            (one.guard.as_str(), one.phase.as_str(), one.disposition.as_str(), one.code_name())
        };
        decision.findings.iter().map(row).collect::<Vec<_>>()
    };
    let plain = house.engine.deliver(keyed("My day was long.")).await.unwrap();
    assert!(rows(&plain.decision).is_empty(), "what passes leaves no mark");
    let mut labelled = keyed("I learned this song from my aunt.");
    labelled.context.labels = vec!["tk_a".into()];
    let marked = house.engine.deliver(labelled).await.unwrap();
    assert_eq!(marked.decision.outcome, Outcome::Delivered);
    assert_eq!(marked.decision.action, conclave_core::Action::Flag);
    let flagged = ("cultural", "pre", "flagged", "cultural");
    assert_eq!(rows(&marked.decision)[0], flagged);
    let held = house.engine.deliver(keyed(TOLD)).await.unwrap();
    assert_eq!(rows(&held.decision), [("cultural", "pre", "held", "sacred")]);
    for (reply, wanted) in [(&marked, "flagged"), (&held, "held")] {
        let entries = house.engine.archive.find(0, reply.decision.id).await.unwrap();
        let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
        let seen = conclave_people::decision_view(
            &stored,
            conclave_people::DecisionReader::Public,
            conclave_people::ReviewStanding::Unasked,
        );
        assert_eq!(seen["guards"][0]["outcome"], wanted, "{seen}");
        let story = conclave_people::explain(
            &stored,
            conclave_people::ReviewStanding::Waiting,
            &conclave_people::AppealStanding::Open,
        )
        .story
        .join(" ");
        assert_eq!(story.contains("was marked"), wanted == "flagged", "{story}");
    }
}
