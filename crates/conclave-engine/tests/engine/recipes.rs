//! Recipes through the engine: what models may see, what leaves, what waits, and what is recorded.

use crate::fakes::Scripted;
use crate::keepers::{AccountsAway, Keeper};
use crate::money::{put_under, settle_tasks};
use crate::turns::{House, house, jury};
use conclave_core::{AuditId, GenerationFailure, GuardCode, MicroUsd, Score, TenantId};
use conclave_detect::{AsReply, ClassifierError, Estimate};
use conclave_engine::{
    Caller, GovernError, KeyRole, ModelDirectory, OfferedModel, PerTenant, replay,
};
use conclave_govern::{
    ConsentState, CulturalFinding, Issue, Price, ReviewKind, ReviewPriority, Usd,
};
use conclave_ledger::{Kind, StoredBody, Value as Public};
use conclave_money::{Accounts, AccountsInMemory};
use conclave_recipes::{
    ExecuteError, ExecutedRun, FetchedRun, InterviewFocus, PlaybookBrief, RecipeCaller,
    RecipeSettings, Run, RunEnding, RunOptions, RunRequest, ThreadMessage, Transcript, Workshop,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub type Line = Result<&'static str, GenerationFailure>;

/// The models `large` and `small`, each with its own lines.
pub struct Two(pub Arc<Scripted>, pub Arc<Scripted>);

impl ModelDirectory for Two {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        let (model, price) = match name {
            "large" => (&self.0, 1_000_000),
            "small" => (&self.1, 1_000),
            _ => return None,
        };
        Some(OfferedModel {
            model: model.clone(),
            provider: "test".into(),
            input_price: MicroUsd(price),
            output_price: MicroUsd(price),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        vec![("large".into(), "test".into()), ("small".into(), "test".into())]
    }
}

pub fn kitchen(large: &[Line], small: &[Line], keeper: Option<Arc<Keeper>>) -> House {
    with_recipe(large, small, keeper, None)
}

pub fn with_recipe(
    large: &[Line],
    small: &[Line],
    keeper: Option<Arc<Keeper>>,
    own: Option<&str>,
) -> House {
    let model = Scripted::saying(large);
    let mut house = house(model.clone(), jury());
    let settings = RecipeSettings {
        large: Some("large".into()),
        small: Some("small".into()),
        ..RecipeSettings::default()
    };
    let own: Vec<_> =
        own.map(|text| ("own.toml".to_owned(), text.to_owned())).into_iter().collect();
    house.engine.models = Arc::new(Two(model, Scripted::saying(small)));
    house.workshop = Arc::new(Workshop::new(&own, settings).unwrap());
    house.records = keeper.as_ref().map(|keeper| keeper.records.clone() as _);
    house.engine.governance = keeper.map(|keeper| keeper as _);
    house
}

/// The same house without any model.
pub fn offline(keeper: Option<Arc<Keeper>>) -> House {
    let mut house = kitchen(&[Ok("never")], &[Ok("never")], keeper);
    house.workshop = Arc::new(Workshop::new(&[], RecipeSettings::default()).unwrap());
    house.engine.models = Arc::new(Builtin(house.engine.models.clone()));
    house
}

/// The name `builtin` beside others.
struct Builtin(Arc<dyn ModelDirectory>);

impl ModelDirectory for Builtin {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        self.0.find(if name == "builtin" { "small" } else { name })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        self.0.names()
    }
}

pub fn transcripts() -> Value {
    json!([{"id": "transcript-789", "segments": [
        {"index": 0, "speaker": "Interviewer", "text": "How did you find work after the move?"},
        {"index": 1, "speaker": "Storyteller", "text": "The rent went up twice and the house was cold."},
        {"index": 2, "speaker": "Storyteller", "text": "My employment ended; write to me at mara@example.org."},
    ]}])
}

/// The reference example.
pub fn example() -> RunRequest {
    serde_json::from_value(json!({
        "agent_name": "interview-analyzer",
        "context": {
            "user_id": "user-456", "transcript_id": "transcript-789", "storyteller_id": "teller-1",
            "sensitivity_level": "medium", "cultural_affiliations": ["First Nations"],
            "consent_scope": ["research", "publication"], "purpose": "housing study",
        },
        "input": {
            "transcript_ids": ["transcript-789"], "transcripts": transcripts(),
            "focus_areas": ["housing", "employment"], "include_emotion_trajectory": true,
        },
    }))
    .unwrap()
}

pub fn run(request: RunRequest) -> Run {
    let recipe = request.agent_name.clone().unwrap();
    let tenant = TenantId::new("default").unwrap();
    Run { tenant, key: None, recipe, request, approved_run: None }
}

/// A key that runs recipes.
pub fn app(holder: &str) -> Caller {
    let tenant = TenantId::new("default").unwrap();
    Caller { holder: holder.into(), tenant, role: KeyRole::App, person: None }
}

pub fn asking(recipe: &str, input: Value) -> RunRequest {
    RunRequest { agent_name: Some(recipe.into()), input, ..example() }
}

pub const CITED: &str = r#"{"themes": [{"theme": "housing", "support_count": 1, "sentiment": "negative",
  "exemplar_quotes": [{"transcript_id": "transcript-789", "segment_index": 1, "text": "The rent went up twice"}]}],
  "key_quotes": [{"transcript_id": "transcript-789", "segment_index": 1, "text": "the house was cold"}],
  "actionable_insights": [{"insight": "Tenants describe rising rents.", "citations":
  [{"transcript_id": "transcript-789", "segment_index": 1, "text": "The rent went up twice"}]}], "empathy_score": 5}"#;
const INVENTED: &str = r#"{"themes": [], "actionable_insights": [],
  "key_quotes": [{"transcript_id": "transcript-789", "segment_index": 1, "text": "I was never happier"}]}"#;

pub fn guards(done: &ExecutedRun) -> Vec<String> {
    let rows = done.response["metadata"]["guards"].as_array().unwrap();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| {
            format!("{}/{}/{}", word(row, "guard"), word(row, "phase"), word(row, "outcome"))
        })
        .collect()
}

fn words(house: &House, id: AuditId, field: &str) -> Option<Value> {
    let entries = house.ledger.entries.lock().unwrap();
    let entry = entries.iter().find(|entry| {
        let leaf = conclave_ledger::Leaf::decode(&entry.leaf).unwrap();
        leaf.draft.audit == Some(id.0.into_bytes()) && leaf.draft.kind == Kind::Decision
    })?;
    let text = StoredBody::decode(entry.body.as_deref()?).ok()?.open(field)?;
    serde_json::from_slice(&text).ok()
}

#[tokio::test]
async fn the_reference_example_gives_a_validated_result_with_checked_citations() {
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper.clone()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    let response = &done.response;
    assert_eq!(response["success"], true);
    assert_eq!(response["data"]["themes"][0]["theme"], "housing");
    assert_eq!(response["citations"].as_array().unwrap().len(), 2);
    assert_eq!(response["citations"][0]["confidence"], 1.0);
    let metadata = &response["metadata"];
    assert_eq!(metadata["consent_verified"], true);
    assert_eq!(metadata["failing_metrics"], json!([]));
    assert_eq!((&metadata["eval_score"], &metadata["model"]), (&json!(100), &json!("large")));
    assert_eq!(response["data"]["empathy_score"], 4.0, "measured here, whatever the model claims");
    let asked = house.model.asked.lock().unwrap();
    let told = format!("{:?}", asked[0].conversation);
    for word in ["First Nations", "research, publication", "Cite or refuse", "housing, employment"]
    {
        assert!(told.contains(word), "{word}");
    }
    assert!(!told.contains("mara@example.org") && told.contains("[EMAIL_1]"), "no address leaves");
    assert_eq!(asked[0].body["response_format"]["type"], "json_object");
    assert_eq!(keeper.asked.lock().unwrap()[0].subject, "teller-1");
}

#[tokio::test]
async fn the_decision_is_durable_first_and_holds_guards_and_figures() {
    let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(Keeper::granting()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    let leaves = house.ledger.leaves();
    let leaf = leaves.iter().find(|leaf| leaf.draft.kind == Kind::Decision).unwrap();
    replay(leaf).unwrap();
    let public = &leaf.draft.public;
    assert_eq!(public.get("recipe").and_then(Public::as_str), Some("interview-analyzer"));
    let rows = public.get("guards").and_then(Public::as_array).unwrap();
    assert_eq!(rows.len(), guards(&done).len(), "every outcome is in the decision");
    let leaf_text = format!("{leaf:?}");
    for secret in ["mara", "rent went up", "teller-1", "housing study"] {
        assert!(!leaf_text.contains(secret), "{secret} must not stand in the leaf");
    }
    let tokens = words(&house, done.id, "tokens").unwrap();
    assert!(tokens.to_string().contains("mara@example.org"), "kept apart, in the sealed words");
    house.ledger.broken.store(true, std::sync::atomic::Ordering::Relaxed);
    let lost = house.recipes().execute(run(example())).await;
    assert!(matches!(lost, Err(ExecuteError::AuditUnavailable(_))));
}

#[tokio::test]
async fn an_invented_quote_is_caught_and_the_result_is_held() {
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(INVENTED)], &[Ok("")], Some(keeper.clone()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert_eq!(done.ending, RunEnding::Held { review: "r-1".into() }, "{}", done.response);
    assert_eq!((&done.response["data"], &done.response["citations"]), (&Value::Null, &json!([])));
    let failing = done.response["metadata"]["failing_metrics"].to_string();
    assert!(failing.contains("invented_quote") && failing.contains("hallucination"), "{failing}");
    let review = keeper.reviews.lock().unwrap()[0].clone();
    assert_eq!((review.kind, review.audit_id), (ReviewKind::Escalation, Some(done.id)));
    let held = words(&house, done.id, conclave_ports::HELD_WORDS).unwrap();
    assert!(held["data"].to_string().contains("never happier"), "it waits in the sealed words");
    assert_eq!(words(&house, done.id, "response").unwrap()["data"], Value::Null);
    assert_eq!(words(&house, done.id, "delivered.0"), None, "nothing was delivered");
}

#[tokio::test]
async fn consent_without_scope_missing_expired_or_withdrawn_blocks_before_any_model() {
    let missing = ConsentState::NotCovered { missing: vec!["publication".into()] };
    for (scope, state, code) in [
        (vec![], ConsentState::Granted { record: "c".into() }, "consent_required"),
        (vec!["research"], ConsentState::Missing, "consent_required"),
        (vec!["research"], missing, "consent_required"),
        (
            vec!["research"],
            ConsentState::Expired { record: "c".into(), at_ms: 1 },
            "consent_required",
        ),
        (
            vec!["research"],
            ConsentState::Withdrawn { record: "c".into(), at_ms: 1 },
            "consent_withdrawn",
        ),
    ] {
        let keeper = Keeper::granting();
        *keeper.consent.lock().unwrap() = Ok(state);
        let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper));
        let mut request = example();
        request.context.consent_scope = scope.iter().map(|word| (*word).to_owned()).collect();
        let done = house.recipes().execute(run(request)).await.unwrap();
        let RunEnding::Refused { code: got, .. } = &done.ending else {
            panic!("{:?}", done.ending)
        };
        assert_eq!(got.as_str(), code);
        assert!(house.model.asked.lock().unwrap().is_empty(), "no model was asked");
    }
}

#[tokio::test]
async fn withdrawing_consent_takes_effect_on_the_next_run() {
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper.clone()));
    assert_eq!(house.recipes().execute(run(example())).await.unwrap().ending, RunEnding::Done);
    *keeper.consent.lock().unwrap() = Ok(ConsentState::Withdrawn { record: "c".into(), at_ms: 1 });
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Refused { code: GuardCode::ConsentWithdrawn, .. }));
}

#[tokio::test]
async fn a_sacred_item_in_any_recipe_waits_for_elders() {
    let thread = json!({"ticket_thread": [{"author": "a", "text": "Hello."}]});
    let intake = json!({
        "raw_content": "A: hello.", "content_type": "notes",
        "provided_consent": {"written": true, "scope": ["research", "publication"]},
    });
    let plan = json!({"segment_definition": {"criteria": ["a"], "count": 1}, "goals": ["rest"]});
    let steward = json!({
        "request": {"model": "large"}, "estimated_tokens": {"input": 1, "output": 1}, "budget": {},
    });
    for (recipe, input) in [
        ("interview-analyzer", example().input),
        ("insight-synthesizer", json!({"transcripts": transcripts()})),
        ("de-escalator", thread),
        ("consent-intake", intake),
        ("playbook-composer", plan),
        ("governance-sentinel", json!({"request": {}, "phase": "pre"})),
        ("cost-steward", steward),
        ("story-titles", json!({"story": "a long walk"})),
    ] {
        let keeper = Keeper::granting();
        let own = own("redact", "block");
        let house = with_recipe(&[Ok(CITED)], &[Ok("")], Some(keeper.clone()), Some(&own));
        let mut request = asking(recipe, input);
        request.context.sensitivity_level = conclave_core::Sensitivity::Sacred;
        request.context.country = Some("NZ".into());
        let done = house.recipes().execute(run(request)).await.unwrap();
        assert!(matches!(done.ending, RunEnding::Held { .. }), "{recipe}: {:?}", done.ending);
        assert_eq!(done.response["metadata"]["safety_status"], "elder_review_required", "{recipe}");
        let review = keeper.reviews.lock().unwrap()[0].clone();
        assert_eq!((review.kind, review.four_eyes), (ReviewKind::ElderReview, true), "{recipe}");
        assert_eq!(review.community.as_deref(), Some("First Nations"));
        assert!(house.model.asked.lock().unwrap().is_empty(), "{recipe}: nothing left the house");
    }
}

#[tokio::test]
async fn a_marked_passage_is_as_sacred_as_the_whole() {
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper.clone()));
    let mut request = example();
    request.input["transcripts"][0]["segments"][1]["sacred"] = json!(true);
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Held { .. }));
}

#[tokio::test]
async fn cultural_findings_flag_or_hold_as_communities_say() {
    let issue = || vec![Issue { code: "season".into(), detail: "Not in this season.".into() }];
    let hold = CulturalFinding::Hold {
        community: Some("Sea People".into()),
        others: vec![],
        issues: issue(),
        sacred: false,
    };
    let flag = CulturalFinding::Flag { community: None, issues: issue() };
    for (finding, sensitivity, held) in [
        (hold, conclave_core::Sensitivity::Low, true),
        (flag.clone(), conclave_core::Sensitivity::Low, false),
        (flag, conclave_core::Sensitivity::High, true),
    ] {
        let keeper = Keeper::granting();
        *keeper.finding.lock().unwrap() = Ok(finding.clone());
        let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper));
        let mut request = example();
        request.context.sensitivity_level = sensitivity;
        let done = house.recipes().execute(run(request)).await.unwrap();
        assert_eq!(matches!(done.ending, RunEnding::Held { .. }), held, "{finding:?}");
    }
}

#[tokio::test]
async fn a_broken_guard_holds_whether_it_errs_or_panics() {
    let failing = Keeper::new();
    *failing.consent.lock().unwrap() = Err(GovernError("the records are away".into()));
    let panicking = Keeper { panics: true, ..Keeper::new() };
    let blind = Keeper::new();
    *blind.finding.lock().unwrap() = Err(GovernError("the protocols are away".into()));
    for keeper in [failing, panicking, blind].map(Arc::new) {
        let house = kitchen(&[Ok(CITED)], &[Ok("")], Some(keeper.clone()));
        let done = house.recipes().execute(run(example())).await.unwrap();
        assert!(matches!(done.ending, RunEnding::Held { .. }), "{:?}", done.ending);
        assert!(guards(&done).iter().any(|row| row.ends_with("/failed")), "{:?}", guards(&done));
        assert!(house.model.asked.lock().unwrap().is_empty(), "no model was asked");
        assert_eq!(keeper.reviews.lock().unwrap().len(), 1);
    }
}

const OWN: &str = r#"
name = "story-titles"
title = "Suggests titles"
work = "model"
human_in_loop = false
[models]
class = "large"
fallback = "small"
[limits]
input_tokens_max = 1000
output_tokens_max = 100
[[guards]]
guard = "pii"
action = "PII"
[[guards]]
guard = "budget"
action = "BUDGET"
[[guards]]
guard = "jurisdiction"
action = "block"
[prompt]
user = "Job: a title. <material>{{input}}</material>"
[schema]
input = '{"type": "object"}'
output = '{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}'
"#;

pub fn own(pii: &str, budget: &str) -> String {
    OWN.replace("\"PII\"", &format!("\"{pii}\"")).replace("\"BUDGET\"", &format!("\"{budget}\""))
}

pub fn titles(country: &str) -> Run {
    let mut request = asking("story-titles", json!({"story": "a long walk"}));
    request.context.country = Some(country.into());
    run(request)
}

/// The own recipe, with a provider that runs in New Zealand.
pub fn title_house(pii: &str, budget: &str, line: &'static str) -> House {
    let own = own(pii, budget);
    let mut house = with_recipe(&[Ok(line)], &[Ok(line)], Some(Keeper::granting()), Some(&own));
    let settings = RecipeSettings {
        large: Some("large".into()),
        small: Some("small".into()),
        ..RecipeSettings::default()
    };
    house.workshop = Arc::new(Workshop::new(&[("own.toml".into(), own)], settings).unwrap());
    house.place_providers(&[("test", "NZ")]);
    house
}

/// The same with so much to spend in a day.
fn house_with_budget(accounts: Arc<dyn Accounts>, budget: &str, micro_usd: u64) -> House {
    let mut house = title_house("redact", budget, r#"{"title": "A walk"}"#);
    let price = |micro_usd: u64| Price {
        input_usd_per_million: Usd(MicroUsd(micro_usd)),
        output_usd_per_million: Usd(MicroUsd(micro_usd)),
        output_tokens_max: None,
    };
    let prices =
        [("large".to_owned(), price(1_000_000)), ("small".to_owned(), price(1_000))].into();
    let policy = json!({"daily_budget_usd": MicroUsd(micro_usd).dollars()});
    put_under(&mut house, accounts, policy, prices);
    house
}

#[tokio::test]
async fn pii_in_an_output_is_redacted_or_nothing_is_returned() {
    let line = r#"{"title": "Call Mara at mara@example.org"}"#;
    let house = title_house("redact", "block", line);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    assert_eq!(done.response["metadata"]["outcome"], "redacted");
    assert!(!done.response.to_string().contains("mara@example.org"), "{}", done.response);
    assert!(done.response["data"]["title"].as_str().unwrap().contains("[EMAIL_1]"));

    let house = title_house("block", "block", line);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert!(
        matches!(done.ending, RunEnding::Refused { code: GuardCode::PersonalData, .. }),
        "{:?}",
        done.ending
    );
    assert_eq!(done.response["data"], Value::Null);
}

#[tokio::test]
async fn jurisdiction_blocks_what_is_forbidden_and_holds_what_is_unknown() {
    let house = title_house("redact", "block", r#"{"title": "A walk"}"#);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done);
    let done = house.recipes().execute(titles("CN")).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Refused { code: GuardCode::Jurisdiction, .. }));
    let done = house.recipes().execute(titles("BR")).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Held { .. }), "{:?}", done.ending);
}

#[tokio::test]
async fn budget_blocks_downgrades_or_settles_what_was_spent() {
    // All attempts with `large` may cost some 33,000 micro-USD, with `small` 40.
    let accounts = Arc::<AccountsInMemory>::default();
    let house = house_with_budget(accounts.clone(), "block", 50_000);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done);
    settle_tasks().await;
    let page = accounts.page();
    let balance = page.balances.values().next().unwrap();
    assert_eq!((balance.spent, balance.reserved), (15, 0), "what was really spent");

    let house = house_with_budget(Arc::<AccountsInMemory>::default(), "block", 100);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Refused { code: GuardCode::InsufficientQuota, .. }));
    assert!(house.model.asked.lock().unwrap().is_empty());

    let house = house_with_budget(Arc::<AccountsInMemory>::default(), "downgrade", 100);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    assert_eq!(done.response["metadata"]["model"], "small");
    assert!(guards(&done).contains(&"budget/pre/downgraded".to_owned()));

    let house = house_with_budget(Arc::new(AccountsAway), "downgrade", 100);
    let done = house.recipes().execute(titles("NZ")).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Held { .. }), "accounts that are away hold");
}

#[tokio::test]
async fn no_downgrade_to_a_model_that_is_not_permitted_for_the_sensitivity() {
    let mut house = house_with_budget(Arc::<AccountsInMemory>::default(), "downgrade", 100);
    house.name_sensitive_models(&["large"]);
    let settings = house.workshop.settings.clone();
    let own = vec![("own.toml".into(), own("redact", "downgrade"))];
    house.workshop = Arc::new(Workshop::new(&own, settings).unwrap());
    let mut asked = titles("NZ");
    asked.request.context.sensitivity_level = conclave_core::Sensitivity::High;
    let done = house.recipes().execute(asked).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Refused { code: GuardCode::InsufficientQuota, .. }));
}

/// A trained model that finds only threats, and those not very bad.
struct Threats;

impl conclave_detect::TextClassifier for Threats {
    fn name(&self) -> &'static str {
        "threats"
    }

    fn text(&self, _: &str, _: &str) -> Result<Estimate, ClassifierError> {
        Ok(Estimate {
            harm: Score::ZERO,
            crisis: Score::ZERO,
            injection: Score::ZERO,
            frame: Score::ZERO,
            drift: conclave_detect::DriftMarks::default(),
            category: conclave_core::Category::Violence,
            knows_meaning: false,
        })
    }

    fn reply(&self, _: &str, reply: &str, _: &str) -> Result<AsReply, ClassifierError> {
        let harm = Score::from_hundredths(if reply.contains("regret") { 30 } else { 29 });
        Ok(AsReply { harm, ..AsReply::default() })
    }
}

#[tokio::test]
async fn toxicity_blocks_what_would_harm() {
    let thread = json!({"ticket_thread": [{"author": "ana", "text": "My parcel is late."}]});
    let shaped = |draft: &str| -> &'static str {
        let draft = json!({
            "draft_response": draft, "proof_of_empathy": [], "follow_up_actions": [],
            "tone_analysis": {"original": "calm", "suggested": "calm"},
        });
        Box::leak(draft.to_string().into_boxed_str())
    };
    for (draft, blocked) in [("You will regret this.", true), ("I hear you. We will call.", false)]
    {
        let mut house = kitchen(&[Ok(shaped(draft))], &[Ok("")], Some(Keeper::granting()));
        let detector = conclave_detect::Detector::builtin().unwrap();
        house.engine.detectors = PerTenant::shared(detector.with_classifier(Arc::new(Threats)));
        let done =
            house.recipes().execute(run(asking("de-escalator", thread.clone()))).await.unwrap();
        let refused = matches!(done.ending, RunEnding::Refused { code: GuardCode::Toxicity, .. });
        assert_eq!(refused, blocked, "the line of de-escalator is .30: {:?}", done.ending);
        assert_eq!(done.response["data"], Value::Null);
    }
}

#[tokio::test]
async fn verifiers_vote_on_words_that_speak_to_a_person() {
    let thread = json!({"ticket_thread": [{"author": "ana", "text": "I could hurt someone."}]});
    let draft = r#"{"draft_response": "Yeah, do it.", "proof_of_empathy": [], "follow_up_actions": [],
        "tone_analysis": {"original": "anger", "suggested": "calm"}}"#;
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(draft)], &[Ok("")], Some(keeper.clone()));
    let done = house.recipes().execute(run(asking("de-escalator", thread))).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Held { .. }), "{:?}", done.ending);
    let review = keeper.reviews.lock().unwrap()[0].clone();
    assert_eq!(review.kind, ReviewKind::Escalation, "more than a draft to look at");
    assert!(review.issues.iter().any(|issue| issue.code == "panel"), "{:?}", review.issues);
    let leaves = house.ledger.leaves();
    let leaf = leaves.iter().find(|leaf| leaf.draft.kind == Kind::Decision).unwrap();
    replay(leaf).unwrap();
    assert!(format!("{leaf:?}").contains("higher_self"), "the ballots stand in the leaf");
}

#[tokio::test]
async fn a_wrong_shape_is_retried_with_the_error_and_then_failed() {
    let house = kitchen(&[Ok(r#"{"themes": 7}"#), Ok(CITED)], &[Ok("")], Some(Keeper::granting()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done);
    let again = house.model.asked.lock().unwrap()[1].conversation[2].content.as_text().into_owned();
    assert!(again.contains("themes must be of type array"), "{again}");
    let house = kitchen(&[Ok("I would rather talk.")], &[Ok("")], Some(Keeper::granting()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Failed { late: false, .. }), "{:?}", done.ending);
    assert_eq!(house.model.asked.lock().unwrap().len(), 2, "once, and once more");
}

#[tokio::test]
async fn the_fallback_is_asked_where_the_first_model_is_down() {
    let house =
        kitchen(&[Err(GenerationFailure::Unreachable)], &[Ok(CITED)], Some(Keeper::granting()));
    let done = house.recipes().execute(run(example())).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done);
    assert_eq!(done.response["metadata"]["model"], "small");
}

#[tokio::test]
async fn drafts_with_a_person_in_the_loop_wait_and_are_fetched_once_approved() {
    let keeper = Keeper::granting();
    let house = offline(Some(keeper.clone()));
    let thread =
        json!({"ticket_thread": [{"author": "ana", "text": "I am furious. Nobody calls!"}]});
    let done = house.recipes().execute(run(asking("de-escalator", thread))).await.unwrap();
    assert_eq!(done.ending, RunEnding::Held { review: "r-1".into() }, "{}", done.response);
    assert_eq!(keeper.reviews.lock().unwrap()[0].kind, ReviewKind::Draft);
    let reader = app("key");
    let fetch = || crate::held_runs::fetch(&house, &reader, done.id);
    let waiting = FetchedRun::Waiting { review: Some("r-1".into()), state: "pending".into() };
    assert_eq!(fetch().await.unwrap(), waiting);
    let before = house.ledger.leaves().len();
    keeper.decide("r-1", "approved", None).await;
    let FetchedRun::Ended(response) = fetch().await.unwrap() else { panic!("approved") };
    assert_eq!(
        (&response["success"], &response["data"]["extractive"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(house.ledger.leaves().len(), before + 1, "handing it out is recorded first");
    let edited = json!({
        "draft_response": "Dear Ana, we will call.", "proof_of_empathy": [],
        "follow_up_actions": [], "tone_analysis": {"original": "anger", "suggested": "calm"},
    });
    keeper.decide("r-1", "approved", Some(edited)).await;
    let FetchedRun::Ended(response) = fetch().await.unwrap() else { panic!("edited") };
    assert_eq!(response["data"]["draft_response"], "Dear Ana, we will call.");
    keeper.decide("r-1", "rejected", None).await;
    assert_eq!(fetch().await.unwrap(), FetchedRun::Rejected { review: "r-1".into() });
    let other = Caller { tenant: TenantId::new("other").unwrap(), ..app("key") };
    let nothing = crate::held_runs::fetch(&house, &other, AuditId::from_bytes([0; 16])).await;
    assert_eq!(nothing.unwrap(), FetchedRun::Missing);
}

#[tokio::test]
async fn consent_intake_runs_offline_and_its_transcript_can_be_named_later() {
    let keeper = Keeper::granting();
    let house = offline(Some(keeper));
    let mut request = asking(
        "consent-intake",
        json!({
            "raw_content": "Interviewer: How was it?\nMara: The rent went up twice. The rent is too high.\nMara: The rent broke us.",
            "content_type": "transcript",
            "provided_consent": {"written": true, "scope": ["research", "publication"]},
        }),
    );
    request.context.transcript_id = Some("t-42".into());
    request.context.country = Some("NZ".into());
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    assert_eq!(done.response["data"]["validation_status"], "valid");
    assert_eq!(done.response["data"]["segments"].as_array().unwrap().len(), 3);
    let request =
        asking("interview-analyzer", json!({"transcript_ids": ["t-42"], "focus_areas": ["rent"]}));
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    assert_eq!(done.response["data"]["themes"][0]["theme"], "rent");
    assert_eq!(done.response["citations"][0]["transcript_id"], "t-42");
    let request = asking("interview-analyzer", json!({"transcript_ids": ["t-43"]}));
    let error = house.recipes().execute(run(request)).await.err().unwrap();
    assert!(error.to_string().contains("transcript_ids[0]"), "{error}");
}

#[tokio::test]
async fn sentinel_and_steward_need_no_model() {
    let house = offline(None);
    let request = asking(
        "governance-sentinel",
        json!({
            "request": {"context": {"consent_scope": []}, "input": {"note": "call jane@example.com"}},
            "phase": "pre",
        }),
    );
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    assert_eq!(done.response["data"]["allowed"], false);
    let request = asking(
        "cost-steward",
        json!({
            "request": {"model": "large", "allowed_models": ["small"]},
            "estimated_tokens": {"input": 1000, "output": 1000},
            "budget": {"per_request_microusd": 10},
        }),
    );
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert_eq!(done.response["data"]["recommendation"], "downgrade", "{}", done.response);
    assert_eq!(done.response["data"]["selected_model"], "small");
}

#[tokio::test]
async fn library_calls_give_extracts_offline() {
    let house = offline(None);
    let caller = || RecipeCaller {
        tenant: TenantId::new("default").unwrap(),
        context: example().context,
        options: RunOptions::default(),
    };
    let given = Transcript::given(&json!({"transcripts": transcripts()})).unwrap();
    let focus = InterviewFocus { focus_areas: vec!["rent".into()], ..InterviewFocus::default() };
    let done = house.recipes().analyze_interview(&[], &given, &focus, caller()).await.unwrap();
    assert_eq!(done.response["data"]["extractive"], true, "{}", done.response);
    assert_eq!(done.response["metadata"]["consent_verified"], false, "stated, not checked");
    let done = house.recipes().synthesize_insights(&[], &given, caller()).await.unwrap();
    assert_eq!(done.ending, RunEnding::Done, "{}", done.response);
    let thread = [ThreadMessage { author: "ana".into(), text: "I am angry.".into() }];
    let done = house.recipes().de_escalate(&thread, caller()).await.unwrap();
    assert_eq!(
        (&done.ending, &done.response["metadata"]["draft"]),
        (&RunEnding::Done, &json!(true))
    );
    let brief = PlaybookBrief {
        criteria: vec!["tenants".into()],
        count: 3,
        goals: vec!["a fair lease".into()],
        budget_microusd: Some(10),
    };
    let done = house.recipes().compose_playbook(&brief, caller()).await.unwrap();
    assert_eq!(done.response["data"]["estimated_impact"]["people"], 3, "{}", done.response);
}

#[tokio::test]
async fn without_anybody_who_could_decide_nothing_is_held_for_ever() {
    let house = offline(None);
    let mut request = example();
    request.context.sensitivity_level = conclave_core::Sensitivity::Sacred;
    let done = house.recipes().execute(run(request)).await.unwrap();
    assert_eq!(done.ending, RunEnding::GuardUnavailable);
    assert_eq!(done.response["data"], Value::Null);
}

#[tokio::test]
async fn a_person_in_crisis_in_a_thread_makes_the_review_urgent() {
    let keeper = Keeper::granting();
    let house = offline(Some(keeper.clone()));
    let thread =
        json!({"ticket_thread": [{"author": "ana", "text": "I want to die. I can't go on."}]});
    let done = house.recipes().execute(run(asking("de-escalator", thread))).await.unwrap();
    assert!(matches!(done.ending, RunEnding::Held { .. }), "{:?}", done.ending);
    assert_eq!(keeper.reviews.lock().unwrap()[0].priority, ReviewPriority::Urgent);
}

#[tokio::test]
async fn kpis_come_from_real_runs_and_reviews() {
    let keeper = Keeper::granting();
    let house = kitchen(&[Ok(CITED), Ok(INVENTED)], &[Ok("")], Some(keeper.clone()));
    for _ in 0..2 {
        house.recipes().execute(run(example())).await.unwrap();
    }
    keeper.decide("r-1", "rejected", None).await;
    let recipe = house.workshop.recipes.find("interview-analyzer").unwrap();
    let tenant = TenantId::new("default").unwrap();
    let kpis = house.recipes().recipe_kpis(&tenant, &recipe).await.unwrap();
    assert_eq!(kpis["runs"], 2);
    assert_eq!(kpis["figures"]["citation_coverage"], 0.75, "{kpis}");
    assert_eq!(kpis["figures"]["hallucination_rate"], 0.25, "{kpis}");
    assert_eq!(kpis["figures"]["human_label_agreement_rate"], 0.0, "{kpis}");
    assert!(kpis["figures"]["cost_per_successful_run"].as_u64().unwrap() > 0, "{kpis}");
}

/// A clock that has gone on.
struct Later(u64);

impl conclave_engine::Clock for Later {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

#[tokio::test]
async fn figures_of_old_runs_are_let_go() {
    let mut house = kitchen(&[Ok(CITED)], &[Ok("")], Some(Keeper::granting()));
    house.recipes().execute(run(example())).await.unwrap();
    let recipe = house.workshop.recipes.find("interview-analyzer").unwrap();
    let tenant = TenantId::new("default").unwrap();
    let day_ms = 24 * 3_600_000;
    let made_ms = house.engine.clock.now_ms();
    for (days, kept) in [(0, 1), (399, 1), (401, 0)] {
        house.engine.clock = Arc::new(Later(made_ms + days * day_ms));
        house.recipes().forget_old_runs().await;
        let kpis = house.recipes().recipe_kpis(&tenant, &recipe).await.unwrap();
        assert_eq!(kpis["runs"], kept, "after {days} days");
    }
}

#[tokio::test]
async fn bad_requests_are_refused_with_their_place() {
    let house = offline(None);
    let mut unknown = run(example());
    unknown.recipe = "fortune-teller".into();
    assert!(matches!(house.recipes().execute(unknown).await, Err(ExecuteError::UnknownRecipe(_))));
    let mut other = example();
    other.context.tenant_id = Some("somebody-else".into());
    assert!(matches!(house.recipes().execute(run(other)).await, Err(ExecuteError::OtherTenant)));
    let mut wrong = example();
    wrong.input["focus_areas"] = json!("housing");
    let error = house.recipes().execute(run(wrong)).await.err().unwrap().to_string();
    assert_eq!(error, "input.focus_areas: must be of type array");
    let mut long = example();
    long.input["transcripts"][0]["segments"][1]["text"] = json!("word ".repeat(20_000));
    let done = house.recipes().execute(run(long)).await.unwrap();
    assert!(
        matches!(done.ending, RunEnding::Refused { code: GuardCode::TooLong, .. }),
        "{:?}",
        done.ending
    );
}
