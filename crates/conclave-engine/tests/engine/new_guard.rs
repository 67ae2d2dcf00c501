//! A guard that nobody has written yet: one type and one line in the list, and it acts everywhere.

use crate::fakes::Scripted;
use crate::recipes::{kitchen, run};
use crate::turns::{House, KIND, house, jury, turn};
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Outcome, Phase};
use conclave_engine::{
    Engine, Examined, Guard, GuardEntry, GuardError, Matter, Progress, Settings, StoredDecision,
    StreamPolicy,
};
use conclave_people::{DecisionReader, ReviewStanding, decision_view, explain};
use conclave_recipes::{RunEnding, RunRequest};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

/// Lets nobody speak of the canary, before or after.
struct NoCanary;

impl Guard for NoCanary {
    fn kind(&self) -> GuardKind {
        GuardKind::Toxicity
    }

    fn examine<'a>(
        &'a self,
        _: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        let is_named = matter.content.texts(phase).iter().any(|text| text.contains("canary"));
        let blocked = Disposition::Blocked;
        let code = GuardCode::Toxicity;
        let finding = Finding::new(GuardKind::Toxicity, phase, blocked, code, "A canary.");
        ready(Ok(is_named.then(|| finding.into()))).boxed()
    }
}

/// The one line.
fn with_guard(mut house: House, monitor: bool) -> House {
    let known = house.engine.guards.iter().cloned();
    let added = GuardEntry { guard: Arc::new(NoCanary), monitor };
    house.engine.guards = known.chain([added]).collect();
    house
}

const SUNG: &str = "The canary sang all day long, and nobody asked it to stop. It was a good day.";

#[tokio::test]
async fn it_stops_what_is_said_before_a_model_is_asked() {
    let house = with_guard(house(Scripted::saying(&[Ok(KIND)]), jury()), false);
    let reply = house.engine.deliver(turn("Tell me about the canary.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Blocked);
    assert_eq!(reply.decision.refusal, Some(GuardCode::Toxicity));
    assert!(house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn it_stops_replies_whole_and_in_windows() {
    for stream in [StreamPolicy::Buffered, StreamPolicy::Windowed] {
        let mut house = with_guard(house(Scripted::saying(&[Ok(SUNG)]), jury()), false);
        let settings = Settings { stream, ..(*house.engine.settings).clone() };
        house.engine.settings = Arc::new(settings);
        let (sender, mut released) = unbounded_channel();
        let reply = house.engine.stream(turn("How was the day?"), sender).await.unwrap();
        assert_eq!(reply.decision.outcome, Outcome::Blocked, "{stream:?}");
        let delivered = &reply.decision.choices[0].delivered.text;
        assert!(!delivered.contains("canary") && !delivered.is_empty(), "{delivered}");
        while let Ok(Progress::Released(window)) = released.try_recv() {
            assert!(!window.text.contains("canary"), "{}", window.text);
        }
        let entries = house.engine.archive.find(0, reply.decision.id).await.unwrap();
        let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
        let story =
            explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open)
                .story
                .join(" ");
        assert!(!story.contains("no model was asked"), "one was: {story}");
        assert!(story.contains("One reply was written") && story.contains("not sent"), "{story}");
    }
}

#[tokio::test]
async fn it_stops_runs_of_recipes() {
    let house = with_guard(kitchen(&[Ok("{}")], &[Ok("{}")], None), false);
    let request: RunRequest = serde_json::from_value(json!({
        "agent_name": "de-escalator",
        "context": {"user_id": "u", "consent_scope": ["support"], "purpose": "support"},
        "input": {"ticket_thread": [{"author": "u", "text": "My canary is ill."}]},
    }))
    .unwrap();
    let done = house.recipes().execute(run(request)).await.unwrap();
    let RunEnding::Refused { code, .. } = done.ending else { panic!("{:?}", done.ending) };
    assert_eq!(code, GuardCode::Toxicity);
    assert!(house.model.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn set_to_watch_it_is_recorded_and_changes_nothing() {
    let house = with_guard(house(Scripted::saying(&[Ok(SUNG)]), jury()), true);
    let reply = house.engine.deliver(turn("Tell me about the canary.")).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Delivered);
    assert_eq!(reply.decision.choices[0].delivered.text, SUNG);
    let watched = reply.decision.findings.iter().filter(|finding| finding.monitor);
    let phases: Vec<_> = watched.map(|finding| finding.phase).collect();
    assert_eq!(phases, [Phase::Before, Phase::After]);
    let leaf = &house.ledger.leaves()[0].draft.public;
    assert!(leaf.get("monitored").is_some() && leaf.get("guards").is_none(), "{leaf:?}");
    let entries = house.engine.archive.find(0, reply.decision.id).await.unwrap();
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    let seen = decision_view(&stored, DecisionReader::Public, ReviewStanding::Unasked);
    let found = |phase: &str| json!({"guard": "toxicity", "phase": phase, "outcome": "blocked", "code": "toxicity"});
    assert_eq!(seen["monitored"], json!([found("pre"), found("post")]), "{seen}");
    assert_eq!(seen["guards"], json!([]), "nothing was done");
}
