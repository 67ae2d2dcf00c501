//! A mock model for benchmarks and demonstrations: answers every chat request with the same text.
//!
//! **Invariant:** it does next to nothing per request: no JSON is parsed and every reply is made
//! beforehand, so that a measurement through it is a measurement of something else.
//!
//! `cargo run -p conclave-testkit --example mock-model -- --listen 127.0.0.1:9000 --text "Hello."`

use bytes::Bytes;
use conclave_testkit::{completion, completion_sse};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::json;
use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

const USAGE: &str =
    "mock-model [--listen 127.0.0.1:9000] [--text TEXT] [--delay-ms N] [--event-ms N]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stderr(), "mock model at http://{address}/v1")?;
    let replies = Arc::new(Replies::new(&options));
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream, Arc::clone(&replies)));
    }
}

struct Options {
    listen: SocketAddr,
    text: String,
    delay: Duration,
    /// How long after another an event leaves; without, all leave at once.
    between: Duration,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9000)),
            text: "That sounds like a lot to carry. What would help most right now?".into(),
            delay: Duration::ZERO,
            between: Duration::ZERO,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--listen" => options.listen = value.parse()?,
                "--text" => options.text = value,
                "--delay-ms" => options.delay = Duration::from_millis(value.parse()?),
                "--event-ms" => options.between = Duration::from_millis(value.parse()?),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

struct Replies {
    whole: Bytes,
    events: Vec<Bytes>,
    delay: Duration,
    between: Duration,
}

impl Replies {
    fn new(options: &Options) -> Self {
        let tokens = options.text.len().div_ceil(4);
        let whole = completion(
            &json!({"role": "assistant", "content": options.text}),
            "stop",
            &json!({
                "prompt_tokens": 10,
                "completion_tokens": tokens,
                "total_tokens": 10 + tokens,
            }),
        );
        Self {
            whole: whole.to_string().into(),
            events: events(options),
            delay: options.delay,
            between: options.between,
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
        let body = request.into_body().collect().await?.to_bytes();
        let events = asks_for_events(&body);
        let delay = if events { self.delay } else { self.delay + self.writing() };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let (content_type, reply) = if events {
            ("text/event-stream", self.as_events())
        } else {
            ("application/json", Full::new(self.whole.clone()).boxed_unsync())
        };
        let mut response = Response::new(reply);
        let content_type = header::HeaderValue::from_static(content_type);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        Ok(response)
    }
}

impl Replies {
    /// How long the events take to leave; a whole reply is there when the last of them would be.
    fn writing(&self) -> Duration {
        self.between * u32::try_from(self.events.len()).unwrap_or(u32::MAX)
    }

    fn as_events(&self) -> Body {
        if let [whole] = self.events.as_slice() {
            return Full::new(whole.clone()).boxed_unsync();
        }
        let (events, between) = (self.events.clone(), self.between);
        let paced = stream::unfold(events.into_iter(), move |mut left| async move {
            let event = left.next()?;
            tokio::time::sleep(between).await;
            Some((Ok(Frame::data(event)), left))
        });
        StreamBody::new(paced).boxed_unsync()
    }
}

/// The events of a reply: all in one piece, or each by itself where they leave one after the other.
fn events(options: &Options) -> Vec<Bytes> {
    let events = completion_sse(&options.text);
    if options.between.is_zero() {
        return vec![events.concat().into()];
    }
    events.into_iter().map(Bytes::from).collect()
}

/// Looks for the flag as text: a user who writes it in a message gets events, which is harmless
/// here.
fn asks_for_events(body: &[u8]) -> bool {
    [&b"\"stream\":true"[..], b"\"stream\": true"]
        .iter()
        .any(|flag| body.windows(flag.len()).any(|window| window == *flag))
}

async fn serve(stream: TcpStream, replies: Arc<Replies>) {
    // A small reply must not wait for an acknowledgement, nor may a bad client stop the server.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| replies.answer(request));
    let _ = http1::Builder::new()
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
