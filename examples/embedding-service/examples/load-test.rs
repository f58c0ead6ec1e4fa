//! Starts the service, posts an image to it from many clients at once, and tells times and memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{interval, sleep};

/// Posts an image to the service from many clients at once; fails if any of them gets no embedding.
#[derive(Debug, Parser)]
struct Arguments {
    /// Encoder of the service
    encoder: PathBuf,
    /// Image that is posted
    image: PathBuf,
    /// Clients that post at the same time, each one request after the other
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Seconds of load
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Flags of the service, after `--`
    #[arg(last = true)]
    flags: Vec<OsString>,
}

/// What one client, or all of them, have seen.
#[derive(Debug, Default)]
struct Seen {
    times: Vec<Duration>,
    /// Requests without an embedding, by status or by what went wrong.
    errors: BTreeMap<String, usize>,
}

/// The share of the load after which memory should no longer grow.
const WARM_UP: f64 = 0.25;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let image = Bytes::from(std::fs::read(&arguments.image).context("cannot read the image")?);
    let (mut service, address) = start(&arguments).await?;
    let process = service.id().context("the service has ended")?;
    let mut memory = vec![resident(process)?];
    let start = Instant::now();
    let end = start + Duration::from_secs(arguments.seconds);
    let clients: Vec<_> =
        (0..arguments.clients).map(|_| tokio::spawn(client(address, image.clone(), end))).collect();
    let mut ticks = interval(Duration::from_secs(1));
    ticks.tick().await;
    while Instant::now() < end {
        ticks.tick().await;
        memory.push(resident(process)?);
    }
    let mut all = Seen::default();
    for client in clients {
        let seen = client.await?;
        all.times.extend(seen.times);
        seen.errors.into_iter().for_each(|(kind, count)| *all.errors.entry(kind).or_default() += count);
    }
    report(&mut all, start.elapsed(), &memory)?;
    stop(&mut service, process).await?;
    ensure!(all.errors.is_empty(), "there were errors");
    Ok(())
}

/// The service, listening.
async fn start(arguments: &Arguments) -> anyhow::Result<(Child, SocketAddr)> {
    // Beside the folder that this example is built into.
    let program = std::env::current_exe()?;
    let program = program.parent().and_then(|folder| folder.parent()).context("no folder")?;
    let mut service = Command::new(program.join("embedding-service"))
        .arg(&arguments.encoder)
        .args(["--address", "127.0.0.1:0"])
        .args(&arguments.flags)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the service, build it first")?;
    let mut lines = BufReader::new(service.stderr.take().context("no standard error")?).lines();
    while let Some(line) = lines.next_line().await? {
        eprintln!("service: {line}");
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            tokio::spawn(async move {
                while let Ok(Some(line)) = lines.next_line().await {
                    eprintln!("service: {line}");
                }
            });
            return Ok((service, address));
        }
    }
    bail!("the service did not start")
}

async fn client(address: SocketAddr, image: Bytes, end: Instant) -> Seen {
    let mut seen = Seen::default();
    while Instant::now() < end {
        if let Err(error) = connection(address, &image, end, &mut seen).await {
            *seen.errors.entry(format!("{error:#}")).or_default() += 1;
            sleep(Duration::from_millis(100)).await;
        }
    }
    seen
}

/// One request after the other, over one connection.
async fn connection(address: SocketAddr, image: &Bytes, end: Instant, seen: &mut Seen) -> anyhow::Result<()> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    while Instant::now() < end {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/embed")
            .header("host", address.to_string())
            .header("content-type", "image/jpeg")
            .body(Full::new(image.clone()))?;
        let start = Instant::now();
        let response = sender.send_request(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        ensure!(status.is_success(), "status {status}");
        seen.times.push(start.elapsed());
    }
    Ok(())
}

/// Memory of a process in MB, as the system counts it.
fn resident(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024. / 1e6)
}

#[allow(clippy::print_stdout)]
fn report(seen: &mut Seen, time: Duration, memory: &[f64]) -> anyhow::Result<()> {
    seen.times.sort_unstable();
    let requests = seen.times.len();
    ensure!(requests > 0, "no request was answered: {:?}", seen.errors);
    let percentile = |share: f64| seen.times[((requests - 1) as f64 * share).round() as usize].as_secs_f64();
    let milliseconds = |share: f64| format!("{:.0} ms", 1e3 * percentile(share));
    let later = &memory[(memory.len() as f64 * WARM_UP) as usize..];
    println!("requests    {requests}, errors: {}", seen.errors.values().sum::<usize>());
    seen.errors.iter().for_each(|(kind, count)| println!("  {count} x {kind}"));
    println!("throughput  {:.1} requests/s", requests as f64 / time.as_secs_f64());
    println!("latency     p50 {}, p99 {}, most {}", milliseconds(0.5), milliseconds(0.99), milliseconds(1.));
    println!(
        "memory      start {:.0} MB, after a quarter {:.0} MB, end {:.0} MB, most {:.0} MB",
        memory[0],
        later[0],
        memory[memory.len() - 1],
        memory.iter().copied().fold(0., f64::max),
    );
    Ok(())
}

/// Ends the service as an operating system does.
async fn stop(service: &mut Child, process: u32) -> anyhow::Result<()> {
    Command::new("kill").args(["-TERM", &process.to_string()]).status().await?;
    let status = service.wait().await?;
    ensure!(status.success(), "the service ended with: {status}");
    Ok(())
}
