//! An exported encoder, ready to embed.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use lejepa_data::{EncoderCard, Image, Output, Preprocess, SelfTest};
use ndarray::{Array1, Array2, Array4, ArrayD, ArrayViewMutD, Axis, Ix2, Ix4};
use rayon::prelude::*;

use crate::builder::Normalised;
use crate::computation::Computation;
use crate::flaw::{Flaw, finite, scale_to_one};
use crate::queue::Reply;
use crate::workers::{Condition, Statistics, Workers};
use crate::{EncoderBuilder, Error, Result};

/// An encoder read from an `.onnx` file. It can be shared between threads: callers that come at the same
/// time share inferences.
pub struct Encoder {
    pub(crate) card: Option<EncoderCard>,
    pub(crate) self_test: Option<SelfTest>,
    pub(crate) is_checked: bool,
    pub(crate) preprocess: Preprocess,
    pub(crate) dim: usize,
    pub(crate) batch: usize,
    pub(crate) normalised: Normalised,
    /// Shared by encoders that differ in how images are prepared.
    pub(crate) workers: Arc<Workers>,
}

/// What a self-test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfTestResult {
    /// Distance from the stored embedding, relative to its length.
    pub drift: f32,
    /// The most that is allowed.
    pub tolerance: f32,
}

/// What was computed of some images.
#[derive(Debug)]
pub struct Rows {
    /// All of them along the first axis; see [`Output`] for the others.
    pub values: ArrayD<f32>,
    /// Images whose values are of no use, by their place, in ascending order.
    pub flawed: Vec<(usize, Flaw)>,
}

impl SelfTestResult {
    /// Whether the encoder computes here what it computed where it was exported.
    pub fn passed(&self) -> bool {
        self.drift <= self.tolerance
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Encoder");
        debug.field("name", &self.name()).field("dim", &self.dim).field("preprocess", &self.preprocess);
        debug.finish_non_exhaustive()
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

    /// The file's name, as it was given.
    pub fn name(&self) -> &str {
        &self.workers.plan().model.name
    }

    /// What the file says about itself; nothing for files of other projects.
    pub fn card(&self) -> Option<&EncoderCard> {
        self.card.as_ref()
    }

    /// How images are prepared.
    pub fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// The same encoder for images that are prepared otherwise, to the same size: sessions are shared.
    pub fn prepared_by(&self, preprocess: Preprocess) -> Result<Self> {
        preprocess.check()?;
        if preprocess.pixel_count() != self.preprocess.pixel_count() {
            let (expected, got) = (self.preprocess.pixel_count(), preprocess.pixel_count());
            return Err(Error::Pixels { images: 1, expected, got });
        }
        Ok(Self {
            card: self.card.clone(),
            self_test: self.self_test.clone(),
            is_checked: self.is_checked,
            preprocess,
            dim: self.dim,
            batch: self.batch,
            normalised: self.normalised,
            workers: self.workers.clone(),
        })
    }

    /// Length of an embedding.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// What the embedding is, for a protocol string: `cls`, `avg`, or the output's name of a file of
    /// another project.
    pub fn feature(&self) -> &str {
        let output = || self.workers.plan().outputs.get(&Output::Embedding).map(String::as_str);
        match &self.card {
            Some(card) => card.feature.tag(),
            None => output().unwrap_or_default(),
        }
    }

    /// A hash of the file and of the files that hold its weights: two with the same one compute the same.
    pub fn fingerprint(&self) -> String {
        self.workers.plan().model.fingerprint()
    }

    /// All that decides what is computed of an image: the one thing to name stored results by.
    pub fn computation(&self, output: Output) -> Result<Computation> {
        let plan = self.workers.plan();
        let name = plan.outputs.get(&output).ok_or_else(|| Error::missing_output(output, plan))?;
        Ok(Computation {
            version: Computation::VERSION,
            encoder: self.fingerprint(),
            output: name.clone(),
            preprocess: self.preprocess.clone(),
            normalised: self.is_normalised() && output.is_vector(),
            batch: self.batch,
            provider: plan.settings.provider.to_string(),
            runtime: plan.settings.version.clone(),
            decoding: lejepa_data::DECODING,
        })
    }

    /// Whether the file holds a checksum, which then matches: nothing in it was changed since its export.
    pub fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Most images of one inference.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Whether embeddings are scaled to length one.
    pub fn is_normalised(&self) -> bool {
        self.normalised == Normalised::Yes
    }

    /// Whether the file computes this.
    pub fn has(&self, output: Output) -> bool {
        self.workers.plan().outputs.contains_key(&output)
    }

    /// How its sessions are now.
    pub fn condition(&self) -> Condition {
        self.workers.condition()
    }

    /// What was computed since it was opened.
    pub fn statistics(&self) -> Statistics {
        self.workers.statistics()
    }

    /// Embeds images of any size.
    ///
    /// # Shapes
    /// - result: `(images, dim)`
    pub fn embed(&self, images: &[Image]) -> Result<Array2<f32>> {
        matrix(self.compute(Output::Embedding, images)?)
    }

    /// Reads and embeds image files; the error names the file.
    ///
    /// # Shapes
    /// - result: `(paths, dim)`
    pub fn embed_paths(&self, paths: &[impl AsRef<Path> + Sync]) -> Result<Array2<f32>> {
        let rows = self.compute_each(Output::Embedding, paths.len(), |index, pixels| {
            self.preprocess.apply_into(&Image::open(paths[index].as_ref())?, pixels)
        })?;
        matrix(self.flawless(Output::Embedding, rows, |index| paths[index].as_ref().display().to_string())?)
    }

    /// Embeds image files that are in memory.
    ///
    /// # Shapes
    /// - result: `(files, dim)`
    pub fn embed_bytes(&self, files: &[impl AsRef<[u8]> + Sync]) -> Result<Array2<f32>> {
        self.embed_with(files.len(), |index, pixels| {
            let named = |error| lejepa_data::Error::sample(format!("image {index}"), error);
            self.preprocess.apply_into(&Image::decode(files[index].as_ref()).map_err(named)?, pixels)
        })
    }

    /// Embeds images that come from elsewhere: `prepare` writes the pixels of image `index`, which went
    /// through [`Encoder::preprocess`]. Several are prepared at the same time, while others are computed.
    ///
    /// # Shapes
    /// - `pixels`: `(channels, height, width)`
    /// - result: `(images, dim)`
    pub fn embed_with(
        &self,
        images: usize,
        prepare: impl Fn(usize, &mut [f32]) -> lejepa_data::Result<()> + Sync,
    ) -> Result<Array2<f32>> {
        matrix(self.compute_with(Output::Embedding, images, prepare)?)
    }

    /// Embeds images that were prepared already.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn embed_pixels(&self, images: usize, pixels: &[f32]) -> Result<Array2<f32>> {
        let each = self.preprocess.pixel_count();
        if pixels.len() != images * each {
            return Err(Error::Pixels { images, expected: images * each, got: pixels.len() });
        }
        self.embed_with(images, |index, target| {
            target.copy_from_slice(&pixels[index * each..][..each]);
            Ok(())
        })
    }

    /// Embeds one image that was prepared already, without waiting: for services that have no thread to
    /// spare for every request. `done` gets the embedding from the thread that computed it, which goes on
    /// with the next images after that, so it should be short. It is dropped uncalled if the encoder stops.
    /// A panic in it is its own: the thread goes on.
    ///
    /// # Shapes
    /// - `pixels`: `(channels, height, width)`
    /// - what `done` gets: `(dim)`
    pub fn embed_pixels_then(
        &self,
        pixels: Vec<f32>,
        done: impl FnOnce(Result<Array1<f32>>) + Send + 'static,
    ) {
        let expected = self.preprocess.pixel_count();
        if pixels.len() != expected {
            return done(Err(Error::Pixels { images: 1, expected, got: pixels.len() }));
        }
        let (normalised, name) = (self.normalised, self.name().to_string());
        let reply = Reply(Box::new(move |answer| {
            done(answer.and_then(|computed| {
                let mut embedding = Array1::from(computed.values);
                match flaw_of(&mut embedding.view_mut().into_dyn(), normalised) {
                    None => Ok(embedding),
                    Some(flaw) => {
                        let (output, image) = (Output::Embedding, "the image".into());
                        Err(Error::Flawed { output, image, flaw, name })
                    }
                }
            }));
        }));
        self.workers.submit_then(Output::Embedding, 1, pixels, reply);
    }

    /// The last feature of every place of the image.
    ///
    /// # Shapes
    /// - result: `(images, rows, columns, dim)`
    pub fn patch_tokens(&self, images: &[Image]) -> Result<Array4<f32>> {
        maps(self.compute(Output::PatchTokens, images)?)
    }

    /// How much the class token of a vision transformer looks at every patch, in the last block.
    ///
    /// # Shapes
    /// - result: `(images, heads, rows, columns)`
    pub fn attention(&self, images: &[Image]) -> Result<Array4<f32>> {
        maps(self.compute(Output::ClsAttention, images)?)
    }

    /// Any output of images of any size.
    ///
    /// # Shapes
    /// - result: see [`Output`]
    pub fn compute(&self, output: Output, images: &[Image]) -> Result<ArrayD<f32>> {
        self.compute_with(output, images.len(), |index, pixels| {
            self.preprocess.apply_into(&images[index], pixels)
        })
    }

    /// Embeds the picture inside the file and compares with the embedding beside it.
    pub fn self_test(&self) -> Result<SelfTestResult> {
        let missing = || Error::NoSelfTest { name: self.name().into() };
        let test = self.self_test.as_ref().ok_or_else(missing)?;
        let pixels = self.preprocess.apply(&test.stored_picture()?)?;
        let embedding = self.workers.try_one(Output::Embedding, pixels)?.values;
        Ok(SelfTestResult { drift: test.drift(&embedding), tolerance: test.tolerance })
    }

    /// Any output of images that `prepare` writes, see [`Encoder::embed_with`].
    ///
    /// # Shapes
    /// - result: see [`Output`]
    pub fn compute_with(
        &self,
        output: Output,
        images: usize,
        prepare: impl Fn(usize, &mut [f32]) -> lejepa_data::Result<()> + Sync,
    ) -> Result<ArrayD<f32>> {
        let rows = self.compute_each(output, images, prepare)?;
        self.flawless(output, rows, |index| format!("image {index}"))
    }

    /// The same without an error for images of which something useless is computed: they are named beside
    /// the values.
    pub fn compute_each(
        &self,
        output: Output,
        images: usize,
        prepare: impl Fn(usize, &mut [f32]) -> lejepa_data::Result<()> + Sync,
    ) -> Result<Rows> {
        let mut values = self.compute_unscaled(output, images, &prepare)?;
        let normalised = if output.is_vector() { self.normalised } else { Normalised::No };
        let rows = values.axis_iter_mut(Axis(0)).enumerate();
        let flawed =
            rows.filter_map(|(index, mut row)| Some((index, flaw_of(&mut row, normalised)?))).collect();
        Ok(Rows { values, flawed })
    }

    /// The values, if all of them are of use.
    fn flawless(&self, output: Output, rows: Rows, image: impl Fn(usize) -> String) -> Result<ArrayD<f32>> {
        match rows.flawed.first() {
            None => Ok(rows.values),
            Some(&(index, flaw)) => {
                Err(Error::Flawed { output, image: image(index), flaw, name: self.name().into() })
            }
        }
    }

    fn compute_unscaled(
        &self,
        output: Output,
        images: usize,
        prepare: &(impl Fn(usize, &mut [f32]) -> lejepa_data::Result<()> + Sync),
    ) -> Result<ArrayD<f32>> {
        if !self.has(output) {
            return Err(Error::missing_output(output, self.workers.plan()));
        }
        let each = self.preprocess.pixel_count();
        let (mut shape, mut values) = (vec![0], Vec::new());
        let mut take = |ticket: crate::queue::Ticket| -> Result<()> {
            let computed = ticket.wait()?;
            shape.truncate(1);
            shape.extend(computed.shape);
            values.extend(computed.values);
            Ok(())
        };
        // One batch for every session and one that is being prepared meanwhile.
        let mut computing = VecDeque::new();
        for start in (0..images).step_by(self.batch) {
            let count = self.batch.min(images - start);
            let mut pixels = vec![0.; count * each];
            if count == 1 {
                prepare(start, &mut pixels)?;
            } else {
                let parts = pixels.par_chunks_exact_mut(each).enumerate();
                parts.try_for_each(|(index, pixels)| prepare(start + index, pixels))?;
            }
            computing.push_back(self.workers.submit(output, count, pixels));
            if computing.len() > self.workers.count()
                && let Some(oldest) = computing.pop_front()
            {
                take(oldest)?;
            }
        }
        computing.into_iter().try_for_each(&mut take)?;
        if images == 0 {
            return Ok(empty(output, self.dim));
        }
        shape[0] = images;
        let found = format!("output {} has another shape than expected: {shape:?}", output.name());
        ArrayD::from_shape_vec(shape, values)
            .map_err(|_| Error::NotAnEncoder { name: self.name().into(), problem: found })
    }
}

/// What is wrong with the values of an image, which are scaled where that is wanted.
fn flaw_of(row: &mut ArrayViewMutD<'_, f32>, normalised: Normalised) -> Option<Flaw> {
    match normalised {
        Normalised::Yes => scale_to_one(row),
        Normalised::No => finite(&*row),
    }
}

/// Nothing, with as many axes as something would have.
fn empty(output: Output, dim: usize) -> ArrayD<f32> {
    match output {
        Output::Embedding => ArrayD::zeros(vec![0, dim]),
        Output::ClsLast2 => ArrayD::zeros(vec![0, 2 * dim]),
        Output::Projection => ArrayD::zeros(vec![0, 0]),
        Output::PatchTokens | Output::ClsAttention => ArrayD::zeros(vec![0; 4]),
    }
}

/// `(images, dim)`; encoders of other projects may write `(images, dim, 1, 1)`.
fn matrix(values: ArrayD<f32>) -> Result<Array2<f32>> {
    let (shape, images) = (values.shape().to_vec(), values.len_of(Axis(0)));
    let each = shape.iter().skip(1).product();
    values.into_shape_with_order(Ix2(images, each)).map_err(|_| unexpected(&shape))
}

fn maps(values: ArrayD<f32>) -> Result<Array4<f32>> {
    let shape = values.shape().to_vec();
    values.into_dimensionality::<Ix4>().map_err(|_| unexpected(&shape))
}

fn unexpected(shape: &[usize]) -> Error {
    Error::NotAnEncoder { name: "output".into(), problem: format!("unexpected shape {shape:?}") }
}

#[cfg(test)]
mod strangers;
#[cfg(test)]
mod tests;
