//! Accepting connections, and stopping without losing anything.

use crate::limits::GatewayLimits;
use crate::state::Gateway;
use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

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
    gateway: &Gateway,
    stop: impl Future<Output = ()>,
) -> Instant {
    // From the first word on, whoever asks is told to go elsewhere; a while later nobody is let in.
    let stop = async {
        stop.await;
        gateway.drain();
        tokio::time::sleep(limits.drain_grace).await;
    };
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections_max));
    tokio::pin!(stop);
    loop {
        let stream = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    gateway.metrics().house().accept_failed();
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        // Beyond the limit a connection is closed at once: waiting in line would hide the overload.
        let Ok(place) = places.clone().try_acquire_owned() else {
            gateway.metrics().house().connection_refused();
            continue;
        };
        let Some(stream) = prepared(stream) else {
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        let counted = gateway.clone();
        counted.metrics().house().connected();
        tokio::spawn(async move {
            // An error here is a client that went away or spoke no HTTP; nothing of ours was lost.
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a connection ended early");
            }
            counted.metrics().house().disconnected();
            drop(place);
        });
    }
    drop(listener);
    let deadline = Instant::now() + limits.drain_timeout;
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
    deadline
}

fn prepared(stream: TcpStream) -> Option<TcpStream> {
    // Without this, Nagle and delayed acknowledgements stall small replies by 40 ms.
    stream.set_nodelay(true).ok()?;
    Some(stream)
}
