//! Images that cannot be used: counted, named, and not more than a share of the data.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// An image that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenImage {
    /// The file, or file and place in it.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl BrokenImage {
    /// With the whole chain of causes as the reason.
    pub fn new(name: String, error: &Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = error.source();
        }
        Self { name, reason: reason.split_whitespace().collect::<Vec<_>>().join(" ") }
    }
}

/// The unusable images that a run has met so far.
#[derive(Debug)]
pub(crate) struct BrokenImages {
    images: usize,
    limit: f64,
    found: Mutex<BTreeSet<usize>>,
}

impl BrokenImages {
    /// None yet, of `images`; at most the share `limit` of them is tolerated.
    pub(crate) fn new(images: usize, limit: f64) -> Self {
        Self { images, limit, found: Mutex::default() }
    }

    /// Counts an image once. An error if there are too many now.
    pub(crate) fn add(&self, index: usize, image: &BrokenImage) -> Result<()> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(index);
        let count = found.len();
        drop(found);
        if count as f64 > self.limit * self.images as f64 { Err(self.too_many(image)) } else { Ok(()) }
    }

    /// The error that says so.
    pub(crate) fn too_many(&self, latest: &BrokenImage) -> Error {
        Error::TooManyBroken {
            count: self.found.lock().unwrap_or_else(PoisonError::into_inner).len(),
            images: self.images,
            percent: self.limit * 100.,
            latest: format!("{}: {}", latest.name, latest.reason),
        }
    }
}
