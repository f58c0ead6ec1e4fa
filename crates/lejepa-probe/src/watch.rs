//! Someone who is told how far a probe is, and may end it.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::{Error, Result};

/// Is told the share of the work that is done, between 0 and 1 and never less than before, several times a
/// second; a probe that it stops gives [`Error::Stopped`].
pub struct Watch<'a> {
    observe: &'a mut dyn FnMut(f64) -> ControlFlow<()>,
    from: f64,
    to: f64,
    /// What was told last, by any part.
    told: Rc<Cell<f64>>,
}

/// How often a call that cannot be interrupted lets the caller be asked.
const PATIENCE: Duration = Duration::from_millis(100);

impl<'a> Watch<'a> {
    /// A caller who listens.
    pub fn new(observe: &'a mut dyn FnMut(f64) -> ControlFlow<()>) -> Self {
        Self { observe, from: 0., to: 1., told: Rc::default() }
    }

    /// This share of the work is done.
    pub(crate) fn at(&mut self, share: f64) -> Result<()> {
        let share = self.from + share.clamp(0., 1.) * (self.to - self.from);
        self.told.set(share.max(self.told.get()));
        match (self.observe)(self.told.get()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }

    /// The same caller, for what lies between two shares of the work.
    pub(crate) fn part(&mut self, from: f64, to: f64) -> Watch<'_> {
        let at = |share: f64| self.from + share * (self.to - self.from);
        let (from, to) = (at(from), at(to));
        Watch { observe: &mut *self.observe, from, to, told: self.told.clone() }
    }

    /// The `index`th of `count` parts of the same length.
    pub(crate) fn step(&mut self, index: usize, count: usize) -> Watch<'_> {
        let share = |index: usize| index as f64 / count.max(1) as f64;
        self.part(share(index), share(index + 1))
    }

    /// A long call of a library that cannot be interrupted. If the caller wants the work to end it is left to
    /// itself, and its result is forgotten.
    pub(crate) fn wait<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (sender, receiver) = channel();
        let worker = std::thread::spawn(move || sender.send(work()));
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => self.at(0.)?,
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(_) => return Err(Error::Stopped),
                },
            }
        }
    }
}

/// Work that nobody watches.
pub fn unwatched<T>(work: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    work(&mut Watch::new(&mut |_| ControlFlow::Continue(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_parts_tell_the_share_of_the_whole() {
        let mut told = Vec::new();
        let mut observe = |share: f64| {
            told.push(share);
            if told.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let mut watch = Watch::new(&mut observe);
        watch.step(1, 2).at(0.5).unwrap();
        assert_eq!(watch.part(0.5, 1.).wait(|| 7).unwrap(), 7);
        watch.part(0.5, 1.).step(1, 2).at(0.).unwrap();
        assert!(matches!(watch.at(1.), Err(Error::Stopped)));
        assert_eq!(told, [0.75, 0.75, 1.]);
    }

    #[test]
    fn what_is_told_never_goes_back() {
        let mut told = Vec::new();
        let mut observe = |share: f64| {
            told.push(share);
            ControlFlow::Continue(())
        };
        let mut watch = Watch::new(&mut observe);
        for share in [0., 1., 0.5] {
            watch.step(0, 2).at(share).unwrap();
        }
        watch.at(0.).unwrap();
        watch.at(1.).unwrap();
        assert_eq!(told, [0., 0.5, 0.5, 0.5, 1.]);
    }

    #[test]
    fn a_call_that_takes_long_is_left_to_itself() {
        let mut observe = |_| ControlFlow::Break(());
        let mut watch = Watch::new(&mut observe);
        let clock = std::time::Instant::now();
        assert!(matches!(watch.wait(|| std::thread::sleep(Duration::from_secs(20))), Err(Error::Stopped)));
        assert!(clock.elapsed() < Duration::from_secs(10));
    }
}
