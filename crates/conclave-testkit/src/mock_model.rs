//! An OpenAI-compatible server that does what a test tells it.
//!
//! **Invariant:** what it keeps is bounded: at most [`SEEN_MAX`] requests, the newest ones.
//!
//! **Invariant:** dropping it ends its task, its listener and every open connection.

use crate::behaviour::{Behaviour, Script};
use crate::request::SeenRequest;
use crate::response::{Answer, answer};
use crate::socket::{ResetSwitch, Socket};
use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// How many requests are kept; older ones are forgotten.
pub const SEEN_MAX: usize = 256;

/// The largest request it reads.
const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The ends of the paths it serves: OpenAI's chat and moderations, Anthropic's messages, and a verifier
/// of one's own.
const PATHS: [&str; 5] =
    ["/chat/completions", "/embeddings", "/moderations", "/messages", "/verify"];

/// A running mock model.
#[derive(Debug)]
pub struct MockModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl MockModel {
    /// Starts one on a free port of the loopback interface. The closure is shown the body of each
    /// request and says what to do with it; see [`crate::last_user_message`].
    ///
    /// # Errors
    /// When no socket can be had.
    pub async fn start(
        decide: impl Fn(&Value) -> Behaviour + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), decide).await
    }

    /// The same at a given address, for a test in which a provider goes away and comes back.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_at(
        address: SocketAddr,
        decide: impl Fn(&Value) -> Behaviour + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(decide));
        let server = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    /// Starts one that follows a script whatever it is asked.
    ///
    /// # Errors
    /// When no socket can be had.
    pub async fn scripted(script: Script) -> io::Result<Self> {
        Self::start(move |_| script.step()).await
    }

    /// Where it is, as a provider's base URL: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests reached it.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Acquire)
    }

    /// How many connections were opened to it.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.shared.lock_seen().iter().cloned().collect()
    }

    /// The bodies of the newest requests, oldest first.
    #[must_use]
    pub fn bodies(&self) -> Vec<Value> {
        let seen = self.shared.lock_seen();
        seen.iter().map(|seen| seen.body.clone()).collect()
    }

    /// Stops it and waits until its port is free again.
    pub async fn stop(mut self) {
        self.server.abort();
        // The only error is that it was cancelled, which is what was asked for.
        let _ = (&mut self.server).await;
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

type Decide = Box<dyn Fn(&Value) -> Behaviour + Send + Sync>;

struct Shared {
    decide: Decide,
    requests: AtomicU64,
    connections: AtomicU64,
    seen: Mutex<VecDeque<SeenRequest>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("requests", &self.requests)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn new(decide: impl Fn(&Value) -> Behaviour + Send + Sync + 'static) -> Self {
        Self {
            decide: Box::new(decide),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            seen: Mutex::new(VecDeque::new()),
        }
    }

    fn lock_seen(&self) -> std::sync::MutexGuard<'_, VecDeque<SeenRequest>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, seen: SeenRequest) {
        let mut all = self.lock_seen();
        if all.len() == SEEN_MAX {
            all.pop_front();
        }
        all.push_back(seen);
        drop(all);
        self.requests.fetch_add(1, Ordering::Release);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        shared.connections.fetch_add(1, Ordering::Release);
        open.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it a small reply can wait 40 ms for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let reset = ResetSwitch::default();
    let io = TokioIo::new(Socket::new(stream, reset.clone()));
    let service = service_fn(|request| handle(request, &shared, &reset));
    // A connection that ends badly is what many behaviours are about.
    let _ = http1::Builder::new().serve_connection(io, service).await;
}

async fn handle(request: Request<Incoming>, shared: &Shared, reset: &ResetSwitch) -> Answer {
    let seen = read(request).await?;
    let body = seen.body.clone();
    let served = PATHS.iter().any(|path| seen.path.ends_with(path));
    shared.keep(seen);
    if !served {
        let missing = Behaviour::Status(404, r#"{"error":{"message":"no such path"}}"#.into());
        return answer(missing, false, reset).await;
    }
    let streaming = body["stream"] == true;
    answer((shared.decide)(&body), streaming, reset).await
}

async fn read(request: Request<Incoming>) -> io::Result<SeenRequest> {
    let (head, body) = request.into_parts();
    let body =
        Limited::new(body, REQUEST_BYTES_MAX).collect().await.map_err(io::Error::other)?.to_bytes();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    Ok(SeenRequest {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
