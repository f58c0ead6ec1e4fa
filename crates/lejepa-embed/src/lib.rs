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
//! ONNX Runtime is a shared library that is loaded at run time; [`runtime`] says where it is looked for.

mod builder;
mod computation;
mod encoder;
mod error;
mod external_file;
mod file_info;
mod flaw;
mod foreign;
mod model;
mod onnx_file;
mod provider;
mod queue;
pub mod runtime;
mod workers;

pub use builder::EncoderBuilder;
pub use computation::Computation;
pub use encoder::{Encoder, Rows, SelfTestResult};
pub use error::{Error, Result};
pub use file_info::FileInfo;
pub use flaw::Flaw;
pub use foreign::ForeignEncoder;
pub use lejepa_data::{EncoderCard, Image, InputSize, Output, Preprocess, SelfTest};
pub use onnx_file::{Dimension, GraphOutput};
pub use provider::Provider;
pub use workers::Statistics;

/// README's example is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
