//! Answers images that are posted to it with their embeddings: `embedding-service encoder.onnx`.

mod bodies;
mod body;
mod connections;
mod decoders;
mod failure;
mod file_limit;
mod health;
mod metrics;
mod peer;
mod pool;
mod server;
mod service;
mod settings;
mod timed_stream;
mod upload;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Parser;
use lejepa_embed::{Encoder, Error, printable_name};
use tokio::net::TcpListener;

use crate::connections::Connections;
use crate::server::Server;
use crate::service::{Service, finished};
use crate::settings::Settings;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // It may quote the encoder's file, which need not be a friend's.
            eprintln!("error: {}", printable_name(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let settings = Settings::parse();
    settings.limits.check()?;
    file_limit::raise();
    let (asked, most) =
        (settings.limits.connections, file_limit::most_connections(settings.limits.connections));
    if most < asked {
        eprintln!(
            "only {most} connections at a time instead of {asked}: raise the limit of open files (ulimit -n)"
        );
    }
    let encoder = settings.open()?;
    check(&encoder)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the threads of the service")?;
    let result = runtime.block_on(run(&settings, encoder));
    // What is still computed after the time for it is not waited for.
    runtime.shutdown_background();
    result
}

/// The encoder computes here what it computed where it was exported, if its file can tell.
fn check(encoder: &Encoder) -> anyhow::Result<()> {
    match encoder.self_test() {
        Err(Error::NoSelfTest { .. }) => Ok(()),
        result => {
            let result = result?;
            ensure!(result.passed(), "the encoder fails its self-test here, drift: {}", result.drift);
            Ok(())
        }
    }
}

async fn run(settings: &Settings, encoder: Encoder) -> anyhow::Result<()> {
    let stop = server::stop_signal().context("cannot listen to signals")?;
    let listener = listen(settings.address).await?;
    let watching = match settings.admin_address {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    eprintln!("embeddings of {} values at http://{}/embed", encoder.dim(), listener.local_addr()?);
    let service = Service::new(encoder, settings);
    let limits = settings.limits;
    let router = match &watching {
        None => service.router(service.watching()),
        Some(watching) => {
            eprintln!("health and metrics at http://{}", watching.local_addr()?);
            service.router(axum::Router::new())
        }
    };
    let server = Server { listener, router, limits, connections: service.connections.clone() };
    let served = match watching {
        None => server.serve(stop).await,
        Some(listener) => {
            let connections = Arc::new(Connections::new(WATCHERS, WATCHERS));
            let router = finished(service.watching());
            let watching = Server { listener, router, limits, connections };
            tokio::select! {
                served = server.serve(stop) => served,
                // As long as the other one.
                served = watching.serve(std::future::pending()) => served,
            }
        }
    };
    match served {
        Ok(()) => eprintln!("stopped"),
        Err(_) => eprintln!("stopped before all requests were answered"),
    }
    Ok(())
}

/// Connections for health and metrics.
const WATCHERS: usize = 16;

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on: {address}"))
}
