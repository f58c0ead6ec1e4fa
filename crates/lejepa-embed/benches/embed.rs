//! How many JPEG files per second become vectors: read, decode, resize, infer.
//!
//! ```text
//! cargo bench --workspace --bench embed -- PHOTOS SECONDS ENCODER...
//! ```
//!
//! Prints one JSON object with a rate for every encoder. `benches/embed.sh` runs it beside Pillow with timm and
//! with Python's ONNX Runtime on the same files.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lejepa_embed::Encoder;

/// Images of one call: enough for several batches.
const CALL: usize = 64;

fn main() {
    // cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [photos, seconds, encoders @ ..] = &*arguments else {
        return println!("usage: -- PHOTOS SECONDS ENCODER...");
    };
    let seconds = Duration::from_secs_f64(seconds.parse().unwrap());
    let mut photos: Vec<PathBuf> =
        std::fs::read_dir(photos).unwrap().map(|entry| entry.unwrap().path()).collect();
    photos.sort();
    let paths: Vec<&PathBuf> = photos.iter().cycle().take(CALL).collect();
    let mut rates = serde_json::Map::new();
    for path in encoders {
        let encoder = Encoder::builder().throughput().open(path).unwrap();
        encoder.embed_paths(&paths).unwrap();
        let (clock, mut images) = (Instant::now(), 0);
        while clock.elapsed() < seconds {
            images += encoder.embed_paths(&paths).unwrap().nrows();
        }
        rates.insert(path.clone(), (images as f64 / clock.elapsed().as_secs_f64()).into());
    }
    println!("{}", serde_json::Value::Object(rates));
}
