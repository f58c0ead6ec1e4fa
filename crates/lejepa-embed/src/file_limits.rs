//! What the file of a stranger may ask for.

use std::time::Duration;

use lejepa_data::{EncoderCard, InputSize};

use crate::onnx_file::Census;
use crate::{Error, Provider, Result};

/// Limits of what a file may ask for when it is opened and tried. Those of an encoder that somebody trained are
/// far below; a file that was made to do harm is an error instead of a hang.
///
/// Time and memory grow with the file: weights have to be read, and copied once or twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Nodes of the graph, those of its functions counted wherever they are used.
    pub nodes: u64,
    /// Whether graphs may hold loops, which no encoder needs: how often they go round may depend on an image.
    pub loops: Loops,
    /// Pixels of one input.
    pub pixels: usize,
    /// Values of an embedding.
    pub dimensions: usize,
    /// Bytes of a file of weights that the graph does not use: it is read as a whole, whatever is in it.
    pub unused_weights: u64,
    /// Time for opening a file, and for trying it on one image: this, and a second for every 10 MB of it.
    pub time: Duration,
    /// Bytes that opening and trying may take beyond what the process has: this, and seven times the file for
    /// every session. It is kept by the system's limit for the whole process, whose other threads should not
    /// take much meanwhile; so nothing if not given. On Linux and
    /// the processor only.
    pub memory: Option<u64>,
}

/// Whether something may go round and round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// They are refused.
    Refused,
    /// They are computed.
    Allowed,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            nodes: 50_000,
            loops: Loops::Refused,
            pixels: 2048 * 2048,
            dimensions: 1 << 20,
            unused_weights: 1 << 30,
            time: Duration::from_secs(120),
            memory: None,
        }
    }
}

impl FileLimits {
    /// The defaults, and 4 GiB of memory: for programs that do nothing else meanwhile.
    pub fn strict() -> Self {
        Self { memory: Some(4 << 30), ..Self::default() }
    }

    /// For files of people one trusts.
    pub fn none() -> Self {
        Self {
            nodes: u64::MAX,
            loops: Loops::Allowed,
            pixels: usize::MAX,
            dimensions: usize::MAX,
            unused_weights: u64::MAX,
            time: Duration::from_secs(u32::MAX.into()),
            memory: None,
        }
    }

    /// For a file of so many bytes.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        self.time.saturating_add(Duration::from_millis(bytes / 10_000))
    }

    /// For a file of so many bytes. A graphics card's driver takes address space for all of its memory, so
    /// that it cannot be limited there.
    pub(crate) fn memory_for(&self, bytes: u64, sessions: usize, provider: Provider) -> Option<u64> {
        if provider != Provider::Cpu {
            return None;
        }
        Some(self.memory?.saturating_add(bytes.saturating_mul(7).saturating_mul(sessions as u64)))
    }

    pub(crate) fn check_graph(&self, name: &str, census: &Census) -> Result<()> {
        let refuse = |problem: String| Err(Error::Limit { name: name.into(), problem });
        if census.nodes > self.nodes {
            return refuse(format!("{} nodes, more than {}", census.nodes, self.nodes));
        }
        match &census.looping {
            Some(operator) if self.loops == Loops::Refused => refuse(format!("a loop ({operator})")),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_card(&self, name: &str, card: &EncoderCard) -> Result<()> {
        if card.embedding_dim > self.dimensions {
            let (found, most) = (card.embedding_dim, self.dimensions);
            let problem = format!("an embedding of {found} dimensions, more than {most}");
            return Err(Error::Limit { name: name.into(), problem });
        }
        card.sizes.iter().try_for_each(|size| self.check_size(name, *size))
    }

    pub(crate) fn check_size(&self, name: &str, InputSize { height, width }: InputSize) -> Result<()> {
        if height.saturating_mul(width) <= self.pixels {
            return Ok(());
        }
        let problem = format!("images of {height}x{width}, more than {} pixels", self.pixels);
        Err(Error::Limit { name: name.into(), problem })
    }
}
