//! Replies that leave window by window, with every port in memory.

use crate::fakes::{Juror, Scripted, opinion};
use crate::turns::{House, house, turn};
use conclave_core::{Candidate, MicroUsd, Outcome, Reason, Vote};
use conclave_engine::{
    DeliverError, Model, ModelDirectory, ModelError, ModelRequest, OfferedModel, Progress, Reply,
    Settings, StoredDecision, StreamPolicy, Verifier, replay,
};
use conclave_ledger::{Kind, Value};
use conclave_people::{ReviewStanding, explain};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::{self, unbounded_channel};

/// A model that writes its reply in these pieces.
#[derive(Clone)]
struct Piecewise(&'static [&'static str]);

impl Model for Piecewise {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        let candidate = Candidate { text: self.0.concat(), ..Candidate::default() };
        Box::pin(std::future::ready(Ok(candidate)))
    }

    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        pieces: mpsc::Sender<String>,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            for piece in self.0 {
                let _ = pieces.send((*piece).to_owned()).await;
            }
            self.generate(request).await
        })
    }
}

impl ModelDirectory for Piecewise {
    fn find(&self, _: &str) -> Option<OfferedModel> {
        Some(OfferedModel {
            model: Arc::new(self.clone()),
            provider: "test".into(),
            input_price: MicroUsd(0),
            output_price: MicroUsd(0),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        Vec::new()
    }
}

/// Objects to what sounds cold until it is put right, and vetoes a call to harm.
fn jury() -> Vec<Arc<dyn Verifier>> {
    let judge = |text: &str| {
        Ok(if text.contains("do it") {
            opinion(Vote::Harmful, 1.0, &[Reason::EncouragesHarm])
        } else if text.contains("Calm down") && !text.contains("I am with you") {
            opinion(Vote::Concern, 1.0, &[Reason::Minimises])
        } else {
            opinion(Vote::Safe, 0.9, &[])
        })
    };
    ["crisis", "wisdom", "shadow"].map(|name| Juror::seated(name, 3, Duration::ZERO, judge)).into()
}

fn windowed(pieces: &'static [&'static str]) -> House {
    let mut house = house(Scripted::saying(&[Ok("unused")]), jury());
    house.engine.models = Arc::new(Piecewise(pieces));
    let settings = Settings { stream: StreamPolicy::Windowed, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    house
}

/// What left, and what was decided.
async fn streamed(house: &House) -> (Vec<String>, Result<Reply, DeliverError>) {
    let (sender, mut progress) = unbounded_channel();
    let decided = house.engine.stream(turn("My day was long."), sender).await;
    let mut left = Vec::new();
    while let Ok(Progress::Released(released)) = progress.try_recv() {
        left.push(released.text);
    }
    (left, decided)
}

#[tokio::test]
async fn every_window_is_durable_and_committed_to() {
    let house = windowed(&["The first sentence is here. The sec", "ond one follows it now. End"]);
    let (left, decided) = streamed(&house).await;
    let decision = decided.unwrap().decision;
    assert_eq!(left, ["The first sentence is here.", " The second one follows it now."]);
    assert_eq!(decision.outcome, Outcome::Delivered);
    assert_eq!(decision.choices[0].delivered.text, format!("{} End", left.concat()));
    let leaves = house.ledger.leaves();
    let kinds: Vec<_> = leaves.iter().map(|leaf| leaf.draft.kind.clone()).collect();
    assert_eq!(kinds[..3], [Kind::Window, Kind::Window, Kind::Decision]);
    assert!(leaves.iter().all(|leaf| replay(leaf).is_ok()));
    let hashes: Vec<_> = decision.choices[0].windows.iter().map(|one| one.leaf_hash).collect();
    let held = leaves[..2].iter().map(|leaf| conclave_ledger::leaf_hash(&leaf.encode()));
    assert_eq!(hashes, held.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_sentence_leaves_with_the_blank_after_it_and_no_number_is_cut_in_two() {
    let house = windowed(&[
        "The first sentence is over in 2024. ",
        "Somebody paid with 4111 1111",
        " 1111 1111 and left it with Dr. ",
        "Weber of the second floor. ",
        "End",
    ]);
    let (left, decided) = streamed(&house).await;
    assert_eq!(
        left,
        [
            "The first sentence is over in 2024.",
            " Somebody paid with [PAYMENT_CARD_1] and left it with Dr. Weber of the second floor.",
        ]
    );
    let decision = decided.unwrap().decision;
    assert_eq!(decision.choices[0].delivered.text, format!("{} End", left.concat()));
}

#[tokio::test]
async fn a_window_that_its_panel_did_not_pass_is_found() {
    let house = windowed(&["The first sentence is here. End"]);
    assert!(streamed(&house).await.1.is_ok());
    let mut leaf = house.ledger.leaves().remove(0);
    assert_eq!(leaf.draft.kind, Kind::Window);
    assert!(replay(&leaf).is_ok());
    let public = leaf.draft.public.clone();
    let kept = ["index", "start", "end", "text", "crisis", "panel", "tail"];
    let kept = kept.map(|name| (name, public.get(name).unwrap().clone()));
    let raised = ("bars", Value::Array([100, 100, 100].map(Value::Uint).into()));
    leaf.draft.public = Value::map(kept.into_iter().chain([raised]));
    assert!(replay(&leaf).is_err());
}

#[tokio::test]
async fn what_is_objected_to_waits_for_what_puts_it_right() {
    let house =
        windowed(&["Calm down, it is not so bad. ", "I am with you in this all the way. x"]);
    let (left, decided) = streamed(&house).await;
    assert_eq!(left, ["Calm down, it is not so bad. I am with you in this all the way."]);
    assert_eq!(decided.unwrap().decision.outcome, Outcome::Delivered);
}

#[tokio::test]
async fn a_veto_stops_what_has_begun_and_our_words_end_it() {
    let house = windowed(&["The first sentence is here. Now go and do it, all of it. And more."]);
    let (left, decided) = streamed(&house).await;
    assert_eq!(left, ["The first sentence is here."]);
    let decision = decided.unwrap().decision;
    assert_eq!((decision.outcome, decision.attempts()), (Outcome::Escalated, 1));
    let text = &decision.choices[0].delivered.text;
    assert!(text.starts_with(&left[0]) && text.len() > left[0].len() + 20, "{text}");
    assert!(!text.contains("do it"));
    let entries = house.engine.archive.find(0, decision.id).await.unwrap();
    let stored = StoredDecision::from_entries(entries).unwrap().unwrap();
    let story = explain(&stored, ReviewStanding::Unasked, &conclave_people::AppealStanding::Open)
        .story
        .join(" ");
    assert!(story.contains("were sent to you") && !story.contains("none was sent"), "{story}");
}

/// Writes something that must not be said, and never comes to its end.
#[derive(Clone)]
struct Endless;

impl Model for Endless {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(std::future::pending())
    }

    fn generate_in_pieces(
        &self,
        _: ModelRequest,
        pieces: mpsc::Sender<String>,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            let said = "The first sentence is here. Now go and do it, all of it. And more.";
            let _ = pieces.send(said.to_owned()).await;
            std::future::pending().await
        })
    }
}

impl ModelDirectory for Endless {
    fn find(&self, _: &str) -> Option<OfferedModel> {
        let (input_price, output_price) = (MicroUsd(1_000_000), MicroUsd(1_000_000));
        let (model, provider) = (Arc::new(self.clone()), "test".into());
        Some(OfferedModel { model, provider, input_price, output_price })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_stream_that_a_veto_cut_off_is_charged_at_its_most() {
    let mut house = windowed(&[""]);
    house.engine.models = Arc::new(Endless);
    let (left, decided) = streamed(&house).await;
    assert_eq!(left, ["The first sentence is here."]);
    let decision = decided.unwrap().decision;
    assert_eq!(decision.outcome, Outcome::Escalated);
    // What is added to a prompt at most, and what a model may write where nobody said how much.
    let most = conclave_money::GUIDANCE_TOKENS_MAX + conclave_money::OUTPUT_TOKENS_DEFAULT;
    assert!(decision.cost.0 >= most, "{}", decision.cost.0);
}

#[tokio::test]
async fn a_last_sentence_that_closes_no_window_is_looked_at_by_itself() {
    let house = windowed(&["The first sentence is here. The second one follows it now. So do it."]);
    let (left, decided) = streamed(&house).await;
    assert_eq!(left.len(), 2);
    assert_eq!(decided.unwrap().decision.outcome, Outcome::Escalated);
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_leave() {
    let house = windowed(&["The first sentence is here. The second one follows it now. End"]);
    house.ledger.broken.store(true, Ordering::Relaxed);
    let (left, decided) = streamed(&house).await;
    assert_eq!(left, Vec::<String>::new());
    assert!(matches!(decided, Err(DeliverError::AuditUnavailable(_))));
}

#[tokio::test]
async fn whoever_left_is_not_written_to_and_the_turn_is_finished() {
    let house = windowed(&["The first sentence is here. The second one follows it now. End"]);
    let (sender, progress) = unbounded_channel();
    drop(progress);
    let reply = house.engine.stream(turn("My day was long."), sender).await.unwrap();
    assert_eq!(reply.decision.outcome, Outcome::Delivered);
    assert_eq!(reply.decision.choices[0].windows.len(), 1, "then nobody was there");
}
