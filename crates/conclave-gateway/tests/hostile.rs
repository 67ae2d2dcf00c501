//! Clients that are slow, silent or ambiguous on purpose, and honest ones beside them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

use axum::Router;
use axum::routing::{get, post};
use conclave_gateway::{GatewayLimits, ServerState, serve};
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// More than the system keeps of what is sent to somebody who does not read.
const MUCH: usize = 64 * 1024 * 1024;

/// A server that stops when this is dropped.
struct Open {
    addr: SocketAddr,
    _stop: oneshot::Sender<()>,
}

async fn open(limits: GatewayLimits) -> Open {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/", get(async || "fine"))
        .route("/form", post(async |form: String| form))
        .route("/much", get(async || vec![b' '; MUCH]));
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        serve(listener, router, limits, None, &ServerState::default(), stop).await
    });
    Open { addr, _stop: stop }
}

async fn honest(addr: SocketAddr) -> String {
    send(addr, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await
}

/// Sends bytes and reads to the end of the connection.
async fn send(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // Whoever is refused early may find the connection closed while still sending.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_slow_heads_are_cut_off_and_honest_clients_do_not_notice() {
    let limits =
        GatewayLimits { header_timeout: Duration::from_millis(300), ..GatewayLimits::default() };
    let open = open(limits).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(open.addr).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nx-drip: a").await.unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        assert!(honest(open.addr).await.starts_with("HTTP/1.1 200"));
    }
    for mut stream in slow {
        let mut rest = Vec::new();
        // Ends only when the server has closed it.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).contains("fine"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_silent_connections_make_room_for_honest_ones() {
    let limits = GatewayLimits { connections_max: 64, ..GatewayLimits::default() };
    let open = open(limits).await;
    let mut silent = Vec::new();
    for number in 0..600 {
        silent.push(TcpStream::connect(open.addr).await.unwrap());
        if number % 20 == 0 {
            let answer = honest(open.addr).await;
            assert!(answer.ends_with("fine"), "after {number} silent ones: {answer}");
        }
    }
    // The first of them were closed, so that there never were more than the limit.
    let mut first = silent.swap_remove(0);
    assert_eq!(first.read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_a_connection_that_falls_silent_after_an_answer_is_closed() {
    let limits =
        GatewayLimits { header_timeout: Duration::from_millis(300), ..GatewayLimits::default() };
    let open = open(limits).await;
    let answer = send(open.addr, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.ends_with("fine"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_bodies_that_do_not_come_are_cut_off_wherever_they_go() {
    let limits = GatewayLimits {
        body_grace: Duration::from_millis(300),
        connections_max: 8,
        connections_per_address_max: 8,
        ..GatewayLimits::default()
    };
    let open = open(limits).await;
    let head = b"POST /form HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\na=";
    let all = join_all((0..8).map(|_| send(open.addr, head))).await;
    for answer in all {
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // Every place is free again.
    assert!(honest(open.addr).await.ends_with("fine"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_a_client_that_does_not_read_is_cut_off() {
    let limits = GatewayLimits {
        write_timeout: Duration::from_millis(300),
        connections_max: 1,
        connections_per_address_max: 1,
        ..GatewayLimits::default()
    };
    let open = open(limits).await;
    let mut greedy = TcpStream::connect(open.addr).await.unwrap();
    greedy.write_all(b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    greedy.readable().await.unwrap();
    // The only place is busy until it is given up; whoever comes meanwhile is closed at once.
    while !honest(open.addr).await.ends_with("fine") {}
    let mut got = Vec::new();
    let _ = greedy.read_to_end(&mut got).await;
    assert!(got.len() < MUCH, "it was cut off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i06_http2_is_not_spoken_so_that_streams_cannot_be_reset() {
    let open = open(GatewayLimits::default()).await;
    let answer = send(open.addr, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert!(!answer.contains("fine"), "{answer}");
    let upgrade = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings, close\r\n\
        upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n";
    let answer = send(open.addr, upgrade).await;
    assert!(!answer.starts_with("HTTP/1.1 101"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i05_heads_that_can_be_read_in_two_ways_are_refused() {
    let open = open(GatewayLimits::default()).await;
    for odd in [
        "GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\nabcde",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 5, 5\r\n\r\nabcde",
        "GET / HTTP/1.1\r\nhost: x\r\nx-a: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nhost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nx-a: b\0c\r\n\r\n",
        "GET  / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let answer = send(open.addr, odd.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400") || answer.is_empty(), "{odd:?}: {answer}");
    }
}
