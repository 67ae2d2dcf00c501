//! Turns a behaviour into bytes on the wire.

use crate::behaviour::Behaviour;
use crate::completion::{
    completion, completion_sse, text_message, tool_call_sse, tool_message, usage_of,
};
use crate::gzip_bomb::bomb;
use crate::socket::ResetSwitch;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::{Response, header};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::time::Duration;

/// A body that may fail on purpose.
pub(crate) type MockBody = UnsyncBoxBody<Bytes, io::Error>;

/// `Err` closes the connection without a byte.
pub(crate) type Answer = io::Result<Response<MockBody>>;

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";

/// How much of a long body is written at a time.
const PIECE: [u8; 16 * 1024] = [b'a'; 16 * 1024];

/// Does what the behaviour says; `streaming` is whether the client asked for events.
pub(crate) async fn answer(behaviour: Behaviour, streaming: bool, reset: &ResetSwitch) -> Answer {
    match behaviour {
        Behaviour::Hang => std::future::pending().await,
        Behaviour::HangUp => Err(io::ErrorKind::ConnectionAborted.into()),
        Behaviour::Reply(text) if streaming => respond(200, SSE, pieces(completion_sse(&text))),
        Behaviour::ToolCall { name, arguments } if streaming => {
            respond(200, SSE, pieces(tool_call_sse(&name, &arguments)))
        }
        Behaviour::Sse(events) => respond(200, SSE, pieces(events)),
        Behaviour::EndlessSseLine => respond(200, SSE, streamed(stream::repeat(piece()).map(Ok))),
        Behaviour::Slow { text, bytes, every } => respond(200, JSON, slow(&text, bytes, every)),
        Behaviour::HalfClose => half(None),
        Behaviour::ShortLength => short_length(),
        Behaviour::Reset => half(Some(reset.clone())),
        Behaviour::Huge(bytes) => huge(bytes, true),
        Behaviour::HugeChunked(bytes) => huge(bytes, false),
        Behaviour::HugeStatus(status, bytes) => respond(status, JSON, filler(bytes)),
        Behaviour::Redirect(url) => with_header(302, header::LOCATION, &url),
        Behaviour::RetryAfter(status, seconds) => {
            with_header(status, header::RETRY_AFTER, &seconds.to_string())
        }
        Behaviour::GzipBomb => gzip_bomb(),
        whole => {
            let (status, content_type, bytes) = whole_body(whole);
            respond(status, content_type, full(bytes))
        }
    }
}

/// The behaviours that are one status and one body.
fn whole_body(behaviour: Behaviour) -> (u16, &'static str, Vec<u8>) {
    let (status, content_type, body) = match behaviour {
        Behaviour::Status(status, body) => (status, JSON, body),
        Behaviour::Html200 => (200, "text/html", "<html><body>Please log in</body></html>".into()),
        Behaviour::Garbage(bytes) => return (200, JSON, bytes),
        Behaviour::InvalidUtf8 => return (200, JSON, invalid_utf8()),
        json => (200, JSON, json_body(json)),
    };
    (status, content_type, body.into_bytes())
}

fn json_body(behaviour: Behaviour) -> String {
    let reply = |text: &str, usage: &Value| completion(&text_message(text), "stop", usage);
    let value = match behaviour {
        Behaviour::Json(value) => value,
        Behaviour::Reply(text) => reply(&text, &usage_of(&text)),
        Behaviour::ToolCall { name, arguments } => {
            completion(&tool_message(&name, &arguments), "tool_calls", &usage_of(""))
        }
        Behaviour::EmptyChoices => json!({"id": "chatcmpl-mock", "choices": []}),
        Behaviour::NullContent => {
            completion(&json!({"role": "assistant", "content": null}), "stop", &usage_of(""))
        }
        Behaviour::MissingUsage(text) => reply(&text, &Value::Null),
        Behaviour::NegativeUsage(text) => reply(
            &text,
            &json!({"prompt_tokens": -5, "completion_tokens": -7, "total_tokens": -12}),
        ),
        Behaviour::NanUsage(text) => {
            let marked = reply(&text, &json!({"prompt_tokens": "?", "completion_tokens": "?"}));
            return marked.to_string().replace("\"?\"", "NaN");
        }
        _ => Value::Null,
    };
    value.to_string()
}

fn respond(status: u16, content_type: &str, body: MockBody) -> Answer {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(body)
        .map_err(io::Error::other)
}

fn with_header(status: u16, name: header::HeaderName, value: &str) -> Answer {
    Response::builder()
        .status(status)
        .header(name, value)
        .body(full(br#"{"error":{"message":"not here, not now"}}"#.to_vec()))
        .map_err(io::Error::other)
}

fn full(bytes: Vec<u8>) -> MockBody {
    Full::new(Bytes::from(bytes)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn streamed(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> MockBody {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// Writes each piece on its own: the server flushes whenever the body has nothing ready.
fn pieces(pieces: Vec<Vec<u8>>) -> MockBody {
    streamed(stream::iter(pieces).then(|piece| async {
        tokio::task::yield_now().await;
        Ok(Bytes::from(piece))
    }))
}

fn piece() -> Bytes {
    Bytes::from_static(&PIECE)
}

fn filler(bytes: u64) -> MockBody {
    let whole = usize::try_from(bytes / PIECE.len() as u64).unwrap_or(usize::MAX);
    streamed(stream::repeat(piece()).take(whole).map(Ok))
}

fn slow(text: &str, bytes: usize, every: Duration) -> MockBody {
    let body = json_body(Behaviour::Reply(text.to_owned())).into_bytes();
    let drops: Vec<Bytes> = body.chunks(bytes.max(1)).map(Bytes::copy_from_slice).collect();
    streamed(stream::iter(drops).then(move |drop| async move {
        tokio::time::sleep(every).await;
        Ok(drop)
    }))
}

/// Declares a whole reply, sends half of it, and fails.
fn half(reset: Option<ResetSwitch>) -> Answer {
    let body = json_body(Behaviour::Reply("half of this never comes".into())).into_bytes();
    let length = body.len();
    let head = Bytes::copy_from_slice(body.get(..length / 2).unwrap_or_default());
    let end = stream::once(async move {
        // The first half is only flushed once the body has nothing more at hand.
        tokio::task::yield_now().await;
        if let Some(reset) = reset {
            reset.throw();
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    });
    let body = streamed(stream::iter([Ok(head)]).chain(end));
    declared(length as u64, body)
}

/// The server writes as many bytes as were declared and leaves the rest away.
fn short_length() -> Answer {
    let body = json_body(Behaviour::Reply("the end of this is cut".into())).into_bytes();
    declared(body.len() as u64 / 2, streamed(stream::iter([Ok(Bytes::from(body))])))
}

fn huge(bytes: u64, declare: bool) -> Answer {
    let reply = json_body(Behaviour::Reply("@".into()));
    let (head, tail) = reply.split_once('@').unwrap_or_default();
    let (head, tail) = (head.to_owned(), tail.to_owned());
    let bytes = bytes.next_multiple_of(PIECE.len() as u64);
    let length = bytes + (head.len() + tail.len()) as u64;
    let whole = usize::try_from(bytes / PIECE.len() as u64).unwrap_or(usize::MAX);
    let pieces = stream::iter([Bytes::from(head)])
        .chain(stream::repeat(piece()).take(whole))
        .chain(stream::iter([Bytes::from(tail)]));
    let body = streamed(pieces.map(Ok));
    if declare { declared(length, body) } else { respond(200, JSON, body) }
}

fn declared(length: u64, body: MockBody) -> Answer {
    Response::builder()
        .header(header::CONTENT_TYPE, JSON)
        .header(header::CONTENT_LENGTH, length)
        .body(body)
        .map_err(io::Error::other)
}

fn invalid_utf8() -> Vec<u8> {
    let mut body = json_body(Behaviour::Reply("@@".into())).into_bytes();
    for byte in &mut body {
        if *byte == b'@' {
            *byte = 0xff;
        }
    }
    body
}

fn gzip_bomb() -> Answer {
    Response::builder()
        .header(header::CONTENT_TYPE, JSON)
        .header(header::CONTENT_ENCODING, "gzip")
        .body(full(bomb()))
        .map_err(io::Error::other)
}
