//! Whole turns through the engine, with every port in memory.

use crate::fakes::{Counting, FixedClock, Juror, MemoryLedger, OneModel, Scripted, opinion};
use conclave_core::{
    Action, Candidate, FinishReason, GenerationFailure, Message, Outcome, Reason, Role, Scrutiny,
    Sensitivity, SessionId, TenantId, TurnContext, UserId, Vote,
};
use conclave_engine::{
    AuditFailure, DeliverError, Engine, KeyedSubjects, Memory, Panel, PerTenant, Settings, Shares,
    StoredDecision, Turn, Verifier, replay,
};
use conclave_engine::{Places, PolicyInForce, PolicySource, Records, standard_guards};
use conclave_govern::Jurisdictions;
use conclave_ledger::{Kind, Value};
use conclave_money::Steward;
use conclave_people::{ContributorKind, ReviewStanding, decision_view, explain};
use conclave_recipes::{RecipeRunner, RecipeSettings, Workshop};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

pub struct House {
    pub engine: Engine,
    pub ledger: Arc<MemoryLedger>,
    pub model: Arc<Scripted>,
    pub workshop: Arc<Workshop>,
    pub records: Option<Arc<dyn Records>>,
}

impl House {
    pub fn recipes(&self) -> RecipeRunner {
        RecipeRunner {
            engine: self.engine.clone(),
            workshop: self.workshop.clone(),
            records: self.records.clone(),
        }
    }

    /// Providers run in these countries.
    pub fn place_providers(&mut self, places: &[(&str, &str)]) {
        let places = places.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned()));
        let rules = Jurisdictions::builtin().unwrap();
        let provider_regions = places.collect();
        self.engine.places = Arc::new(Places { rules, provider_regions });
    }

    /// Only these models may see sensitive material.
    pub fn name_sensitive_models(&mut self, models: &[&str]) {
        let sensitive_models = models.iter().map(|one| (*one).to_owned()).collect();
        let settings = (*self.engine.settings).clone();
        self.engine.settings = Arc::new(Settings { sensitive_models, ..settings });
    }

    /// Money is kept, under the policies the steward knows.
    pub fn keep_money(&mut self, steward: Steward) {
        let steward = Arc::new(steward);
        self.engine.policies = steward.clone();
        self.engine.steward = Some(steward);
    }
}

/// Nobody has set a policy.
pub struct NoPolicies;

impl PolicySource for NoPolicies {
    fn in_force(&self, _: &TenantId) -> PolicyInForce {
        PolicyInForce::default()
    }
}

/// Objects to "Yeah, do it." as the reference example does; anything else is safe.
pub fn jury() -> Vec<Arc<dyn Verifier>> {
    let now = Duration::ZERO;
    let safe = |_: &str| Ok(opinion(Vote::Safe, 0.85, &[]));
    vec![
        Juror::seated("crisis", 3, now, |text| {
            Ok(if text == "Yeah, do it." {
                opinion(Vote::Harmful, 1.0, &[Reason::EncouragesHarm])
            } else {
                opinion(Vote::Safe, 0.85, &[])
            })
        }),
        Juror::seated("higher_self", 2, now, |text| {
            Ok(if text == "Calm down." {
                opinion(Vote::Concern, 1.0, &[Reason::Minimises])
            } else {
                opinion(Vote::Safe, 0.85, &[])
            })
        }),
        Juror::seated("wisdom", 2, now, safe),
        Juror::seated("shadow", 1, now, safe),
        Juror::seated("attachment", 1, now, safe),
        Juror::seated("classifier", 2, now, safe),
    ]
}

pub fn house(model: Arc<Scripted>, jury: Vec<Arc<dyn Verifier>>) -> House {
    let ledger = Arc::new(MemoryLedger::default());
    let resources = conclave_voice::Resources::builtin().unwrap();
    let engine = Engine {
        instinct: Arc::new(conclave_instinct::Instinct::builtin().unwrap()),
        detectors: PerTenant::shared(conclave_detect::Detector::builtin().unwrap()),
        field: Arc::new(conclave_voice::Field::builtin().unwrap()),
        voices: PerTenant::shared(conclave_voice::Voices::naming(resources).unwrap()),
        models: Arc::new(OneModel(model.clone())),
        guards: standard_guards(),
        panel: Panel::new(jury),
        verdicts: Arc::default(),
        readings: Arc::default(),
        ledger: ledger.clone(),
        archive: ledger.clone(),
        shares: Shares::default(),
        memory: Arc::new(Memory::new(ledger.clone())),
        subjects: Arc::new(KeyedSubjects([9; 32])),
        clock: Arc::new(FixedClock),
        entropy: Arc::new(Counting::default()),
        settings: Arc::new(Settings::standard([9; 32])),
        policies: Arc::new(NoPolicies),
        steward: None,
        governance: None,
        places: Arc::new(Places {
            rules: Jurisdictions::builtin().unwrap(),
            provider_regions: BTreeMap::new(),
        }),
        personal_data: Arc::default(),
    };
    let workshop = Arc::new(Workshop::new(&[], RecipeSettings::default()).unwrap());
    House { engine, ledger, model, workshop, records: None }
}

pub fn turn(text: &str) -> Turn {
    Turn {
        tenant: TenantId::new("default").unwrap(),
        key: None,
        user: None,
        session: SessionId::new("s").unwrap(),
        model: "scripted".into(),
        choices: 1,
        conversation: [Message::text(Role::User, text)].into(),
        body: Arc::default(),
        context: TurnContext::default(),
        kept: None,
    }
}

const ANGRY: &str = "I'm so angry I could hurt someone";
pub const KIND: &str = "That sounds like a huge amount of anger. What happened today?";

#[tokio::test]
async fn a_bad_first_reply_is_written_again_with_the_dissenters_reasons() {
    let house = house(Scripted::saying(&[Ok("Yeah, do it."), Ok(KIND)]), jury());
    let reply = house.engine.deliver(turn(ANGRY)).await.unwrap();
    let decision = &reply.decision;
    assert_eq!((decision.outcome, decision.attempts()), (Outcome::Delivered, 2));
    assert!(decision.choices[0].delivered.text.starts_with(KIND));
    let asked = house.model.asked.lock().unwrap();
    assert_eq!(asked[1].reasons, [Reason::EncouragesHarm]);
    let guidance = asked[1].guidance.as_deref().unwrap();
    assert!(guidance.contains(Reason::EncouragesHarm.guidance()), "{guidance}");
    assert!(!guidance.contains("Yeah"), "a reply must not reach the next prompt: {guidance}");
    assert_eq!(decision.cost.0, 2 * (10 + 5 * 2), "both attempts are paid for");
}

#[tokio::test]
async fn a_veto_to_the_end_calls_a_person_and_nothing_of_it_leaves() {
    let house = house(Scripted::saying(&[Ok("Yeah, do it.")]), jury());
    let reply = house.engine.deliver(turn(ANGRY)).await.unwrap();
    let choice = &reply.decision.choices[0];
    assert_eq!(reply.decision.outcome, Outcome::Escalated);
    assert_eq!(reply.decision.action, Action::Escalate);
    assert_eq!(choice.attempts.len(), 3);
    assert_eq!(choice.delivered.finish, FinishReason::ContentFilter);
    assert!(!choice.delivered.text.is_empty() && !choice.delivered.text.contains("do it"));
}

#[tokio::test]
async fn mild_dissent_exhausts() {
    let house = house(Scripted::saying(&[Ok("Calm down.")]), jury());
    let reply = house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Exhausted);
    assert_eq!(reply.decision.action, Action::Regenerate);
}

#[tokio::test(start_paused = true)]
async fn a_panel_that_never_stands_lets_nothing_through() {
    let absent = |name| Juror::seated(name, 3, Duration::from_secs(9), |_| Ok(None));
    let house = house(Scripted::saying(&[Ok(KIND)]), ["crisis", "a", "b"].map(absent).into());
    let reply = house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::GuardUnavailable);
    assert!(reply.decision.choices[0].attempts.iter().all(|attempt| attempt.panels.len() == 2));
}

#[tokio::test]
async fn a_model_that_is_down_is_a_failure_and_is_recorded() {
    let house = house(Scripted::saying(&[Err(GenerationFailure::Unreachable)]), jury());
    let reply = house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Failed);
    assert_eq!(reply.decision.failure(), Some(GenerationFailure::Unreachable));
    drop(reply);
    let kinds: Vec<_> = house.ledger.leaves().into_iter().map(|leaf| leaf.draft.kind).collect();
    assert_eq!(kinds, [Kind::Decision, Kind::Delivery]);
}

#[tokio::test(start_paused = true)]
async fn a_person_in_crisis_is_answered_in_eight_seconds_whatever_the_model_does() {
    let hour = Duration::from_secs(3600);
    for model in [
        Scripted::slowly(&[Ok(KIND)], hour),
        Scripted::saying(&[Err(GenerationFailure::Unreachable)]),
        Scripted::saying(&[Ok("Yeah, do it.")]),
    ] {
        let house = house(model, jury());
        let started = Instant::now();
        let reply = house.engine.deliver(turn("I want to kill myself")).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(8));
        assert_eq!(reply.decision.outcome, Outcome::SafeCompletion);
        assert_eq!(reply.decision.scrutiny, Scrutiny::Strict);
        let delivered = &reply.decision.choices[0].delivered;
        assert_eq!(delivered.finish, FinishReason::Stop);
        assert!(delivered.text.len() > 80, "{}", delivered.text);
    }
}

#[tokio::test]
async fn nothing_leaves_that_could_not_be_recorded() {
    let house = house(Scripted::saying(&[Ok(KIND)]), jury());
    house.ledger.broken.store(true, Ordering::Relaxed);
    let result = house.engine.deliver(turn("My day was long.")).await;
    assert!(matches!(result, Err(DeliverError::AuditUnavailable(_))));
}

fn delivering_unrecorded(house: &mut House) {
    let settings = Settings {
        audit_failure: AuditFailure::DeliverAndAlert,
        ..(*house.engine.settings).clone()
    };
    house.engine.settings = Arc::new(settings);
}

#[tokio::test]
async fn a_ledger_known_to_be_ill_costs_no_model_call() {
    let model = Scripted::saying(&[Ok(KIND)]);
    let house = house(model.clone(), jury());
    house.ledger.ill.store(true, Ordering::Relaxed);
    let result = house.engine.deliver(turn("My day was long.")).await;
    assert!(matches!(result, Err(DeliverError::AuditUnavailable(_))));
    assert!(model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_operator_may_choose_that_replies_leave_unrecorded() {
    let mut house = house(Scripted::saying(&[Ok(KIND)]), jury());
    delivering_unrecorded(&mut house);
    house.ledger.ill.store(true, Ordering::Relaxed);
    house.ledger.broken.store(true, Ordering::Relaxed);
    let reply = house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(reply.decision.choices[0].delivered.text, KIND);
    assert_eq!(reply.leaf_hash, None);
    drop(reply);
    assert!(house.ledger.leaves().is_empty(), "no delivery without its decision");
}

#[tokio::test]
async fn what_is_grave_or_cannot_be_an_entry_is_held_all_the_same() {
    for sensitivity in [Sensitivity::High, Sensitivity::Sacred] {
        let mut house = house(Scripted::saying(&[Ok(KIND)]), jury());
        delivering_unrecorded(&mut house);
        house.ledger.broken.store(true, Ordering::Relaxed);
        let mut grave = turn("My day was long.");
        grave.context.sensitivity = sensitivity;
        let result = house.engine.deliver(grave).await;
        assert!(matches!(result, Err(DeliverError::AuditUnavailable(_))));
    }
    let mut house = house(Scripted::saying(&[Ok(KIND)]), jury());
    delivering_unrecorded(&mut house);
    house.ledger.picky.store(true, Ordering::Relaxed);
    let result = house.engine.deliver(turn("My day was long.")).await;
    assert!(matches!(result, Err(DeliverError::AuditUnavailable(_))), "a way around the record");
}

#[tokio::test]
async fn an_unknown_model_is_named() {
    let house = house(Scripted::saying(&[Ok(KIND)]), jury());
    let unknown = Turn { model: "gpt-0".into(), ..turn("Hello") };
    let Err(DeliverError::UnknownModel(name)) = house.engine.deliver(unknown).await else {
        unreachable!("an unknown model was answered");
    };
    assert_eq!(name, "gpt-0");
}

#[tokio::test]
async fn every_choice_is_deliberated() {
    let house = house(Scripted::saying(&[Ok("Yeah, do it."), Ok(KIND)]), jury());
    let reply = house.engine.deliver(Turn { choices: 3, ..turn(ANGRY) }).await.unwrap();
    assert_eq!(reply.decision.choices.len(), 3);
    assert!(reply.decision.choices.iter().all(|choice| choice.delivered.text.starts_with(KIND)));
}

#[tokio::test]
async fn the_first_turns_of_a_known_user_are_looked_at_more_closely() {
    let house = house(Scripted::saying(&[Ok(KIND)]), jury());
    let known = || Turn { user: Some(UserId::new("ana").unwrap()), ..turn("My day was long.") };
    let mut levels = Vec::new();
    for _ in 0..5 {
        levels.push(house.engine.deliver(known()).await.unwrap().decision.scrutiny);
    }
    use Scrutiny::{Normal, Raised};
    assert_eq!(levels, [Raised, Raised, Raised, Normal, Normal]);
    let anonymous = house.engine.deliver(turn("My day was long.")).await.unwrap();
    assert_eq!(anonymous.decision.scrutiny, Normal);
}

#[tokio::test]
async fn a_reply_made_elsewhere_is_judged_once() {
    let house = house(Scripted::saying(&[Ok("never asked")]), jury());
    for (text, outcome) in [
        (KIND, Outcome::Delivered),
        ("Yeah, do it.", Outcome::Escalated),
        ("Calm down.", Outcome::Exhausted),
    ] {
        let given = Candidate { text: text.into(), ..Candidate::default() };
        let reply = house.engine.verify(turn(ANGRY), given).await.unwrap();
        assert_eq!(reply.decision.outcome, outcome, "{text}");
        assert_eq!(reply.decision.attempts(), 1);
    }
    assert!(house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_decision_comes_back_from_the_ledger_whole_and_replays() {
    let house = house(Scripted::saying(&[Ok("Yeah, do it."), Ok(KIND)]), jury());
    let mut reply = house.engine.deliver(turn(ANGRY)).await.unwrap();
    let id = reply.decision.id;
    reply.delivery.sent(42);
    reply.delivery.complete();
    drop(reply);

    let entries = house.engine.archive.find(0, id).await.unwrap();
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    replay(&stored.leaf).unwrap();
    let seen =
        decision_view(&stored, conclave_people::DecisionReader::Words, ReviewStanding::Unasked);
    assert_eq!(seen["outcome"], "delivered");
    assert_eq!(seen["delivery"]["status"], "sent");
    assert_eq!(seen["delivery"]["bytes"], 42);
    let attempts = &seen["choices"][0]["attempts"];
    assert_eq!(attempts[0]["candidate"]["text"], "Yeah, do it.");
    assert_eq!(attempts[1]["candidate"]["text"], KIND);
    assert_eq!(attempts[0]["panels"][0]["verifying_agents"].as_array().unwrap().len(), 6);
    assert_eq!(attempts[0]["panels"][0]["vetoes"][0], "crisis");
    let delivered = seen["choices"][0]["delivered"]["text"].as_str().unwrap();
    assert!(delivered.starts_with(KIND), "{delivered}");

    let blind =
        decision_view(&stored, conclave_people::DecisionReader::Public, ReviewStanding::Unasked)
            .to_string();
    assert!(!blind.contains("angry") && !blind.contains("Yeah"), "{blind}");

    let why = explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open);
    assert!(why.response_text.starts_with(KIND));
    assert!(why.safety_verification.concerns_raised.iter().any(|c| c.contains("hurt")));
    let whole: f64 = why.contributing_agents.iter().map(|agent| agent.influence).sum();
    assert!((whole - 1.0).abs() < 1e-3, "{whole}");
}

#[tokio::test]
async fn a_verifier_that_is_not_seated_has_no_influence_and_leaves_it_to_the_others() {
    let mut influences = Vec::new();
    for seats in [6, 5] {
        let jury = jury().into_iter().take(seats).collect();
        let house = house(Scripted::saying(&[Ok(KIND)]), jury);
        let reply = house.engine.deliver(turn(ANGRY)).await.unwrap();
        let entries = house.engine.archive.find(0, reply.decision.id).await.unwrap();
        let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
        let all = explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open)
            .contributing_agents;
        let whole: f64 = all.iter().map(|agent| agent.influence).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{all:?}");
        let of = |name: &str| {
            let found =
                all.iter().find(|one| one.part == ContributorKind::Verifier && one.name == name);
            found.map_or(0.0, |one| one.influence)
        };
        influences.push((of("crisis"), of("classifier")));
    }
    let [(with, classifier), (without, gone)] = influences[..] else { unreachable!("two houses") };
    assert!(classifier > 0.0 && gone == 0.0 && without > with, "{influences:?}");
}

#[tokio::test]
async fn altered_ballots_do_not_replay() {
    let house = house(Scripted::saying(&[Ok(KIND)]), jury());
    drop(house.engine.deliver(turn(ANGRY)).await.unwrap());
    let mut leaf = house.ledger.leaves().remove(0);
    assert!(replay(&leaf).is_ok());
    let Value::Map(public) = &mut leaf.draft.public else { unreachable!("a decision's part") };
    public.insert("bars", Value::Array(vec![Value::Uint(1), Value::Uint(99), Value::Uint(99)]));
    assert!(replay(&leaf).is_err());
}

#[tokio::test]
async fn no_name_and_no_word_stands_in_the_leaf() {
    let house = house(Scripted::saying(&[Ok(KIND)]), jury());
    let named = Turn {
        user: Some(UserId::new("ana.person@example.org").unwrap()),
        ..turn("My neighbour Berta keeps me awake.")
    };
    drop(house.engine.deliver(named).await.unwrap());
    for entry in &*house.ledger.entries.lock().unwrap() {
        let text = String::from_utf8_lossy(&entry.leaf).into_owned();
        for secret in ["ana.person", "Berta", "anger", "awake"] {
            assert!(!text.contains(secret), "the leaf holds {secret}");
        }
    }
}
