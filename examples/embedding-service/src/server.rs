//! Connections: accepted until the service is told to stop, then brought to an end.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{error::Elapsed, timeout};

use crate::settings::Limits;

/// How long to wait when a connection cannot be accepted, mostly because too many files are open.
const BREATH: Duration = Duration::from_millis(100);

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

/// Serves until `stop`, then lets requests in work finish, for a limited time.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<(), Elapsed> {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let service = TowerToHyperService::new(router.clone());
                let connection = protocol.serve_connection(TokioIo::new(stream), service);
                // Its errors are those of the other end.
                tokio::spawn(connections.watch(connection));
            }
            Err(error) => {
                eprintln!("cannot accept a connection: {error}");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    timeout(limits.stop_timeout, connections.shutdown()).await
}
