//! Accepting connections: who gets a place, how long a client may take to read, and stopping without
//! losing anything.
//!
//! **Invariant:** there are never more connections than places, and none is closed while it is being
//! answered: somebody who opens thousands and says nothing only pushes out their own.
//! **Invariant:** no address has more than its share of them, however busy it keeps them.
//! **Invariant:** waiting for a client to read ends: one that takes nothing for a while is cut off, so that
//! nobody keeps a place busy by asking for much and reading nothing.

use super::tls::TlsIdentity;
use crate::admission::body::{BodyPace, PacedBody};
use crate::admission::limits::GatewayLimits;
use crate::observation::metrics::ServerCounters;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::io::{Error, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};
use tower::Service;

/// Bytes of request head that are read before the connection is refused.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long to wait before accepting again when the system is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is known where connections come in: how many there are, and whether they are still welcome. Shared
/// by whoever accepts them and whoever is asked about it.
#[derive(Clone, Default)]
pub struct ServerState {
    counters: Arc<ServerCounters>,
    is_draining: Arc<AtomicBool>,
}

impl ServerState {
    /// From now on `/readyz` says that it stops.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    pub(crate) fn counters(&self) -> &ServerCounters {
        &self.counters
    }
}

/// Serves, encrypted where there is an identity, until `stop` resolves, then lets running requests finish within the drain timeout. Gives back
/// when that time is over: whatever else is to be finished shares it.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: GatewayLimits,
    tls: Option<Arc<TlsIdentity>>,
    state: &ServerState,
    stop: impl Future<Output = ()>,
) -> Instant {
    // From the first word on, whoever asks is told to go elsewhere; a while later nobody is let in.
    let stop = async {
        stop.await;
        state.drain();
        sleep(limits.drain_grace).await;
    };
    let http = http_server(&limits);
    let graceful = GracefulShutdown::new();
    let places = ConnectionPlaces::new(limits.connections_max, limits.connections_each_max());
    let pace = BodyPace::within(&limits);
    tokio::pin!(stop);
    loop {
        let (stream, from) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    state.counters().accept_failed();
                    tracing::warn!(%error, "could not accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        // Beyond the limit whoever is idle longest makes room. If nobody is, the new one is closed at once:
        // waiting in line would hide the overload.
        let Some(place) = places.take(from.ip()) else {
            state.counters().connection_refused();
            continue;
        };
        // Without this, Nagle and delayed acknowledgements stall small replies by 40 ms. It fails where the
        // client has gone away already.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let place = Arc::new(place);
        let service =
            ConnectionService { router: router.clone(), place: place.clone(), pace, from };
        let answering = AnsweredConnection {
            service,
            http: http.clone(),
            // Made before anything is awaited: whoever was let in is waited for at the end.
            watcher: graceful.watcher(),
            tls: tls.clone(),
            handshake_timeout: limits.header_timeout,
            write_timeout: limits.write_timeout,
        };
        let counted = state.clone();
        counted.counters().connected();
        tokio::spawn(async move {
            tokio::select! {
                () = answering.run(stream) => {}
                () = place.wait_until_wanted() => tracing::debug!("an idle connection made room for another"),
            }
            counted.counters().disconnected();
        });
    }
    drop(listener);
    let deadline = Instant::now() + limits.drain_timeout;
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    deadline
}

/// A connection, and how it is answered.
struct AnsweredConnection {
    service: ConnectionService,
    http: Builder,
    watcher: Watcher,
    tls: Option<Arc<TlsIdentity>>,
    handshake_timeout: Duration,
    write_timeout: Duration,
}

impl AnsweredConnection {
    async fn run(self, stream: TcpStream) {
        let Some(tls) = self.tls.clone() else {
            let stream = PatientStream::new(stream, self.write_timeout);
            return self.answer(stream).await;
        };
        match tls.accept(stream, self.handshake_timeout, self.write_timeout).await {
            // Boxed, because it is large and most gateways have a proxy before them.
            Ok(stream) => Box::pin(self.answer(stream)).await,
            Err(error) => tracing::debug!(%error, "a connection was not encrypted"),
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = TowerToHyperService::new(self.service);
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        // An error here is a client that went away or spoke no HTTP; nothing of ours was lost.
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

fn http_server(limits: &GatewayLimits) -> Builder {
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    http
}

/// The router, for one connection: says when it is being answered, and sees to it that it ends.
#[derive(Clone)]
struct ConnectionService {
    router: Router,
    place: Arc<ConnectionPlace>,
    pace: BodyPace,
    from: SocketAddr,
}

impl Service<http::Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Incoming>>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let busy = self.place.occupy();
        let pace = self.pace;
        let mut request = request.map(|body| PacedBody::new(body, pace));
        request.extensions_mut().insert(ConnectInfo(self.from));
        let answered = self.router.call(request);
        Box::pin(async move { answered.await.map(|response| busy.until_sent(response)) })
    }
}

/// All places, and who has them.
#[derive(Clone)]
struct ConnectionPlaces {
    shared: Arc<PlaceState>,
}

struct PlaceState {
    max: usize,
    each_max: usize,
    turn: AtomicU64,
    table: Mutex<PlaceTable>,
}

#[derive(Default)]
struct PlaceTable {
    holders: HashMap<u64, Arc<PlaceHolder>>,
    /// How many each address has.
    each: HashMap<IpAddr, usize>,
}

impl PlaceTable {
    /// Whoever has been idle longest, everywhere or at one address, leaves.
    fn make_room(&mut self, at: Option<IpAddr>) -> Option<()> {
        let asked = self.holders.iter().filter(|(_, holder)| at.is_none_or(|at| at == holder.at));
        let idle = asked.filter_map(|(id, holder)| {
            let since = holder.idle_since.load(Ordering::Acquire);
            (since > 0).then_some((since, *id))
        });
        let (_, longest) = idle.min()?;
        let left = self.remove(longest)?;
        left.is_replaced.store(true, Ordering::Release);
        left.leave.notify_one();
        Some(())
    }

    fn remove(&mut self, id: u64) -> Option<Arc<PlaceHolder>> {
        let left = self.holders.remove(&id)?;
        if let Entry::Occupied(mut count) = self.each.entry(left.at) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(left)
    }
}

struct PlaceHolder {
    at: IpAddr,
    /// 0 while it is being answered, else when it last fell idle: the number of a turn, which only grows.
    idle_since: AtomicU64,
    /// Somebody else has the place already.
    is_replaced: AtomicBool,
    leave: Notify,
}

/// One place; given back when dropped.
struct ConnectionPlace {
    id: u64,
    holder: Arc<PlaceHolder>,
    places: ConnectionPlaces,
}

impl ConnectionPlaces {
    fn new(max: usize, each_max: usize) -> Self {
        let shared = PlaceState { max, each_max, turn: AtomicU64::new(1), table: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// A place, if there is one or somebody idle makes room.
    fn take(&self, from: IpAddr) -> Option<ConnectionPlace> {
        let id = self.next_turn();
        let at = address_group(from);
        let mut table = self.lock();
        if table.each.get(&at).is_some_and(|count| *count >= self.shared.each_max) {
            table.make_room(Some(at))?;
        } else if table.holders.len() >= self.shared.max {
            table.make_room(None)?;
        }
        let holder = Arc::new(PlaceHolder {
            at,
            idle_since: AtomicU64::new(id),
            is_replaced: AtomicBool::new(false),
            leave: Notify::new(),
        });
        *table.each.entry(at).or_default() += 1;
        table.holders.insert(id, Arc::clone(&holder));
        drop(table);
        Some(ConnectionPlace { id, holder, places: self.clone() })
    }

    fn next_turn(&self) -> u64 {
        self.shared.turn.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, PlaceTable> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose address it is: a house with IPv6 has all that begin with the same 64 bits.
fn address_group(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

impl ConnectionPlace {
    /// Resolves when somebody else needs the place, and nothing is being answered: a request that came in the
    /// same moment is answered first.
    async fn wait_until_wanted(&self) {
        loop {
            self.holder.leave.notified().await;
            if self.holder.idle_since.load(Ordering::Acquire) > 0 {
                return;
            }
        }
    }

    /// Says that the connection is being answered, until what is returned is dropped.
    fn occupy(&self) -> OccupiedPlace {
        self.holder.idle_since.store(0, Ordering::Release);
        OccupiedPlace { holder: Arc::clone(&self.holder), places: self.places.clone() }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.lock().remove(self.id);
    }
}

/// A connection is being answered.
struct OccupiedPlace {
    holder: Arc<PlaceHolder>,
    places: ConnectionPlaces,
}

impl OccupiedPlace {
    /// The response, whose connection is busy until all of it was sent.
    fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(SendingBody { body, _busy: self }))
    }
}

impl Drop for OccupiedPlace {
    fn drop(&mut self) {
        self.holder.idle_since.store(self.places.next_turn(), Ordering::Release);
        if self.holder.is_replaced.load(Ordering::Acquire) {
            self.holder.leave.notify_one();
        }
    }
}

struct SendingBody {
    body: Body,
    _busy: OccupiedPlace,
}

impl HttpBody for SendingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection, and how long it yet waits for its client to read.
pub(super) struct PatientStream<S> {
    stream: S,
    write_timeout: Duration,
    /// Made when the client is first waited for, and kept: few are.
    alarm: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> PatientStream<S> {
    pub(super) const fn new(stream: S, write_timeout: Duration) -> Self {
        Self { stream, write_timeout, alarm: None, is_waiting: false }
    }

    /// What a write came to; an error if nothing could be written for too long.
    fn bound_wait<T>(
        &mut self,
        written: Poll<std::io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let timeout = self.write_timeout;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.is_waiting {
            self.is_waiting = true;
            alarm.as_mut().reset(Instant::now() + timeout);
        }
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound_wait(written, context)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.bound_wait(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
