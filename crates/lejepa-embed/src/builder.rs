//! How an encoder is opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lejepa_data::{
    CARD_KEY, EncoderCard, InputSize, Output, PIXELS_INPUT, Precision, Preprocess, SELF_TEST_KEY, SelfTest,
};
use ort::session::Session;

use crate::foreign::ForeignEncoder;
use crate::memory_limit::within_memory;
use crate::model::{Model, SessionSettings};
use crate::onnx_file::{Dimension, OnnxFile};
use crate::queue::Batching;
use crate::time_limit::{Cancel, within};
use crate::workers::{Plan, Workers, run_session};
use crate::{Encoder, Error, FileLimits, Provider, Result, runtime};

/// The choices of an encoder, all with defaults.
///
/// ```no_run
/// use std::time::Duration;
/// use lejepa_embed::{Encoder, Provider};
///
/// let encoder = Encoder::builder()
///     .threads(2)                             // of one inference
///     .sessions(2)                            // inferences at the same time
///     .batch(32)                              // most images of one inference
///     .latency(Duration::from_millis(5))      // how long an image waits for others
///     .provider(Provider::Cuda { device: 0 }) // an error if it is not there
///     .normalised()                           // embeddings of length one
///     .open("encoder.onnx")?;
/// # Ok::<(), lejepa_embed::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct EncoderBuilder {
    library: Option<PathBuf>,
    threads: Option<usize>,
    sessions: usize,
    batching: Batching,
    provider: Provider,
    size: Option<InputSize>,
    normalised: Normalised,
    foreign: Option<ForeignEncoder>,
    limits: FileLimits,
}

/// Whether embeddings are scaled to length one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Normalised {
    No,
    Yes,
}

/// What is known of a file before a session of it runs.
struct Known {
    card: Option<EncoderCard>,
    self_test: Option<SelfTest>,
    preprocess: Preprocess,
    outputs: HashMap<Output, String>,
    is_checked: bool,
}

/// Large enough for full speed on a processor, small enough for its caches.
const BATCH: usize = 16;
/// Weights are in memory once for each session.
const MOST_THROUGHPUT_SESSIONS: usize = 4;
const THROUGHPUT_BATCH: usize = 4;

impl Default for EncoderBuilder {
    fn default() -> Self {
        Self {
            library: None,
            threads: None,
            sessions: 1,
            batching: Batching { images: BATCH, latency: Duration::ZERO },
            provider: Provider::Cpu,
            size: None,
            normalised: Normalised::No,
            foreign: None,
            limits: FileLimits::default(),
        }
    }
}

impl EncoderBuilder {
    /// Loads ONNX Runtime from this file instead of looking for it.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.library = Some(path.into());
        self
    }

    /// Threads of one inference. If not given, all cores are shared by the sessions.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Inferences that run at the same time; each holds the weights once. One if not given: least memory,
    /// and the fastest answer for a single image. Many images are embedded fastest by a session for each
    /// core with small batches, see [`EncoderBuilder::throughput`].
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// For many images: a session for each core, at most four that share all cores, and batches of four images,
    /// which stay in a core's caches. On a graphics card it changes nothing.
    pub fn throughput(mut self) -> Self {
        if self.provider == Provider::Cpu {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            self.sessions = cores.min(MOST_THROUGHPUT_SESSIONS);
            self.batching.images = THROUGHPUT_BATCH;
        }
        self
    }

    /// Most images of one inference; more are computed one batch after the other. 16 if not given.
    pub fn batch(mut self, images: usize) -> Self {
        self.batching.images = images;
        self
    }

    /// How long an image may wait for images of other callers to share an inference with. Images that
    /// wait for a free session anyway share one in any case; without this nothing waits longer than that.
    pub fn latency(mut self, bound: Duration) -> Self {
        self.batching.latency = bound;
        self
    }

    /// Where to compute; the processor if not given.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// One of the sizes that the file was exported for; the first one if not given.
    pub fn size(mut self, height: usize, width: usize) -> Self {
        self.size = Some(InputSize { height, width });
        self
    }

    /// Scales vectors (not maps) to length one, so that their dot product is the cosine.
    pub fn normalised(mut self) -> Self {
        self.normalised = Normalised::Yes;
        self
    }

    /// Opens a file of another project, which needs a description.
    pub fn foreign(mut self, description: ForeignEncoder) -> Self {
        self.foreign = Some(description);
        self
    }

    /// What the file may ask for.
    pub fn limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens a file of somebody who is trusted, without limits.
    pub fn trusted(self) -> Self {
        self.limits(FileLimits::none())
    }

    /// Opens a file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Encoder> {
        self.build(|| Model::open(path.as_ref(), &self.limits))
    }

    /// Opens a file that is in memory; `name` is used in messages.
    pub fn open_bytes(&self, name: &str, bytes: &[u8]) -> Result<Encoder> {
        self.build(|| Model::in_memory(name, bytes, &self.limits))
    }

    fn build(&self, open: impl FnOnce() -> Result<(Model, OnnxFile)>) -> Result<Encoder> {
        self.check()?;
        let (model, file) = open()?;
        self.limits.check_graph(&model.name, &file.census)?;
        let known = match &self.foreign {
            None => self.read_card(&model, &file)?,
            Some(_) if self.size.is_some() => {
                let problem = "its size is that of its description's crop".into();
                return Err(Error::Foreign { name: model.name, problem });
            }
            Some(description) => foreign(description, &model, &file)?,
        };
        let (environment, library) = runtime::environment(self.library.as_deref())?;
        let preprocess = &known.preprocess;
        let settings = SessionSettings {
            environment,
            version: runtime::version_of(&library),
            provider: self.provider,
            threads: self.threads_each(),
            size: (preprocess.crop_height, preprocess.crop_width),
            precision: known.card.as_ref().map_or(Precision::F32, |card| card.precision),
        };
        let (name, length) = (model.name.clone(), model.length());
        let (time, builder) = (self.limits.time_for(length), self.clone());
        let memory = self.limits.memory_for(length, self.sessions, self.provider);
        within_memory(memory, &name, || {
            within(time, &name, move |cancel| builder.start(model, settings, known, cancel))
        })
    }

    /// Everything that ONNX Runtime takes part in.
    fn start(
        &self,
        model: Model,
        settings: SessionSettings,
        known: Known,
        cancel: &Cancel,
    ) -> Result<Encoder> {
        let output = known.outputs.get(&Output::Embedding).cloned().unwrap_or_default();
        let sessions = (0..self.sessions).map(|_| model.session(&output, &settings, cancel));
        let sessions = sessions.collect::<Result<Vec<_>>>()?;
        self.assemble((model, settings), known, sessions, cancel)
    }

    fn assemble(
        &self,
        (model, settings): (Model, SessionSettings),
        known: Known,
        mut sessions: Vec<Session>,
        cancel: &Cancel,
    ) -> Result<Encoder> {
        let Known { card, self_test, preprocess, outputs, is_checked } = known;
        let Preprocess { channels, crop_height, crop_width, .. } = preprocess;
        let (input, fixed_batch) = input(sessions.first(), &model, card.as_ref())?;
        let image_shape = [channels, crop_height, crop_width];
        let plan = Plan { model, settings, input, outputs, image_shape, limits: self.limits };
        let dim = match &card {
            Some(card) => card.embedding_dim,
            None => foreign_dim(&mut sessions, &plan, fixed_batch.unwrap_or(1), cancel)?,
        };
        let batching = Batching { images: fixed_batch.unwrap_or(self.batching.images), ..self.batching };
        let workers = Workers::start(plan, batching, sessions)?;
        Ok(Encoder {
            card,
            self_test,
            is_checked,
            preprocess,
            dim,
            batch: batching.images,
            normalised: self.normalised,
            workers: Arc::new(workers),
        })
    }

    fn check(&self) -> Result<()> {
        let settings = [
            ("threads", self.threads.unwrap_or(1)),
            ("sessions", self.sessions),
            ("batch", self.batching.images),
        ];
        match settings.into_iter().find(|(_, value)| !(1..=MOST).contains(value)) {
            Some((field, got)) => Err(Error::Setting { field, expected: "between 1 and 4096", got }),
            None => Ok(()),
        }
    }

    fn threads_each(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        self.threads.unwrap_or((cores / self.sessions).max(1))
    }

    fn read_card(&self, model: &Model, file: &OnnxFile) -> Result<Known> {
        let refuse = |problem: String| Error::NotAnEncoder { name: model.name.clone(), problem };
        let card = card_of(file).map_err(refuse)?;
        self.limits.check_card(&model.name, &card)?;
        if card.checksum && file.checksum.is_none() {
            return Err(Error::Altered { name: model.name.clone() });
        }
        let self_test = self_test_of(file).map_err(refuse)?;
        let first = card.sizes.first().copied();
        let asked = self.size.or(first).filter(|asked| card.sizes.contains(asked));
        let size = asked.ok_or_else(|| Error::Size {
            asked: self.size.unwrap_or(InputSize { height: 0, width: 0 }),
            available: card.sizes.clone(),
            name: model.name.clone(),
        })?;
        let outputs: HashMap<Output, String> = file
            .outputs
            .iter()
            .filter_map(|found| Some((Output::named(&found.name)?, found.name.clone())))
            .collect();
        let name = Output::Embedding.name();
        let embedding = file.outputs.iter().find(|output| output.name == name);
        let embedding = embedding.ok_or_else(|| refuse(format!("no output named {name}")))?;
        if embedding.shape.get(1) != Some(&Dimension::Fixed(card.embedding_dim as i64)) {
            return Err(refuse(format!(
                "output {name} has not the card's {} dimensions",
                card.embedding_dim
            )));
        }
        let preprocess = card.preprocess.for_size(size.height, size.width);
        // The expected embedding is that of the first size.
        let self_test = self_test.filter(|_| Some(size) == first);
        Ok(Known { card: Some(card), self_test, preprocess, outputs, is_checked: file.checksum.is_some() })
    }
}

/// More of anything is a mistake.
const MOST: usize = 4096;

pub(crate) fn card_of(file: &OnnxFile) -> std::result::Result<EncoderCard, String> {
    let json = file.metadata(CARD_KEY).ok_or_else(|| format!("no metadata entry {CARD_KEY}"))?;
    let wrong = |problem: String| format!("metadata {CARD_KEY}: {problem}");
    // The version first: what else is in there depends on it.
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    if let Some(format) = value["format"].as_u64()
        && format != u64::from(lejepa_data::CARD_FORMAT)
    {
        let known = lejepa_data::CARD_FORMAT;
        return Err(wrong(format!("card format {format} is not known, expected {known}")));
    }
    let card: EncoderCard = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
    card.check().map_err(wrong)?;
    Ok(card)
}

pub(crate) fn self_test_of(file: &OnnxFile) -> std::result::Result<Option<SelfTest>, String> {
    let Some(json) = file.metadata(SELF_TEST_KEY) else { return Ok(None) };
    serde_json::from_str(json).map(Some).map_err(|error| format!("metadata {SELF_TEST_KEY}: {error}"))
}

fn foreign(description: &ForeignEncoder, model: &Model, file: &OnnxFile) -> Result<Known> {
    description.preprocess.check()?;
    let refuse = |problem: String| Err(Error::Foreign { name: model.name.clone(), problem });
    let names: Vec<&str> = file.outputs.iter().map(|output| output.name.as_str()).collect();
    let output = match (&description.output, &*names) {
        (Some(output), names) if names.contains(&output.as_str()) => output.clone(),
        (Some(output), names) => return refuse(format!("no output {output}, only {}", names.join(", "))),
        (None, [only]) => only.to_string(),
        (None, names) => return refuse(format!("which output is the embedding: {}", names.join(", "))),
    };
    Ok(Known {
        card: None,
        self_test: None,
        preprocess: description.preprocess.clone(),
        outputs: HashMap::from([(Output::Embedding, output)]),
        is_checked: file.checksum.is_some(),
    })
}

/// Name of the input, and how many images it wants if that is not open.
fn input(
    session: Option<&Session>,
    model: &Model,
    card: Option<&EncoderCard>,
) -> Result<(String, Option<usize>)> {
    let inputs = session.map(Session::inputs).unwrap_or_default();
    let refuse = |problem: String| {
        let name = model.name.clone();
        if card.is_some() { Error::NotAnEncoder { name, problem } } else { Error::Foreign { name, problem } }
    };
    let names: Vec<&str> = inputs.iter().map(|input| input.name()).collect();
    let [only] = inputs else {
        return Err(refuse(format!("{} inputs instead of one: {}", inputs.len(), names.join(", "))));
    };
    if card.is_some() && only.name() != PIXELS_INPUT {
        return Err(refuse(format!("no input named {PIXELS_INPUT}")));
    }
    if only.dtype().tensor_type() != Some(ort::value::TensorElementType::Float32) {
        return Err(refuse(format!("input {} is not a tensor of f32", only.name())));
    }
    let batch = only.dtype().tensor_shape().and_then(|shape| shape.first().copied());
    Ok((only.name().into(), batch.and_then(|batch| usize::try_from(batch).ok()).filter(|&batch| batch > 0)))
}

/// Length of an embedding, found by computing one.
fn foreign_dim(sessions: &mut [Session], plan: &Plan, images: usize, cancel: &Cancel) -> Result<usize> {
    let refuse = |problem: String| Error::Foreign { name: plan.model.name.clone(), problem };
    let output = plan.outputs.get(&Output::Embedding).map(String::as_str).unwrap_or_default();
    let session = sessions.first_mut().ok_or(Error::Stopped)?;
    if images != 1 {
        return Err(refuse(format!("takes {images} images at a time, no other number")));
    }
    let blank = vec![0.; plan.image_shape.iter().product()];
    let computed = run_session(session, plan, output, (images, &blank), Some(&cancel.running()?))?;
    match *computed.shape {
        [dim] | [dim, 1, 1] => Ok(dim),
        ref shape => {
            Err(refuse(format!("output {output} has the shape {shape:?} for one image, expected one vector")))
        }
    }
}
