//! Accepting connections, and stopping without losing anything.

use crate::admission::limits::GatewayLimits;
use crate::connection::connections::{Place, Places};
use crate::connection::doors::Doors;
use crate::connection::paced_body::{Pace, PacedBody};
use crate::connection::patient_stream::PatientStream;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tower::Service;

/// Bytes of request head that are read before the connection is refused.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long to wait before accepting again when the system is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` resolves, then lets running requests finish within the drain timeout. Gives back
/// when that time is over: whatever else is to be finished shares it.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: GatewayLimits,
    doors: &Doors,
    stop: impl Future<Output = ()>,
) -> Instant {
    // From the first word on, whoever asks is told to go elsewhere; a while later nobody is let in.
    let stop = async {
        stop.await;
        doors.drain();
        tokio::time::sleep(limits.drain_grace).await;
    };
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let places = Places::new(limits.connections_max, limits.connections_each_max());
    let pace = Pace::of(&limits);
    tokio::pin!(stop);
    loop {
        let (stream, from) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    doors.house().accept_failed();
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        // Beyond the limit whoever is idle longest makes room. If nobody is, the new one is closed at once:
        // waiting in line would hide the overload.
        let Some(place) = places.take(from.ip()) else {
            doors.house().connection_refused();
            continue;
        };
        let Some(stream) = prepared(stream) else {
            continue;
        };
        let place = Arc::new(place);
        let occupied = Occupied { router: router.clone(), place: place.clone(), pace, from };
        let service = TowerToHyperService::new(occupied);
        let stream = PatientStream::new(stream, limits.write_timeout);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        let counted = doors.clone();
        counted.house().connected();
        tokio::spawn(async move {
            tokio::select! {
                // An error here is a client that went away or spoke no HTTP; nothing of ours was lost.
                ended = watched => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                },
                () = place.wanted() => tracing::debug!("an idle connection made room for another"),
            }
            counted.house().disconnected();
        });
    }
    drop(listener);
    let deadline = Instant::now() + limits.drain_timeout;
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    deadline
}

/// The router, for one connection: says when it is being answered, and sees to it that it ends.
#[derive(Clone)]
struct Occupied {
    router: Router,
    place: Arc<Place>,
    pace: Pace,
    from: SocketAddr,
}

impl Service<http::Request<Incoming>> for Occupied {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<http::Request<Incoming>>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let busy = self.place.work();
        let pace = self.pace;
        let mut request = request.map(|body| PacedBody::new(body, pace));
        request.extensions_mut().insert(ConnectInfo(self.from));
        let answered = self.router.call(request);
        Box::pin(async move { answered.await.map(|response| busy.until_sent(response)) })
    }
}

fn prepared(stream: TcpStream) -> Option<TcpStream> {
    // Without this, Nagle and delayed acknowledgements stall small replies by 40 ms.
    stream.set_nodelay(true).ok()?;
    Some(stream)
}
