//! Time, memory and parts of a training step: `train CASE SECONDS`.
//!
//! Pixels are noise and stand ready: what making views costs is measured by `benches/data.sh`. Prints one JSON object.
//! `benches/train.sh` runs it beside PyTorch.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use candle_core::Device;
use lejepa_data::{Batch, ViewBatch, ViewSize};
use lejepa_kernels::profile;
use lejepa_loss::LejepaLoss;
use lejepa_train::{AdamW, Model, Objective, Override, Purpose, TrainConfig};

/// That of the command line.
// A benchmark gives nothing back.
#[allow(dead_code)]
#[path = "../../lejepa-cli/src/allocator.rs"]
mod allocator;

const WARM_UP: u64 = 2;
/// Steps over which the parts are timed.
const TIMED_STEPS: u64 = 5;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

struct Case {
    name: &'static str,
    recipe: &'static [&'static str],
    samples: usize,
    /// How many views and their side.
    global: (usize, usize),
    local: (usize, usize),
}

const CASES: [Case; 4] = [
    Case {
        name: "vit-tiny",
        recipe: &["encoder.arch=vit_tiny_patch16_224", "encoder.drop_path=0"],
        samples: 16,
        global: (2, 224),
        local: (6, 96),
    },
    Case {
        name: "vit-small-images",
        recipe: &[
            "encoder.arch=vit",
            "encoder.image_size=32",
            "encoder.patch_size=4",
            "encoder.dim=192",
            "encoder.depth=6",
            "encoder.heads=3",
            "encoder.drop_path=0",
        ],
        samples: 32,
        global: (8, 32),
        local: (0, 32),
    },
    Case {
        name: "resnet18",
        recipe: &["encoder.arch=resnet18", "encoder.image_size=64"],
        samples: 16,
        global: (4, 64),
        local: (0, 64),
    },
    Case {
        name: "convnextv2-atto",
        recipe: &["encoder.arch=convnextv2_atto", "encoder.image_size=64"],
        samples: 16,
        global: (4, 64),
        local: (0, 64),
    },
];

fn main() -> Result<()> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let [case, seconds] = &typed[..] else {
        // `cargo bench` without a case, and `cargo test --benches`, have nothing to measure.
        return Ok(());
    };
    let case = CASES.iter().find(|known| known.name == case).ok_or("no such case")?;
    let seconds: f64 = seconds.parse()?;
    let overrides: Vec<Override> =
        case.recipe.iter().map(|typed| Override::parse(typed)).collect::<lejepa_train::Result<_>>()?;
    let config = TrainConfig::load(None, &overrides)?;
    allocator::keep_memory();
    let before = memory("VmRSS")?;
    let mut run = Run {
        model: Model::new(&config, &Device::Cpu)?,
        loss: config.loss.build()?,
        optimizer: AdamW::new(&config.optimizer),
        batch: Batch {
            step: 0,
            global: case.views(case.global),
            local: case.views(case.local),
            broken: Vec::new(),
        },
    };

    let (mut best, mut loss) = (f64::INFINITY, 0.);
    // The first steps of a process pay for memory and threads.
    for _ in 0..WARM_UP {
        run.step()?;
    }
    let (start, processor) = (Instant::now(), processor_seconds()?);
    while run.batch.step < 2 * WARM_UP || start.elapsed().as_secs_f64() < seconds {
        let clock = Instant::now();
        loss = run.step()?;
        best = best.min(clock.elapsed().as_secs_f64());
    }
    let megabytes = (memory("VmHWM")? - before) / 1e3;
    let processor = (processor_seconds()? - processor) / (run.batch.step - WARM_UP) as f64;

    profile::start("loss");
    for _ in 0..TIMED_STEPS {
        run.step()?;
    }
    let times = profile::stop();
    let total: f64 = times.values().map(|time| time.as_secs_f64()).sum();
    let parts: Vec<String> =
        times.iter().map(|(part, time)| format!("\"{part}\": {:.4}", time.as_secs_f64() / total)).collect();
    println!(
        "{{\"milliseconds\": {:.3}, \"processor\": {:.3}, \"megabytes\": {megabytes:.1}, \"loss\": {loss:.6}, \
         \"parts\": {{{}}}}}",
        best * 1e3,
        processor * 1e3,
        parts.join(", ")
    );
    Ok(())
}

impl Case {
    fn views(&self, (views, side): (usize, usize)) -> ViewBatch {
        let count = views * self.samples * 3 * side * side;
        // Multiplicative hashing; images differ, and so do their pixels.
        let noise =
            |index: usize| ((index as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.;
        let size = ViewSize { height: side, width: side };
        ViewBatch { views, samples: self.samples, channels: 3, size, pixels: (0..count).map(noise).collect() }
    }
}

struct Run {
    model: Model,
    loss: LejepaLoss,
    optimizer: AdamW,
    batch: Batch,
}

impl Run {
    /// One step as the training loop takes it; the loss.
    fn step(&mut self) -> Result<f64> {
        let Self { model, loss, optimizer, batch } = self;
        let objective = Objective {
            model,
            average: None,
            loss,
            seed: 0,
            masking: 0.,
            micro_batch: None,
            purpose: Purpose::Step,
        };
        let (terms, gradients) = objective.gradients(batch)?;
        let loss = terms.loss.to_scalar::<f32>()?;
        // The graph hangs on it; the training loop, too, keeps numbers alone.
        drop(terms);
        profile::timed("optimiser", || -> Result<()> {
            if !gradients.norm()?.is_finite() {
                return Err("the gradients are not finite".into());
            }
            Ok(optimizer.step(model.trainable(), &gradients, 5e-4)?)
        })?;
        batch.step += 1;
        Ok(loss.into())
    }
}

/// What all threads together have computed for, which other programs on the machine do not change much.
fn processor_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may hold anything: user and system time in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = fields.map(|ticks| Ok(ticks.parse::<f64>()?)).sum::<Result<f64>>()?;
    Ok(ticks / 100.)
}

/// A line of `/proc/self/status`, in kB.
fn memory(name: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
