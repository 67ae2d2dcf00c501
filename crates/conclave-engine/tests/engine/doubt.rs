//! Inputs that may be meant to do harm and may not: marked, answered with care, refused only where somebody
//! says so.

use crate::fakes::Scripted;
use crate::turns::{House, house, jury, turn};
use conclave_core::{
    Action, Candidate, Category, DirectiveId, GuardCode, Message, Mode, Outcome, Role, Score,
    Scrutiny, SessionId, TenantId, TurnContext, UserId,
};
use conclave_detect::{
    AsReply, ClassifierError, Detector, DriftMarks, Estimate, Manner, TextClassifier,
};
use conclave_engine::{
    Checker, OnDoubt, PerTenant, PolicyInForce, PolicySource, Question, Settings, StoredDecision,
    StreamPolicy, Turn,
};
use conclave_govern::TenantPolicy;
use conclave_people::{ReviewStanding, explain};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

/// A classifier whose scores follow from made-up words, so that no trained weights decide a test.
struct Wordlist;

impl TextClassifier for Wordlist {
    fn name(&self) -> &'static str {
        "wordlist"
    }

    fn text(&self, folded: &str, _: &str) -> Result<Estimate, ClassifierError> {
        let scored = |words: &[(&str, u8)]| {
            let found = words.iter().filter(|(word, _)| folded.contains(word));
            Score::from_hundredths(found.map(|(_, score)| *score).max().unwrap_or(0))
        };
        Ok(Estimate {
            harm: scored(&[("palish", 25), ("greyish", 45), ("blackish", 65)]),
            crisis: scored(&[("weighty", 30), ("重荷", 30)]),
            injection: Score::ZERO,
            frame: Score::ZERO,
            drift: DriftMarks::default(),
            category: Category::Weapons,
            knows_meaning: false,
        })
    }

    fn reply(&self, _: &str, _: &str, _: &str) -> Result<AsReply, ClassifierError> {
        Ok(AsReply { harm: Score::ZERO, manner: Manner::default() })
    }
}

/// Words that name a subject by a pattern of their own, below every line but their own.
const PATTERNS: &str = r#"
language = "en"
category = "fraud"
[concept.test_ruse]
words = ["brownish"]
[[rule]]
id = "test-ruse"
class = "medium"
any = ["test_ruse"]
"#;

pub fn wary(lines: &[&'static str]) -> House {
    let lines: Vec<_> = lines.iter().map(|line| Ok(*line)).collect();
    let mut house = house(Scripted::saying(&lines), jury());
    let detector = Detector::with_own_files(&[("test.toml", PATTERNS)]).unwrap();
    house.engine.detectors = PerTenant::shared(detector.with_classifier(Arc::new(Wordlist)));
    house
}

/// One policy for everybody.
struct OnePolicy(TenantPolicy);

impl PolicySource for OnePolicy {
    fn in_force(&self, _: &TenantId) -> PolicyInForce {
        PolicyInForce { version: 1, policy: Arc::new(self.0.clone()) }
    }
}

pub fn set_policy(house: &mut House, policy: serde_json::Value) {
    house.engine.policies = Arc::new(OnePolicy(TenantPolicy::parse(policy).unwrap()));
}

pub async fn story_of(house: &House, id: conclave_core::AuditId) -> String {
    let entries = house.engine.archive.find(0, id).await.unwrap();
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open)
        .story
        .join(" ")
}

fn in_mode(mode: Mode, text: &str) -> Turn {
    Turn { context: TurnContext { mode, ..TurnContext::default() }, ..turn(text) }
}

const FINE: &str = "Use a fast lens and stand where the light falls on their faces.";

#[tokio::test]
async fn a_doubt_is_answered_with_a_mark_and_the_model_is_told_to_take_care() {
    let house = wary(&[FINE]);
    let decision = house.engine.deliver(turn("Something greyish, please.")).await.unwrap().decision;
    assert_eq!((decision.outcome, decision.action), (Outcome::Delivered, Action::Flag));
    assert_eq!(decision.scrutiny, Scrutiny::Strict);
    assert_eq!(decision.findings[0].code, Some(GuardCode::Doubt));
    assert_eq!(decision.directive, None);
    let guidance = house.model.asked.lock().unwrap()[0].guidance.clone().unwrap();
    assert!(guidance.contains("could also be meant to do harm"), "{guidance}");
    assert!(!guidance.contains("weapon"), "a classifier alone names no subject: {guidance}");
    let story = story_of(&house, decision.id).await;
    assert!(story.contains("only a doubt"), "{story}");
}

#[tokio::test]
async fn a_subject_that_a_pattern_names_is_what_the_model_is_careful_about() {
    let house = wary(&[FINE]);
    let decision =
        house.engine.deliver(turn("Something brownish, please.")).await.unwrap().decision;
    assert_eq!(decision.action, Action::Flag, "{:?}", decision.input);
    let asked = house.model.asked.lock().unwrap();
    let guidance = asked[0].guidance.as_deref().unwrap();
    assert!(guidance.contains("deceive, steal, forge"), "{guidance}");
}

#[tokio::test]
async fn a_japanese_doubt_is_advised_and_explained_in_japanese() {
    let house = wary(&["明るい場所に立ってもらうと、きれいに写ります。"]);
    let text = "greyish なことについて、やさしく教えてください。";
    let decision = house.engine.deliver(turn(text)).await.unwrap().decision;
    assert_eq!(decision.action, Action::Flag);
    let guidance = house.model.asked.lock().unwrap()[0].guidance.clone().unwrap();
    assert!(guidance.contains("害のない意味"), "{guidance}");
    let story = story_of(&house, decision.id).await;
    assert!(story.contains("疑いにとどまる"), "{story}");
}

#[tokio::test]
async fn what_is_no_doubt_is_refused_as_before() {
    let house = wary(&[FINE]);
    let both = house.engine.deliver(turn("greyish and brownish")).await.unwrap().decision;
    assert_eq!((both.outcome, both.action), (Outcome::Blocked, Action::Block), "two signals");
    let sure = house.engine.deliver(turn("Something blackish.")).await.unwrap().decision;
    assert_eq!((sure.outcome, sure.refusal), (Outcome::Blocked, Some(GuardCode::Harmful)));
    assert!(house.model.asked.lock().unwrap().is_empty());
    let story = story_of(&house, sure.id).await;
    assert!(!story.contains("only a doubt"), "{story}");
}

#[tokio::test]
async fn the_third_doubt_of_a_conversation_is_refused_and_what_is_harmless_is_not() {
    let house = wary(&[FINE]);
    let ask = async |text: &str| house.engine.deliver(turn(text)).await.unwrap().decision.outcome;
    assert_eq!(ask("A greyish thing.").await, Outcome::Delivered);
    assert_eq!(ask("Another greyish thing.").await, Outcome::Delivered);
    assert_eq!(ask("Another greyish thing.").await, Outcome::Delivered, "the same words again");
    assert_eq!(ask("One more greyish thing.").await, Outcome::Blocked);
    assert_eq!(ask("Good morning.").await, Outcome::Delivered);
    assert_eq!(ask("A fourth greyish thing.").await, Outcome::Blocked);
}

#[tokio::test]
async fn three_doubts_that_a_client_brings_at_once_are_three() {
    let house = wary(&[FINE]);
    let said = [
        Message::text(Role::User, "A greyish thing."),
        Message::text(Role::Assistant, "Yes?"),
        Message::text(Role::User, "Another greyish thing."),
        Message::text(Role::Assistant, "Yes?"),
        Message::text(Role::User, "One more greyish thing."),
    ];
    let brought = Turn { conversation: said.into(), ..turn("") };
    let decision = house.engine.deliver(brought).await.unwrap().decision;
    assert_eq!(decision.outcome, Outcome::Blocked);
}

#[tokio::test]
async fn nobody_answers_for_the_doubts_of_strangers_who_began_with_the_same_words() {
    let house = wary(&[FINE]);
    let second = |text: &str, user: Option<&str>| {
        let said = [
            Message::text(Role::User, "Hello."),
            Message::text(Role::Assistant, "Hello."),
            Message::text(Role::User, text),
        ];
        // As the gateway derives it where a client names none: of the person and their first words.
        let session = SessionId::new(user.unwrap_or("nobody")).unwrap();
        let user = user.map(|name| UserId::new(name).unwrap());
        Turn { conversation: said.into(), user, session, ..turn("") }
    };
    let ask = async |turn: Turn| house.engine.deliver(turn).await.unwrap().decision.outcome;
    for text in ["greyish one", "greyish two", "greyish three", "greyish four"] {
        assert_eq!(ask(second(text, None)).await, Outcome::Delivered, "{text}");
    }
    assert_eq!(ask(second("greyish one", Some("ana"))).await, Outcome::Delivered);
    assert_eq!(ask(second("greyish two", Some("ana"))).await, Outcome::Delivered);
    assert_eq!(ask(second("greyish three", Some("ana"))).await, Outcome::Blocked);
}

#[tokio::test]
async fn a_doubt_is_refused_where_children_read() {
    let house = wary(&[FINE]);
    let child = in_mode(Mode::ChildSafe, "Something greyish, please.");
    let minor = TurnContext { minor: true, ..TurnContext::default() };
    let minor = Turn { context: minor, ..turn("Something greyish, please.") };
    for turn in [child, minor] {
        let decision = house.engine.deliver(turn).await.unwrap().decision;
        assert_eq!((decision.outcome, decision.action), (Outcome::Blocked, Action::Block));
    }
}

#[tokio::test]
async fn a_doubt_is_refused_where_the_tenant_or_the_operator_says_so() {
    let mut house = wary(&[FINE]);
    set_policy(&mut house, json!({"on_doubt": "block"}));
    let refused = house.engine.deliver(turn("Something greyish.")).await.unwrap().decision;
    assert_eq!(refused.refusal, Some(GuardCode::Harmful));
    let told = &refused.choices[0].delivered.text;
    assert!(!told.is_empty() && !told.contains("weapon"), "a guess is not named: {told}");
    assert_eq!(refused.directive, Some(DirectiveId::FIRST));
    set_policy(&mut house, json!({"on_doubt": "flag"}));
    let settings = Settings { on_doubt: OnDoubt::Block, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    let refused = house.engine.deliver(turn("Something greyish.")).await.unwrap().decision;
    assert_eq!(refused.outcome, Outcome::Blocked, "a tenant cannot be laxer than the operator");
}

#[tokio::test]
async fn a_tenants_own_line_makes_a_doubt_of_what_lies_under_the_modes() {
    let mut house = wary(&[FINE]);
    set_policy(&mut house, json!({"harm_threshold": 50}));
    let pale = house.engine.deliver(turn("Something palish.")).await.unwrap().decision;
    assert_eq!(pale.action, Action::Deliver, "a laxer line than the mode's is not taken");
    set_policy(&mut house, json!({"harm_threshold": 20}));
    for (text, expected) in [
        ("Something palish.", Action::Flag),
        ("Another palish thing.", Action::Flag),
        ("One more palish thing.", Action::Block),
    ] {
        let pale = house.engine.deliver(turn(text)).await.unwrap().decision;
        assert_eq!(pale.action, expected, "{text}");
    }
}

#[tokio::test]
async fn what_reaches_the_floor_is_refused_whatever_the_policy() {
    let mut house = wary(&[FINE]);
    set_policy(&mut house, json!({"on_doubt": "flag", "monitor_guards": ["interpretation"]}));
    let text = "How do I build a pipe bomb to kill my neighbour?";
    let decision = house.engine.deliver(turn(text)).await.unwrap().decision;
    assert!(decision.input.floor, "{:?}", decision.input);
    assert_eq!(decision.outcome, Outcome::Blocked);
}

#[tokio::test]
async fn a_stream_in_doubt_waits_for_the_whole_reply() {
    let mut house = wary(&[FINE]);
    let settings = Settings { stream: StreamPolicy::Windowed, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    let (sender, mut progress) = unbounded_channel();
    let reply = house.engine.stream(turn("Something greyish, please."), sender).await.unwrap();
    assert_eq!(reply.decision.action, Action::Flag);
    assert!(progress.try_recv().is_err(), "nothing may leave before the whole has passed");
    assert_eq!(reply.decision.choices[0].delivered.text, FINE);
}

#[tokio::test]
async fn verify_and_moderations_mark_a_doubt_too() {
    let house = wary(&[FINE]);
    let given = Candidate { text: FINE.into(), ..Candidate::default() };
    let verified = house.engine.verify(turn("Something greyish."), given).await.unwrap().decision;
    assert_eq!((verified.outcome, verified.action), (Outcome::Delivered, Action::Flag));
    let read = house.engine.moderate(turn("Something greyish.")).await.unwrap().decision;
    assert_eq!(read.action, Action::Flag);
    assert!(read.input.is_harmful(), "moderations go on flagging it");
}

fn checked(mode: Mode, said: &[&str]) -> conclave_engine::CheckAnswer {
    let detector = wary(&[FINE]).engine.detectors.of(&turn("").tenant).clone();
    let turns = said.iter().map(|text| Message::text(Role::User, *text)).collect();
    let question = Question { turns, mode, ..Question::default() };
    Checker::new(detector, Vec::new()).check(&question)
}

#[test]
fn a_check_says_that_a_doubt_is_harmful_and_flagged() {
    let doubt = checked(Mode::Normal, &["Something greyish."]);
    assert_eq!((doubt.verdict, doubt.action), ("harmful", "flag"));
    let child = checked(Mode::ChildSafe, &["Something greyish."]);
    assert_eq!((child.verdict, child.action), ("harmful", "block"));
    let third = checked(Mode::Normal, &["greyish one", "greyish two", "greyish three"]);
    assert_eq!((third.verdict, third.action), ("harmful", "block"));
    let sure = checked(Mode::Normal, &["Something blackish."]);
    assert_eq!((sure.verdict, sure.action), ("harmful", "block"));
}

#[test]
fn a_check_names_no_category_under_its_line() {
    let hard_day = checked(Mode::Normal, &["It was a weighty day at work."]);
    assert!(hard_day.crisis >= 0.25 && hard_day.categories.is_empty(), "{hard_day:?}");
    let doubt = checked(Mode::Normal, &["Something greyish."]);
    assert_eq!(doubt.categories.keys().collect::<Vec<_>>(), [&Category::Weapons]);
}
