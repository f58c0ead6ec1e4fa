//! Embeds images with an exported encoder: the crate a service depends on.
//!
//! The `.onnx` file says by itself how an image is prepared, so a path is all that is needed:
//!
//! ```no_run
//! use lejepa_embed::{Encoder, Image};
//!
//! let encoder = Encoder::open("encoder.onnx")?;
//! let embeddings = encoder.embed_paths(&["galaxy.jpg", "nebula.png"])?; // (2, dim)
//! println!("{:?}", embeddings.row(0));
//!
//! let image = Image::open("galaxy.jpg".as_ref())?;
//! let tokens = encoder.patch_tokens(std::slice::from_ref(&image))?; // (1, rows, columns, dim)
//! let attention = encoder.attention(&[image])?; // (1, heads, rows, columns), vision transformers
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`Encoder`] is `Send + Sync`: put it into an `Arc` and call it from as many threads as there are
//! requests. Calls block; images of callers that come at the same time are computed together, and
//! [`EncoderBuilder::latency`] makes them wait for company. What a file can compute besides the embedding
//! costs nothing until it is asked for: each [`Output`] is computed by a graph of its own, cut out of the file.
//!
//! Files of other projects need a description of how images are prepared:
//!
//! ```no_run
//! use lejepa_embed::{Encoder, ForeignEncoder, Preprocess};
//!
//! let preprocess = Preprocess::new(256, (224, 224), 3); // or `Preprocess::from_hub`
//! let encoder = Encoder::builder()
//!     .foreign(ForeignEncoder { preprocess, output: None })
//!     .open("somebody_elses.onnx")?;
//! # Ok::<(), lejepa_embed::Error>(())
//! ```
//!
//! Weights in files beside the `.onnx` file, as PyTorch writes them, are found in its folder.
//!
//! # Files of strangers
//!
//! An `.onnx` file is a program. What it can compute is arithmetic: it reads no files but those of its weights
//! in its own folder, writes none and opens no connections. What it can waste is time and memory, and
//! [`FileLimits`] bound both while a file is opened and tried on its first image: graphs with loops, with
//! very many nodes or very large inputs are refused before ONNX Runtime sees them, and opening ends after a
//! time. Memory is bounded if the caller asks for it ([`FileLimits::strict`]), because the system's limit is
//! that of the whole process. Not bounded is what a file computes of later images, whose values it may wait
//! for: a service should watch [`Encoder::condition`]. ONNX Runtime itself is not hardened against damaged
//! graphs; whoever opens files of everybody does so in a process that may die. A file that is
//! trusted is opened without limits by [`EncoderBuilder::trusted`]. A checksum protects from damage, not
//! from malice.
//!
//! ONNX Runtime is a shared library that is loaded at run time; [`runtime`] says where it is looked for.

mod builder;
mod computation;
mod encoder;
mod error;
mod external_file;
mod file_info;
mod file_limits;
mod flaw;
mod foreign;
mod memory_limit;
mod model;
mod onnx_file;
mod provider;
mod queue;
pub mod runtime;
mod time_limit;
mod workers;

pub use builder::EncoderBuilder;
pub use computation::Computation;
pub use encoder::{Encoder, Rows, SelfTestResult};
pub use error::{Error, Result};
pub use file_info::FileInfo;
pub use file_limits::{FileLimits, Loops};
pub use flaw::Flaw;
pub use foreign::ForeignEncoder;
pub use lejepa_data::{
    DecodeLimits, EncoderCard, Image, InputSize, Output, Preprocess, SelfTest, printable_name,
};
pub use onnx_file::{Dimension, GraphOutput};
pub use provider::Provider;
pub use workers::{Condition, Statistics};

/// README's example is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
