//! People who seem to have a hard time and are not in crisis: the reply stays as it is, and one sentence offers
//! help.

use crate::doubt::{set_policy, story_of, wary};
use crate::turns::{House, turn};
use conclave_core::{Message, Mode, Outcome, Role, Scrutiny, TurnContext};
use conclave_engine::{Settings, StreamPolicy, Turn};
use conclave_ledger::Value;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

const KIND: &str = "That sounds like a lot for one week. What was the hardest part of it?";

async fn answered(house: &House, turn: Turn) -> String {
    let decision = house.engine.deliver(turn).await.unwrap().decision;
    assert_eq!(decision.outcome, Outcome::Delivered);
    decision.choices[0].delivered.text.clone()
}

fn in_country(country: &str, text: &str) -> Turn {
    let country = Some(country.to_owned());
    Turn { context: TurnContext { country, ..TurnContext::default() }, ..turn(text) }
}

#[tokio::test]
async fn a_reply_in_the_care_band_ends_with_one_sentence_and_is_otherwise_unchanged() {
    let house = wary(&[KIND]);
    let reply = house.engine.deliver(in_country("US", "It was a weighty week.")).await.unwrap();
    let decision = &reply.decision;
    assert!(!decision.input.crisis.is_crisis() && decision.scrutiny == Scrutiny::Normal);
    let text = &decision.choices[0].delivered.text;
    let added = text.strip_prefix(KIND).unwrap().trim();
    assert!(added.contains("988 Suicide & Crisis Lifeline"), "{added}");
    assert!(!added.contains('\n'), "one sentence: {added}");
    assert!(decision.has_care());
    let leaves = house.ledger.leaves();
    assert_eq!(leaves[0].draft.public.get("care").and_then(Value::as_bool), Some(true));
    let story = story_of(&house, decision.id).await;
    assert!(story.contains("weighing on you"), "{story}");
}

#[tokio::test]
async fn care_is_offered_in_japanese_with_the_line_of_japan() {
    let house = wary(&["それは大変でしたね。いちばんつらかったのは、どんなところでしたか。"]);
    let reply = house.engine.deliver(turn("今週は仕事がとても重荷でした。")).await.unwrap();
    let text = &reply.decision.choices[0].delivered.text;
    assert!(text.contains("よりそいホットライン"), "{text}");
    let story = story_of(&house, reply.decision.id).await;
    assert!(story.contains("一文を返事に添えました"), "{story}");
}

#[tokio::test]
async fn under_the_line_nothing_is_added() {
    let house = wary(&[KIND]);
    let decision = house.engine.deliver(turn("It was a good week.")).await.unwrap().decision;
    assert_eq!(decision.choices[0].delivered.text, KIND);
    assert!(!decision.has_care());
    assert!(house.ledger.leaves()[0].draft.public.get("care").is_none());
}

#[tokio::test]
async fn a_tenant_may_switch_care_off_and_never_where_children_read() {
    let mut house = wary(&[KIND]);
    set_policy(&mut house, json!({"care": "off"}));
    assert_eq!(answered(&house, turn("It was a weighty week.")).await, KIND);
    let context = TurnContext { mode: Mode::ChildSafe, ..TurnContext::default() };
    let child = Turn { context, ..turn("It was a weighty week.") };
    assert!(answered(&house, child).await.len() > KIND.len());
}

#[tokio::test]
async fn a_reply_that_names_the_line_already_is_left_alone() {
    let named = "You could call the 988 Suicide & Crisis Lifeline (988) if you like to talk.";
    let house = wary(&[named]);
    assert_eq!(answered(&house, in_country("US", "It was a weighty week.")).await, named);
}

#[tokio::test]
async fn one_message_is_offered_help_once_however_many_replies_it_takes() {
    let house = wary(&[KIND]);
    let first = answered(&house, in_country("US", "It was a weighty week.")).await;
    let said = [
        Message::text(Role::User, "It was a weighty week."),
        Message::text(Role::Assistant, first),
        Message::text(Role::Tool, "sunny"),
    ];
    let goes_on = Turn { conversation: said.into(), ..in_country("US", "") };
    assert_eq!(answered(&house, goes_on).await, KIND);
}

#[tokio::test]
async fn what_a_program_reads_is_not_broken_by_a_sentence() {
    let house = wary(&[r#"{"mood": "low"}"#]);
    assert_eq!(answered(&house, turn("It was a weighty week.")).await, r#"{"mood": "low"}"#);
}

#[tokio::test]
async fn a_stream_by_windows_ends_with_the_sentence() {
    let mut house = wary(&[KIND]);
    let settings = Settings { stream: StreamPolicy::Windowed, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    let (sender, _progress) = unbounded_channel();
    let streamed = house.engine.stream(in_country("US", "It was a weighty week."), sender);
    let decision = streamed.await.unwrap().decision;
    let choice = &decision.choices[0];
    assert!(choice.delivered.text.starts_with(&choice.released));
    assert!(choice.delivered.text.contains("988 Suicide & Crisis Lifeline"), "{choice:?}");
}
