//! How long a model is waited for: a first word, the next one, and the whole.

use crate::fakes::Scripted;
use crate::turns::{House, house, jury, turn};
use conclave_core::{Candidate, GenerationFailure, MicroUsd, Outcome};
use conclave_engine::{
    Decision, Model, ModelDirectory, ModelError, ModelRequest, OfferedModel, Progress, Settings,
    StreamPolicy, Turn,
};
use futures_util::future::BoxFuture;
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, unbounded_channel};
use tokio::time::{Instant, sleep};

const SENTENCE: &str = "That was a long day, and it is over now. ";

/// A model that writes a sentence every so often.
#[derive(Clone)]
struct Steady {
    sentences: usize,
    every: Duration,
}

impl Model for Steady {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        let candidate = Candidate { text: SENTENCE.repeat(self.sentences), ..Candidate::default() };
        Box::pin(std::future::ready(Ok(candidate)))
    }

    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        pieces: mpsc::Sender<String>,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(async move {
            for _ in 0..self.sentences {
                sleep(self.every).await;
                let _ = pieces.send(SENTENCE.to_owned()).await;
            }
            self.generate(request).await
        })
    }
}

impl ModelDirectory for Steady {
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

fn steady(sentences: usize, every_s: u64, stream: StreamPolicy) -> House {
    let mut house = house(Scripted::saying(&[Ok("unused")]), jury());
    house.engine.models = Arc::new(Steady { sentences, every: Duration::from_secs(every_s) });
    let settings = Settings { stream, ..(*house.engine.settings).clone() };
    house.engine.settings = Arc::new(settings);
    house
}

/// A turn whose client reads events.
fn streamed_turn() -> Turn {
    let body = Map::from_iter([("stream".to_owned(), json!(true))]);
    Turn { body: Arc::new(body), ..turn("My day was long.") }
}

async fn decide(house: &House, turn: Turn) -> Arc<Decision> {
    let (sender, mut progress) = unbounded_channel();
    let decision = house.engine.stream(turn, sender).await.unwrap().decision;
    while let Ok(Progress::Released(_)) = progress.try_recv() {}
    decision
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_keeps_coming_is_not_cut() {
    for policy in [StreamPolicy::Windowed, StreamPolicy::Buffered] {
        let house = steady(5, 100, policy);
        let began = Instant::now();
        let decision = decide(&house, streamed_turn()).await;
        assert_eq!(decision.outcome, Outcome::Delivered, "{policy:?}");
        assert_eq!(decision.choices[0].delivered.text, SENTENCE.repeat(5));
        assert!(began.elapsed() >= Duration::from_secs(500), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_reply_has_an_end() {
    let house = steady(100, 100, StreamPolicy::Windowed);
    let began = Instant::now();
    let decision = decide(&house, streamed_turn()).await;
    assert_ne!(decision.outcome, Outcome::Delivered);
    assert!(began.elapsed() <= Duration::from_secs(600), "{:?}", began.elapsed());
    assert!(began.elapsed() >= Duration::from_secs(599), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_is_asked_once_and_given_up() {
    let model = Scripted::slowly(&[Ok("Too late.")], Duration::from_secs(3_600));
    let house = house(model.clone(), jury());
    let began = Instant::now();
    let decision = house.engine.deliver(turn("My day was long.")).await.unwrap().decision;
    assert_eq!(decision.failure(), Some(GenerationFailure::Timeout));
    assert_eq!(model.asked.lock().unwrap().len(), 1);
    let waited = began.elapsed();
    assert!((119..=120).contains(&waited.as_secs()), "{waited:?}");
    let asked = model.asked.lock().unwrap()[0].clone();
    assert!(asked.timeout > Duration::from_secs(590), "the whole has longer: {:?}", asked.timeout);
    assert!(asked.pause <= Duration::from_secs(120), "{:?}", asked.pause);
}

#[tokio::test(start_paused = true)]
async fn somebody_in_crisis_is_answered_at_once_all_the_same() {
    let model = Scripted::slowly(&[Ok("Too late.")], Duration::from_secs(3_600));
    let house = house(model, jury());
    let began = Instant::now();
    let said = turn("I do not want to live any more. I want to kill myself.");
    let decision = house.engine.deliver(said).await.unwrap().decision;
    assert_eq!(decision.outcome, Outcome::SafeCompletion);
    assert!(began.elapsed() <= Duration::from_secs(8), "{:?}", began.elapsed());
}
