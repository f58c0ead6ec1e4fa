//! Answers images that are posted to it with their embeddings: `embedding-service encoder.onnx`.

mod failure;
mod metrics;
mod server;
mod service;
mod settings;
mod upload;

#[cfg(test)]
mod tests;

use anyhow::{Context, ensure};
use clap::Parser;
use lejepa_embed::{Encoder, Error};
use tokio::net::TcpListener;

use crate::settings::Settings;

fn main() -> anyhow::Result<()> {
    let settings = Settings::parse();
    let encoder = settings.batching.open(&settings.encoder)?;
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
    let address = settings.address;
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on: {address}"))?;
    eprintln!("embeddings of {} values at http://{}/embed", encoder.dim(), listener.local_addr()?);
    let router = service::router(encoder, settings.limits);
    match server::serve(listener, router, settings.limits, stop).await {
        Ok(()) => eprintln!("stopped"),
        Err(_) => eprintln!("stopped before all requests were answered"),
    }
    Ok(())
}
