//! Bodies that are slow, large, many at once or no honest JSON.

use super::*;
use crate::error::Envelope;
use futures_util::stream::{self, StreamExt};
use http_body_util::StreamBody;
use std::convert::Infallible;
use tokio::time::sleep;

type Piece = Result<Frame<Bytes>, Infallible>;

/// Sends a piece, waits, and so on.
fn dripping(
    pieces: usize,
    bytes: usize,
    pause: Duration,
) -> PacedBody<impl HttpBody<Data = Bytes, Error = Infallible> + Unpin> {
    let drip = stream::iter(0..pieces).then(move |_| async move {
        sleep(pause).await;
        Piece::Ok(Frame::data(Bytes::from(vec![b' '; bytes])))
    });
    PacedBody::new(StreamBody::new(Box::pin(drip)), BodyPace::within(&GatewayLimits::default()))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_ends_and_one_that_flows_does_not() {
    let second = Duration::from_secs(1);
    let began = Instant::now();
    let silent = dripping(1, 1, 3_600 * second).collect().await;
    assert!(TooSlow::is_in(&*silent.err().unwrap()));
    assert_eq!(began.elapsed(), 5 * second);
    let began = Instant::now();
    assert!(dripping(1_000, 10, second).collect().await.is_err());
    assert!(began.elapsed() < 6 * second, "{:?}", began.elapsed());
    let slow = dripping(30, 1_100, second).collect().await.unwrap();
    assert_eq!(slow.to_bytes().len(), 33_000);
    let late = dripping(1, 10, 4 * second).collect().await.unwrap();
    assert_eq!(late.to_bytes().len(), 10);
}

#[tokio::test]
async fn large_bodies_share_one_room_and_small_ones_need_none() {
    let limits = GatewayLimits {
        body_bytes_max: 1024 * 1024,
        bodies_bytes_max: 1024 * 1024,
        ..GatewayLimits::default()
    };
    let room = BodyRoom::new(&limits);
    let read = async |bytes: usize| {
        let body = Body::from(vec![b' '; bytes]);
        let read = read_body(&HeaderMap::new(), body, &limits, &room).await;
        read.map_err(|error| error.body(Envelope::OpenAi)["error"]["code"].clone())
    };
    let first = read(700 * 1024).await.unwrap();
    assert_eq!(first.bytes.len(), 700 * 1024);
    assert_eq!(read(700 * 1024).await.err().unwrap(), "overloaded");
    assert_eq!(read(2 * 1024 * 1024).await.err().unwrap(), "request_too_large");
    assert!(read(SMALL_BYTES).await.is_ok());
    drop(first);
    assert!(read(1024 * 1024).await.is_ok(), "what was held is given back");
}

#[tokio::test(start_paused = true)]
async fn each_way_for_a_body_to_fail_has_its_own_code() {
    let limits = GatewayLimits { body_bytes_max: 1024, ..GatewayLimits::default() };
    let room = BodyRoom::new(&limits);
    let second = Duration::from_secs(1);
    let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("reset"))]);
    let declared = HeaderMap::from_iter([(header::CONTENT_LENGTH, "1025".parse().unwrap())]);
    let none = HeaderMap::new();
    for (headers, body, code) in [
        (&none, Body::new(dripping(1, 1, 3_600 * second)), "request_timeout"),
        (&none, Body::from(vec![b' '; 1025]), "request_too_large"),
        (&declared, Body::empty(), "request_too_large"),
        (&none, Body::from_stream(broken), "invalid_request"),
    ] {
        let error = read_body(headers, body, &limits, &room).await.unwrap_err();
        assert_eq!(error.body(Envelope::OpenAi)["error"]["code"], code);
    }
}

#[test]
fn json_is_read_as_serde_json_reads_it() {
    for text in ["null", "[]", "{}", r#"{"a":[1,-2,3.5,"x",true,null],"b":{"c":{}}}"#] {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse_json(text.as_bytes()).unwrap(), expected, "{text}");
    }
}

#[test]
fn json_that_could_be_read_two_ways_or_without_end_is_refused() {
    let deep = "[".repeat(100_000);
    let wide = format!("[{}0]", "0,".repeat(NODES_MAX));
    let cases: [(&[u8], &str); 8] = [
        (br#"{"messages":[],"messages":[1]}"#, "`messages` stands twice"),
        (br#"{"a":{"b":1,"b":2}}"#, "`b` stands twice"),
        (deep.as_bytes(), "deeper than 64"),
        (wide.as_bytes(), "more than 100000"),
        (b"{} {}", "trailing characters"),
        (b"1e999", "number out of range"),
        (b"\"\xff\"", "invalid unicode"),
        (b"", "EOF"),
    ];
    for (bytes, expected) in cases {
        let message = parse_json(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message} should say {expected}");
    }
}
