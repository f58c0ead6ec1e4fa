//! What can be set on the command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser};
use lejepa_embed::Encoder;

/// Answers images that are posted to /embed with their embeddings.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Settings {
    /// Encoder, as `lejepa export` writes it
    pub(crate) encoder: PathBuf,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) address: SocketAddr,
    #[command(flatten)]
    pub(crate) batching: Batching,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// How images are put together into inferences.
#[derive(Debug, Args)]
pub(crate) struct Batching {
    /// Inferences that run at the same time, each with its own weights [default: one for each core, at
    /// most 4]
    #[arg(long)]
    sessions: Option<usize>,
    /// Threads of one inference [default: all cores, shared by the sessions]
    #[arg(long)]
    threads: Option<usize>,
    /// Most images of one inference
    #[arg(long, default_value_t = 4)]
    batch: usize,
    /// Milliseconds that an image waits for others to share an inference with; those that wait for a
    /// free session share one anyway
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// Scale embeddings to length one
    #[arg(long)]
    normalise: bool,
}

/// What one request, and all of them together, may take.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Limits {
    /// Bytes of a request's body
    #[arg(long, default_value_t = 16 << 20)]
    pub(crate) body: usize,
    /// Images of a request
    #[arg(long, default_value = "32", value_parser = count())]
    pub(crate) images: usize,
    /// Pixels of an image
    #[arg(long, default_value_t = 50_000_000)]
    pub(crate) pixels: usize,
    /// Requests in work; more are answered with 503
    #[arg(long, default_value = "128", value_parser = count())]
    pub(crate) in_work: usize,
    /// Seconds from the head of a request to its answer
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Seconds for the head of a request, and for the next one on an open connection
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) head_timeout: Duration,
    /// Seconds that requests in work have left when the service is told to stop
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) stop_timeout: Duration,
}

impl Batching {
    pub(crate) fn open(&self, encoder: &Path) -> lejepa_embed::Result<Encoder> {
        let mut builder = Encoder::builder()
            .sessions(self.sessions.unwrap_or(cores().min(4)))
            .batch(self.batch)
            .latency(Duration::from_millis(self.latency));
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if self.normalise {
            builder = builder.normalised();
        }
        builder.open(encoder)
    }
}

/// Cores that the service may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=65536)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let day = 86400.;
    match text.parse() {
        Ok(seconds) if (0. ..=day).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("expected seconds, at most {day}")),
    }
}
