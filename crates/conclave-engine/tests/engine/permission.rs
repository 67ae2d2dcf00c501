//! Consent and jurisdiction in chat and in recipes, where a tenant's policy asks for them.

use crate::fakes::Scripted;
use crate::money::{Kept, kept};
use crate::office::{Office, office};
use crate::turns::{KIND, turn};
use conclave_core::{GuardCode, KeyId, Outcome, TenantId, UserId};
use conclave_engine::{Engine, Settings, Turn};
use conclave_govern::{ConsentEvidence, ConsentRecord, EvidenceKind, ReviewKind};
use conclave_ledger::Value;
use conclave_recipes::{Run, RunEnding, RunRequest};
use serde_json::json;
use std::sync::Arc;

fn tenant() -> TenantId {
    TenantId::new("default").unwrap()
}

/// A house under this policy, with records of consent.
fn asking(policy: serde_json::Value) -> (Kept, Office) {
    let mut kept = kept(Scripted::saying(&[Ok(KIND)]), policy);
    let office = office();
    kept.house.engine.governance = Some(office.people.clone());
    (kept, office)
}

fn evidence() -> ConsentEvidence {
    ConsentEvidence { kind: EvidenceKind::Written, reference: "form 7".into() }
}

fn consent(scope: &str, purpose: &str) -> ConsentRecord {
    ConsentRecord {
        subject: "ana".into(),
        scopes: vec![scope.into()],
        purposes: vec![purpose.into()],
        parties: vec![],
        given_ms: 1,
        expires_ms: None,
        evidence: evidence(),
        withdrawn: None,
    }
}

fn said(text: &str) -> Turn {
    let key = Some(KeyId::new("app").unwrap());
    Turn { user: Some(UserId::new("ana").unwrap()), key, ..turn(text) }
}

/// How a turn is refused, if it is; and how often a model was asked so far.
async fn refused(kept: &Kept, turn: Turn) -> (Option<GuardCode>, usize) {
    let reply = kept.house.engine.deliver(turn).await.unwrap();
    (reply.decision.refusal, kept.house.model.asked.lock().unwrap().len())
}

#[tokio::test]
async fn chat_asks_for_consent_where_the_policy_says_so_and_a_withdrawal_acts_on_the_next_turn() {
    let (kept, office) = asking(json!({"require_consent_for_agents": ["chat"]}));
    let needed = Some(GuardCode::ConsentRequired);
    assert_eq!(refused(&kept, said("My day was long.")).await, (needed, 0));
    assert_eq!(refused(&kept, turn("My day was long.")).await, (needed, 0), "nobody is named");
    let people = &office.people;
    people.give_consent(&tenant(), "app", consent("research", "conversation")).await.unwrap();
    people.give_consent(&tenant(), "app", consent("chat", "marketing")).await.unwrap();
    assert_eq!(refused(&kept, said("My day was long.")).await, (needed, 0), "not to this");
    let given = people.give_consent(&tenant(), "app", consent("chat", "conversation")).await;
    assert_eq!(refused(&kept, said("My day was long.")).await, (None, 1));
    people.withdraw_consent(&tenant(), "app", &given.unwrap(), evidence()).await.unwrap();
    let withdrawn = Some(GuardCode::ConsentWithdrawn);
    assert_eq!(refused(&kept, said("My day was long.")).await, (withdrawn, 1), "at once");
    let reply = kept.house.engine.deliver(said("I want to kill myself tonight")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::SafeCompletion, "contact is never refused");
    assert_eq!(kept.house.model.asked.lock().unwrap().len(), 1, "and no model saw it");
    let leaves = kept.house.ledger.leaves();
    let codes: Vec<_> = leaves
        .iter()
        .filter_map(|leaf| leaf.draft.public.get("refusal").and_then(Value::as_str))
        .collect();
    let asked = "consent_required";
    assert_eq!(codes, [asked, asked, asked, "consent_withdrawn"], "every refusal is recorded");
}

#[tokio::test]
async fn consent_that_cannot_be_asked_for_lets_nothing_through() {
    let (mut kept, _office) = asking(json!({"require_consent_for_agents": ["*"]}));
    kept.house.engine.governance = Some(Arc::new(crate::holding::Silent));
    let reply = kept.house.engine.deliver(said("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::GuardUnavailable);
    let settings = Settings { staffed: true, ..(*kept.house.engine.settings).clone() };
    let staffed = Engine { settings: Arc::new(settings), ..kept.house.engine.clone() };
    let reply = staffed.deliver(said("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held, "a person can decide");
    assert!(kept.house.model.asked.lock().unwrap().is_empty());
}

fn from(country: Option<&str>, text: &str) -> Turn {
    let mut turn = said(text);
    turn.context.country = country.map(str::to_owned);
    turn
}

fn running_in(kept: &mut Kept, country: Option<&str>) {
    let place: Vec<_> = country.map(|country| ("test", country)).into_iter().collect();
    kept.house.place_providers(&place);
}

#[tokio::test]
async fn regions_act_in_chat() {
    let (mut kept, office) = asking(json!({"regions": ["DE"]}));
    let away = Some(GuardCode::Jurisdiction);
    for (provider, country, expected) in [
        (Some("US"), Some("FR"), None),
        (Some("RU"), Some("FR"), away),
        (Some("US"), None, away),
        (None, Some("FR"), away),
        (Some("US"), Some("CN"), away),
    ] {
        running_in(&mut kept, provider);
        let (found, _) = refused(&kept, from(country, "My day was long.")).await;
        assert_eq!(found, expected, "{provider:?} {country:?}");
    }
    assert_eq!(kept.house.model.asked.lock().unwrap().len(), 1);
    let crisis = from(None, "I want to kill myself tonight");
    let reply = kept.house.engine.deliver(crisis).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::SafeCompletion);
    // Where somebody can decide, what is unknown waits for them; what is forbidden does not.
    running_in(&mut kept, Some("US"));
    let settings = Settings { staffed: true, ..(*kept.house.engine.settings).clone() };
    let staffed = Engine { settings: Arc::new(settings), ..kept.house.engine.clone() };
    let reply = staffed.deliver(from(None, "My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Held);
    let owner = crate::office::caller("o", conclave_engine::KeyRole::Owner);
    let owner = conclave_engine::Caller { tenant: tenant(), ..owner };
    let held = office.people.review(&owner, &reply.review_id.unwrap()).await.unwrap();
    let review = held.record.review;
    assert_eq!(review.kind, ReviewKind::Escalation);
    assert_eq!(review.issues[0].code, "jurisdiction_unknown");
    let reply = staffed.deliver(from(Some("CN"), "My day was long.")).await.unwrap();
    assert_eq!(reply.decision.refusal, away);
}

fn sentinel(scopes: &[&str], country: Option<&str>) -> Run {
    let request: RunRequest = serde_json::from_value(json!({
        "agent_name": "governance-sentinel",
        "context": {"user_id": "ana", "sensitivity_level": "low", "consent_scope": scopes,
                    "purpose": "conversation", "country": country},
        "input": {"request": {"input": {"note": "hello"}}, "phase": "pre"},
    }))
    .unwrap();
    let recipe = "governance-sentinel".to_owned();
    Run { tenant: tenant(), key: None, recipe, request, approved_run: None }
}

#[tokio::test]
async fn a_recipe_without_such_guards_has_them_where_the_policy_says_so() {
    let (kept, office) = asking(json!({"require_consent_for_agents": ["governance-sentinel"]}));
    let code = async |kept: &Kept, run: Run| match kept.house.recipes().execute(run).await {
        Ok(done) => match done.ending {
            RunEnding::Refused { code, .. } => code.as_str(),
            RunEnding::Done => "done",
            RunEnding::Held { .. } => "held",
            other => panic!("{other:?}"),
        },
        Err(error) => panic!("{error}"),
    };
    assert_eq!(code(&kept, sentinel(&[], None)).await, "consent_required");
    assert_eq!(code(&kept, sentinel(&["chat"], None)).await, "consent_required");
    let given = office.people.give_consent(&tenant(), "app", consent("chat", "conversation")).await;
    assert_eq!(code(&kept, sentinel(&["chat"], None)).await, "done");
    office.people.withdraw_consent(&tenant(), "app", &given.unwrap(), evidence()).await.unwrap();
    assert_eq!(code(&kept, sentinel(&["chat"], None)).await, "consent_withdrawn");
    let (kept, _office) = asking(json!({"regions": ["RU"]}));
    assert_eq!(code(&kept, sentinel(&[], Some("FR"))).await, "jurisdiction");
    assert_eq!(code(&kept, sentinel(&[], Some("RU"))).await, "done");
    assert_eq!(code(&kept, sentinel(&[], None)).await, "held", "unknown waits for a person");
}
