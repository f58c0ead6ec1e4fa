//! What can be set on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser};
use lejepa_embed::{DecodeLimits, Encoder, EncoderBuilder, FileLimits, Image};

/// Answers images that are posted to /embed with their embeddings.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Settings {
    /// Encoder, as `lejepa export` writes it
    pub(crate) encoder: PathBuf,
    /// Open the encoder without limits of its nodes, loops, input, time and memory
    #[arg(long)]
    trusted: bool,
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) address: SocketAddr,
    /// Another address for /healthz and /metrics, which are then nowhere else
    #[arg(long)]
    pub(crate) admin_address: Option<SocketAddr>,
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
    #[arg(long, value_parser = count())]
    sessions: Option<usize>,
    /// Threads of one inference [default: all cores, shared by the sessions]
    #[arg(long)]
    threads: Option<usize>,
    /// Most images of one inference
    #[arg(long, default_value = "4", value_parser = count())]
    batch: usize,
    /// Milliseconds that an image waits for others to share an inference with; those that wait for a
    /// free session share one anyway
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// Scale embeddings to length one
    #[arg(long)]
    normalise: bool,
}

/// What one request, one client, and all of them together, may take.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Limits {
    /// Bytes of a request's body
    #[arg(long, default_value_t = 16 << 20)]
    pub(crate) body: usize,
    /// Bytes of all bodies in memory
    #[arg(long, default_value_t = 256 << 20)]
    pub(crate) bodies: usize,
    /// Images of a request
    #[arg(long, default_value = "32", value_parser = count())]
    pub(crate) images: usize,
    /// Pixels of an image
    #[arg(long, default_value_t = 50_000_000)]
    pub(crate) pixels: usize,
    /// Scans of a JPEG file, each a pass over all of its pixels; progressive files have about ten
    #[arg(long, default_value_t = Image::SCAN_LIMIT, value_parser = scans())]
    pub(crate) scans: usize,
    /// Pixels of all images of a request
    #[arg(long, default_value_t = 200_000_000)]
    pub(crate) request_pixels: usize,
    /// Pixels of all images that are decoded at the same time, at up to 12 bytes each
    #[arg(long, default_value_t = 100_000_000)]
    pub(crate) decoded_pixels: usize,
    /// Requests in work, which begins when all of their body is there; more are answered with 503
    #[arg(long, default_value = "128", value_parser = count())]
    pub(crate) in_work: usize,
    /// Connections at the same time; then the one that has waited longest is closed for a new one
    #[arg(long, default_value = "1024", value_parser = count())]
    pub(crate) connections: usize,
    /// How much of connections, bodies, decoding, inferences and requests in work one client address may
    /// have, from 0 to 1; 1 behind a proxy, which is one address for all
    #[arg(long, default_value = "0.5", value_parser = share)]
    pub(crate) peer_share: f64,
    /// Seconds from the head of a request to its answer
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Seconds for the head of a request, and for the next one on an open connection
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) head_timeout: Duration,
    /// Seconds that a client has to read an answer
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) write_timeout: Duration,
    /// Seconds that requests in work have left when the service is told to stop
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) stop_timeout: Duration,
}

impl Limits {
    /// Refuses limits that no request could keep.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let share = self.share_of(self.bodies);
        ensure!(
            self.body <= share,
            "--body must fit into a client's share of --bodies, {share}: {}",
            self.body
        );
        let all = self.decoded_pixels;
        ensure!(self.pixels <= all, "--pixels must be within --decoded-pixels, {all}: {}", self.pixels);
        Ok(())
    }

    /// Those of one image.
    pub(crate) fn of_image(&self) -> DecodeLimits {
        DecodeLimits { pixels: self.pixels, scans: self.scans }
    }

    /// What one client may have of something.
    pub(crate) fn share_of(&self, amount: usize) -> usize {
        ((amount as f64 * self.peer_share).ceil() as usize).max(1)
    }
}

impl Batching {
    /// Images that are computed at the same time when every session has a full batch.
    pub(crate) fn images(&self) -> usize {
        self.sessions() * self.batch
    }

    fn sessions(&self) -> usize {
        self.sessions.unwrap_or(cores().min(4))
    }

    fn opener(&self) -> EncoderBuilder {
        let mut builder = Encoder::builder()
            .sessions(self.sessions())
            .batch(self.batch)
            .latency(Duration::from_millis(self.latency));
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if self.normalise {
            builder = builder.normalised();
        }
        builder
    }
}

impl Settings {
    /// Nothing else runs while the encoder is opened, so that the memory for it can be limited.
    pub(crate) fn open(&self) -> lejepa_embed::Result<Encoder> {
        let opener = self.batching.opener().limits(FileLimits::strict());
        let opener = if self.trusted { opener.trusted() } else { opener };
        opener.open(&self.encoder)
    }
}

/// Cores that the service may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=65536)
}

/// No more than the decoder itself takes.
fn scans() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=Image::SCAN_LIMIT as u64)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let day = 86400.;
    match text.parse() {
        Ok(seconds) if (0. ..=day).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("expected seconds, at most {day}")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0. && share <= 1. => Ok(share),
        _ => Err("expected a number above 0 and at most 1".into()),
    }
}
