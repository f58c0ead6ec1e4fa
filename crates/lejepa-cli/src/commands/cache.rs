//! `lejepa cache`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use lejepa_eval::features::{CacheEntry, FeatureCache};
use serde_json::json;

use crate::output::say;
use crate::table::{Column, rows, table};
use crate::{cache_folder, output};

/// Show the features that evaluations keep, and remove those that are not needed any more
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, Args)]
struct Listing {
    /// The cache's folder [default: lejepa/features in the user's cache]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Prune(Prune),
}

/// Remove entries; those that somebody is using stay
#[derive(Debug, Args)]
struct Prune {
    /// Those that were not used for this long, such as 30d, 12h or 45m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    older_than: Option<Duration>,

    /// Those that were used longest ago, until no more than this is left, such as 10GB or 500MB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    larger_than: Option<u64>,

    /// All of them
    #[arg(long, conflicts_with_all = ["older_than", "larger_than"])]
    all: bool,

    #[command(flatten)]
    listing: Listing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        None => list(&arguments.listing),
        Some(Command::Prune(prune)) => remove(prune),
    }
}

fn list(listing: &Listing) -> Result<ExitCode> {
    let cache = listing.cache();
    let entries = cache.entries()?;
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if listing.json {
        output::line(json!({ "cache": cache.path(), "bytes": total, "entries": entries }));
        return Ok(ExitCode::SUCCESS);
    }
    if !entries.is_empty() {
        output::line(table(&rows(&COLUMNS, &entries)));
    }
    say!("{} entries, {} in {}", entries.len(), size(total), cache.path().display());
    Ok(ExitCode::SUCCESS)
}

const COLUMNS: [Column<CacheEntry>; 6] = [
    ("encoder", |entry| entry.encoder.clone().unwrap_or_else(|| "of an earlier version".into())),
    ("output", |entry| entry.key.as_ref().map_or("-".into(), |key| key.computation.output.clone())),
    ("first image", |entry| entry.first.clone().unwrap_or_else(|| "-".into())),
    ("images", |entry| entry.key.as_ref().map_or("-".into(), |key| key.images.to_string())),
    ("size", |entry| size(entry.bytes)),
    ("unused for", |entry| age(entry.seconds_unused)),
];

fn remove(prune: &Prune) -> Result<ExitCode> {
    if !prune.all && prune.older_than.is_none() && prune.larger_than.is_none() {
        bail!("what to remove: use --older-than TIME, --larger-than SIZE or --all");
    }
    let cache = prune.listing.cache();
    let entries = cache.entries()?;
    let (mut kept, mut freed, mut removed, mut in_use) = (0, 0, Vec::new(), 0);
    for entry in &entries {
        let old = prune.older_than.is_some_and(|limit| entry.seconds_unused >= limit.as_secs());
        let too_much = prune.larger_than.is_some_and(|limit| kept + entry.bytes > limit);
        if (prune.all || old || too_much) && cache.remove(entry)? {
            freed += entry.bytes;
            removed.push(&entry.path);
            continue;
        }
        in_use += usize::from(prune.all || old || too_much);
        kept += entry.bytes;
    }
    if prune.listing.json {
        output::line(json!({
            "cache": cache.path(), "removed": removed, "freed_bytes": freed, "kept_bytes": kept, "in_use": in_use,
        }));
    } else {
        let busy = if in_use > 0 { format!(", {in_use} are in use") } else { String::new() };
        output::line(format_args!(
            "removed {} of {} entries, {}; {} are left{busy}",
            removed.len(),
            entries.len(),
            size(freed),
            size(kept),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl Listing {
    fn cache(&self) -> FeatureCache {
        FeatureCache::new(self.cache.clone().unwrap_or_else(cache_folder::features))
    }
}

/// `1.4 GB`.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} kB", bytes / 1e3),
    }
}

/// `3 d`, `5 h` or `12 min`.
fn age(seconds: u64) -> String {
    match seconds {
        0..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn duration(typed: &str) -> Result<Duration, String> {
    let units = [("d", 86_400.), ("h", 3600.), ("m", 60.)];
    let seconds = with_unit(typed, &units).ok_or("expected a time, such as 30d, 12h or 45m")?;
    Ok(Duration::from_secs(seconds as u64))
}

fn bytes(typed: &str) -> Result<u64, String> {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    Ok(with_unit(typed, &units).ok_or("expected a size, such as 10GB or 500MB")? as u64)
}

fn with_unit(typed: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = units.iter().find_map(|(unit, scale)| Some((typed.strip_suffix(unit)?, scale)))?;
    let number: f64 = number.trim().parse().ok()?;
    (number >= 0. && number.is_finite()).then_some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_typed_with_their_units() {
        assert_eq!(duration("30d").unwrap().as_secs(), 30 * 86_400);
        assert_eq!(duration("1.5h").unwrap().as_secs(), 5400);
        assert_eq!(bytes("10GB"), Ok(10_000_000_000));
        for wrong in ["30", "d", "-3d", "nand", "infd"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(bytes("10").is_err());
    }
}
