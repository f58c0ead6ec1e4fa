//! An exported encoder, ready to embed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lejepa_data::{CARD_KEY, EncoderCard, Image, Output, PIXELS_INPUT};
use ndarray::Array2;
use ort::session::Session;
use ort::value::TensorRef;

use crate::{Error, Result, runtime};

/// An encoder read from an `.onnx` file. It can be shared between threads.
pub struct Encoder {
    card: EncoderCard,
    /// ONNX Runtime's `run` needs `&mut`: callers take turns.
    session: Mutex<Session>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Encoder").field("card", &self.card).finish_non_exhaustive()
    }
}

/// How an encoder is opened.
#[derive(Debug, Clone, Default)]
pub struct EncoderBuilder {
    library: Option<PathBuf>,
    threads: Option<usize>,
}

impl EncoderBuilder {
    /// Loads ONNX Runtime from this file instead of looking for it.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.library = Some(path.into());
        self
    }

    /// Threads of one inference; all cores if not given.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens a file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Encoder> {
        let path = path.as_ref();
        if !path.is_file() {
            return Err(Error::NotFound { path: path.into() });
        }
        let name = path.display().to_string();
        self.build(name, |builder| builder.commit_from_file(path))
    }

    /// Opens a file that is in memory; `name` is used in messages.
    pub fn open_bytes(&self, name: &str, bytes: &[u8]) -> Result<Encoder> {
        self.build(name.into(), |builder| builder.commit_from_memory(bytes))
    }

    fn build(
        &self,
        name: String,
        commit: impl FnOnce(&mut ort::session::builder::SessionBuilder) -> ort::Result<Session>,
    ) -> Result<Encoder> {
        let (environment, _library) = runtime::environment(self.library.as_deref())?;
        let mut builder = Session::builder(&environment)?;
        if let Some(threads) = self.threads {
            builder = builder.with_intra_threads(threads).map_err(ort::Error::from)?;
        }
        let session =
            commit(&mut builder).map_err(|source| Error::Unreadable { name: name.clone(), source })?;
        let card = read_card(&session).map_err(|problem| Error::NotAnEncoder { name, problem })?;
        Ok(Encoder { card, session: Mutex::new(session) })
    }
}

impl Encoder {
    /// Opens a file with everything left to defaults.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder().open(path)
    }

    /// Opens a file with choices.
    pub fn builder() -> EncoderBuilder {
        EncoderBuilder::default()
    }

    /// What the file says about itself.
    pub fn card(&self) -> &EncoderCard {
        &self.card
    }

    /// Embeds a batch of images of any size.
    ///
    /// # Shapes
    /// - result: `(images, dim)`
    pub fn embed(&self, images: &[Image]) -> Result<Array2<f32>> {
        let preprocess = &self.card.preprocess;
        let mut pixels = vec![0.; images.len() * preprocess.pixel_count()];
        for (image, pixels) in images.iter().zip(pixels.chunks_exact_mut(preprocess.pixel_count())) {
            preprocess.apply_into(image, pixels)?;
        }
        self.embed_pixels(images.len(), &pixels)
    }

    /// Embeds images that went through [`Preprocess::apply`](lejepa_data::Preprocess::apply) already.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn embed_pixels(&self, images: usize, pixels: &[f32]) -> Result<Array2<f32>> {
        let preprocess = &self.card.preprocess;
        let expected = images * preprocess.pixel_count();
        if pixels.len() != expected {
            return Err(Error::Pixels { images, expected, got: pixels.len() });
        }
        let dim = self.card.embedding_dim;
        if images == 0 {
            return Ok(Array2::zeros((0, dim)));
        }
        let shape = [images, preprocess.channels, preprocess.crop_height, preprocess.crop_width];
        let input = TensorRef::from_array_view((shape, pixels))?;
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(ort::inputs![PIXELS_INPUT => input])?;
        let (_shape, values) = outputs[Output::Embedding.name()].try_extract_tensor::<f32>()?;
        Array2::from_shape_vec((images, dim), values.to_vec()).map_err(|error| Error::NotAnEncoder {
            name: Output::Embedding.name().into(),
            problem: format!("output has another shape than its card says: {error}"),
        })
    }
}

fn read_card(session: &Session) -> std::result::Result<EncoderCard, String> {
    let named =
        |outlets: &[ort::value::Outlet], name: &str| outlets.iter().any(|outlet| outlet.name() == name);
    if !named(session.inputs(), PIXELS_INPUT) {
        return Err(format!("no input named {PIXELS_INPUT}"));
    }
    if !named(session.outputs(), Output::Embedding.name()) {
        return Err(format!("no output named {}", Output::Embedding.name()));
    }
    let metadata = session.metadata().map_err(|error| error.to_string())?;
    let json = metadata.custom(CARD_KEY).ok_or_else(|| format!("no metadata entry {CARD_KEY}"))?;
    let card: EncoderCard =
        serde_json::from_str(&json).map_err(|error| format!("metadata {CARD_KEY}: {error}"))?;
    card.check().map_err(|problem| format!("metadata {CARD_KEY}: {problem}"))?;
    Ok(card)
}
