//! How the time of a training step falls to the parts of a model, forward and backward.
//!
//! Candle runs the backward pass by itself, so a part cannot be timed from outside. While the stopwatch of a thread
//! runs, [`part`] puts a mark behind and before the part's operations: passing it in the backward pass moves the hand
//! as entering and leaving the part does in the forward pass. A mark copies its tensor, which the stopwatch keeps
//! apart; while it stands, there are no marks, and all that a part costs is a look at one flag.
//!
//! For benchmarks (`benches/train.sh`): no part of what this crate promises.
//!
//! Fused blocks are one part, which many threads work on. Their tasks take laps, and the time of the blocks is
//! divided among the stages as the laps of all threads are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candle_core::{Shape, Tensor};

use crate::operation::{Backward, Operation, View, apply};

thread_local! {
    static RUNNING: RefCell<Option<Stopwatch>> = const { RefCell::new(None) };
}

/// The part that is divided.
pub const BLOCKS: &str = "blocks";

/// Whether a stopwatch runs, on any thread.
static RUNS: AtomicBool = AtomicBool::new(false);
/// What all threads together took for the stages.
static STAGES: Mutex<BTreeMap<&'static str, Duration>> = Mutex::new(BTreeMap::new());

/// Under this name is what the stopwatch itself costs.
const MARKS: &str = "marks";

#[derive(Debug)]
struct Stopwatch {
    times: BTreeMap<&'static str, Duration>,
    current: &'static str,
    since: Instant,
}

/// Starts the stopwatch of this thread; time falls to the part `name` until another is entered.
pub fn start(name: &'static str) {
    let stopwatch = Stopwatch { times: BTreeMap::new(), current: name, since: Instant::now() };
    RUNNING.with_borrow_mut(|running| *running = Some(stopwatch));
    stages().clear();
    RUNS.store(true, Ordering::Relaxed);
}

fn stages() -> std::sync::MutexGuard<'static, BTreeMap<&'static str, Duration>> {
    STAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops it: the time of every part, the marks' own left out.
pub fn stop() -> BTreeMap<&'static str, Duration> {
    enter(MARKS);
    let mut times = RUNNING.with_borrow_mut(Option::take).map_or_else(BTreeMap::new, |running| running.times);
    times.remove(MARKS);
    RUNS.store(false, Ordering::Relaxed);
    divide(&mut times, &std::mem::take(&mut *stages()));
    times
}

/// The time of blocks, divided among their stages.
fn divide(times: &mut BTreeMap<&'static str, Duration>, stages: &BTreeMap<&'static str, Duration>) {
    let all: f64 = stages.values().map(Duration::as_secs_f64).sum();
    if all == 0. {
        return;
    }
    if let Some(blocks) = times.remove(BLOCKS) {
        for (stage, time) in stages {
            *times.entry(stage).or_default() += blocks.mul_f64(time.as_secs_f64() / all);
        }
    }
}

/// The stages of a task, one after the other.
pub(crate) struct Laps {
    /// Nothing while no stopwatch runs.
    since: Option<Instant>,
    taken: Vec<(&'static str, Duration)>,
}

impl Laps {
    /// The first stage begins.
    pub(crate) fn start() -> Self {
        let since = RUNS.load(Ordering::Relaxed).then(Instant::now);
        Self { since, taken: Vec::new() }
    }

    /// A stage has ended, and the next begins.
    pub(crate) fn end(&mut self, stage: &'static str) {
        if let Some(since) = &mut self.since {
            let now = Instant::now();
            self.taken.push((stage, now - std::mem::replace(since, now)));
        }
    }
}

impl Drop for Laps {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            let mut stages = stages();
            self.taken.iter().for_each(|(stage, time)| *stages.entry(stage).or_default() += *time);
        }
    }
}

/// Work without a gradient of its own.
pub fn timed<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let before = enter(name);
    let result = work();
    before.map(enter);
    result
}

/// A part of a model, from its input to its output.
pub fn part<E: From<candle_core::Error>>(
    name: &'static str,
    xs: &Tensor,
    work: impl FnOnce(&Tensor) -> Result<Tensor, E>,
) -> Result<Tensor, E> {
    let Some(before) = enter(name) else { return work(xs) };
    // Without a gradient there is nothing to time on the way back.
    let mark = |xs: &Tensor, name| {
        if xs.track_op() { apply(Mark(name), [xs]) } else { Ok(xs.clone()) }
    };
    let result = mark(&work(&mark(xs, before)?)?, name)?;
    enter(before);
    Ok(result)
}

/// Moves the hand; the part that was being timed, if the stopwatch runs.
fn enter(name: &'static str) -> Option<&'static str> {
    if !RUNS.load(Ordering::Relaxed) {
        return None;
    }
    RUNNING.with_borrow_mut(|running| {
        let Stopwatch { times, current, since } = running.as_mut()?;
        let now = Instant::now();
        *times.entry(current).or_default() += now - std::mem::replace(since, now);
        Some(std::mem::replace(current, name))
    })
}

/// The identity; its backward pass enters a part.
struct Mark(&'static str);

impl Operation<1> for Mark {
    fn name(&self) -> &'static str {
        "mark"
    }

    fn cpu(&self, [xs]: [View<'_>; 1]) -> candle_core::Result<(Vec<f32>, Shape)> {
        Ok((timed(MARKS, || xs.to_vec()), xs.shape.clone()))
    }

    fn backward(&self, Backward { gradient, .. }: Backward<1>) -> candle_core::Result<[Option<Tensor>; 1]> {
        enter(self.0);
        Ok([Some(gradient)])
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    const NAP: Duration = Duration::from_millis(20);

    /// Sleeps on the way back.
    struct Slow;

    impl Operation<1> for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn cpu(&self, [xs]: [View<'_>; 1]) -> candle_core::Result<(Vec<f32>, Shape)> {
            Ok((xs.to_vec(), xs.shape.clone()))
        }

        fn backward(
            &self,
            Backward { gradient, .. }: Backward<1>,
        ) -> candle_core::Result<[Option<Tensor>; 1]> {
            std::thread::sleep(NAP);
            Ok([Some(gradient)])
        }
    }

    #[test]
    fn time_of_the_backward_pass_falls_to_the_part_that_needs_it() {
        let xs = Var::new(&[1f32, 2.], &Device::Cpu).unwrap();
        let run = || {
            let slow = part("slow", &xs, |xs| apply(Slow, [xs])).unwrap();
            let fast = part("fast", &slow, |xs: &Tensor| xs.sqr()).unwrap();
            let gradients = fast.sum_all().unwrap().backward().unwrap();
            gradients.get(&xs).unwrap().to_vec1::<f32>().unwrap()
        };
        start("rest");
        let gradient = run();
        let times = stop();
        assert_eq!(gradient, [2., 4.]);
        assert!(["fast", "rest", "slow"].iter().all(|name| times.contains_key(name)), "{times:?}");
        assert!(times["slow"] >= NAP && times["fast"] < NAP && times["rest"] < NAP, "{times:?}");
        assert_eq!(run(), gradient, "a stopwatch that stands changes nothing");
        assert!(stop().is_empty());

        // Other threads take laps, which belong to the one stopwatch that runs.
        start("rest");
        let laps = || {
            let mut laps = Laps::start();
            laps.end("a stage");
        };
        std::thread::scope(|scope| {
            [scope.spawn(laps), scope.spawn(laps)].map(|thread| thread.join().unwrap())
        });
        assert!(stages().contains_key("a stage"));
        timed(BLOCKS, || std::thread::sleep(NAP));
        let times = stop();
        assert!(times.contains_key("a stage") && !times.contains_key(BLOCKS), "{times:?}");
        Laps::start().end("late");
        assert!(!stages().contains_key("late"));
    }

    #[test]
    fn blocks_are_divided_as_the_laps_of_their_stages_are() {
        let seconds = Duration::from_secs;
        let before = BTreeMap::from([(BLOCKS, seconds(8)), ("norms", seconds(1))]);
        let mut times = before.clone();
        divide(&mut times, &BTreeMap::from([("norms", seconds(4)), ("MLP", seconds(12))]));
        assert_eq!(times, BTreeMap::from([("MLP", seconds(6)), ("norms", seconds(3))]));
        times.clone_from(&before);
        divide(&mut times, &BTreeMap::new());
        assert_eq!(times, before);
    }
}
