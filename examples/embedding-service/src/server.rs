//! Connections: accepted until the service is told to stop, then brought to an end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{error::Elapsed, timeout};

use crate::connections::Connections;
use crate::peer::Peer;
use crate::settings::Limits;
use crate::timed_stream::TimedStream;

/// How long to wait when a connection cannot be accepted, mostly because too many files are open.
const BREATH: Duration = Duration::from_millis(100);
/// Bytes of a head, and of what is read ahead of a body.
const READ_AHEAD: usize = 64 << 10;

/// Where to listen and what to answer.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) limits: Limits,
    pub(crate) connections: Arc<Connections>,
}

/// Resolves at Ctrl-C or SIGTERM; from the call on, they no longer end the process by themselves.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

impl Server {
    /// Serves until `stop`, then lets requests in work finish, for a limited time.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Elapsed> {
        let Self { listener, router, limits, connections } = self;
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(READ_AHEAD);
        let watched = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            // Without a place it is closed at once.
            let Some(connection) = connections.admit(Peer::new(address.ip())) else { continue };
            let (inner, own) = (TowerToHyperService::new(router.clone()), connection.clone());
            let service = service_fn(move |mut request: Request<Incoming>| {
                own.wait();
                request.extensions_mut().insert(own.clone());
                let (own, answer) = (own.clone(), inner.call(request));
                async move {
                    let answer = answer.await;
                    own.wait();
                    answer
                }
            });
            let stream = TokioIo::new(TimedStream::new(stream, limits.write_timeout));
            let served = watched.watch(protocol.serve_connection(stream, service));
            tokio::spawn(async move {
                tokio::select! {
                    // Its errors are those of the other end.
                    _ = served => {}
                    () = connection.gave_way() => {}
                }
            });
        }
        drop(listener);
        timeout(limits.stop_timeout, watched.shutdown()).await
    }
}
