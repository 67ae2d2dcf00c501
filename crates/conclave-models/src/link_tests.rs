//! How long a stream is waited for.

use super::*;
use conclave_core::GenerationFailure;
use futures_util::stream;
use std::io;
use tokio::time::sleep;

const PAUSE: Duration = Duration::from_secs(120);
const WHOLE: Duration = Duration::from_secs(600);

/// What a provider sends, and how many seconds after what went before.
#[derive(Clone)]
struct Sent(u64, String);

fn piece(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
}

fn answer_of(sent: Vec<Sent>) -> Answer {
    let pieces = stream::unfold(sent.into_iter(), |mut left| async move {
        let Sent(seconds, text) = left.next()?;
        sleep(Duration::from_secs(seconds)).await;
        Some((Ok::<_, io::Error>(text), left))
    });
    let body = reqwest::Body::wrap_stream(pieces);
    Answer::from(reqwest::Response::from(http::Response::new(body)))
}

/// What comes of it, and after how many seconds.
async fn fed(sent: Vec<Sent>) -> (Result<(), GenerationFailure>, u64) {
    let began = Instant::now();
    let patience = Patience { deadline: began + WHOLE, pause: PAUSE };
    let stream = EventStream {
        answer: answer_of(sent),
        bytes_max: 1 << 20,
        due: patience.from(began),
        patience,
    };
    let mut listener = Listener { pieces: None, has_heard: false };
    let fed = stream.feed(&mut Accumulator::default(), &mut listener).await;
    (fed.map_err(|fault| fault.failure), began.elapsed().as_secs())
}

fn done() -> Sent {
    Sent(0, "data: [DONE]\n\n".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_flows_is_not_cut() {
    let mut sent = vec![Sent(100, piece(r#"{"content":"word "}"#)); 5];
    sent.push(done());
    assert_eq!(fed(sent).await, (Ok(()), 500));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_thinks_aloud_is_not_silent() {
    let mut sent = vec![Sent(90, piece(r#"{"reasoning_content":"hm"}"#)); 5];
    sent.extend([Sent(90, piece(r#"{"content":"So."}"#)), done()]);
    assert_eq!(fed(sent).await, (Ok(()), 540));
}

#[tokio::test(start_paused = true)]
async fn comments_and_empty_events_are_silence() {
    for silence in [": waiting\n\n", "data:\n\n", "data: {\"choices\":[]}\n\n"] {
        let sent = vec![Sent(7, silence.to_owned()); 1_000];
        assert_eq!(fed(sent).await, (Err(GenerationFailure::Timeout), 120), "{silence:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_too_long_ends_a_stream() {
    let word = || piece(r#"{"content":"word "}"#);
    let sent = vec![Sent(100, word()), Sent(121, word()), done()];
    assert_eq!(fed(sent).await, (Err(GenerationFailure::Timeout), 220));
}

#[tokio::test(start_paused = true)]
async fn a_whole_reply_has_an_end() {
    let sent = vec![Sent(1, piece(r#"{"content":"word "}"#)); 1_000];
    assert_eq!(fed(sent).await, (Err(GenerationFailure::Timeout), 600));
}

#[tokio::test(start_paused = true)]
async fn what_never_ends_after_the_last_word_takes_nothing_away() {
    let last =
        r#"data: {"choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop"}]}"#;
    let sent = vec![Sent(1, format!("{last}\n\n")), Sent(500, String::new())];
    assert_eq!(fed(sent).await.0, Ok(()));
}
