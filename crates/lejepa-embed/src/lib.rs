//! Embeds images with an exported encoder: the crate a service depends on.
//!
//! The `.onnx` file says by itself how an image is prepared, so a path is all that is needed:
//!
//! ```no_run
//! use lejepa_embed::{Encoder, Image};
//!
//! let encoder = Encoder::open("encoder.onnx")?;
//! let images = [Image::open("galaxy.jpg".as_ref())?];
//! let embeddings = encoder.embed(&images)?; // (images, dim)
//! println!("{:?}", embeddings.row(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ONNX Runtime is a shared library that is loaded at run time; [`runtime`] says where it is looked for.

mod encoder;
mod error;
pub mod runtime;

pub use encoder::{Encoder, EncoderBuilder};
pub use error::{Error, Result};
pub use lejepa_data::{EncoderCard, Image, Preprocess};

/// README's example is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
