//! Every output, size and precision of an exported encoder, in ONNX Runtime against Candle.

#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;
mod small_encoders;

use std::path::PathBuf;
use std::sync::OnceLock;

use candle_core::{DType, Device, Tensor};
use lejepa_data::{EncoderCard, Image, InputSize, Output, Precision, Preprocess, SelfTest};
use lejepa_model::{
    Encoder, EncoderShape, ImageSize, Parameters, Pass, Projector, ProjectorConfig, VisionTransformer,
    VitShape,
};
use lejepa_onnx::{Export, available_outputs, with_self_test};
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::value::TensorRef;
use small_encoders::{
    card, convolutional, families, largest_difference, use_parameters, used_encoder, values, vit, vit_options,
};

/// ONNX Runtime and Candle sum in another order; outputs are of order one.
const TOLERANCE: f32 = 1e-4;
/// 11 bits of every weight are left.
const F16_COSINE: f32 = 0.999;
/// 7 bits of a weight and 8 of a feature.
const INT8_COSINE: f32 = 0.99;

const OBLONG: ImageSize = ImageSize { height: 40, width: 72 };

/// An encoder with a projector behind it.
struct Subject {
    encoder: Encoder,
    parameters: Parameters,
    projector: Projector,
    projector_parameters: Parameters,
}

impl Subject {
    fn new(shape: &EncoderShape) -> Self {
        let (encoder, parameters) = used_encoder(shape);
        let mut projector_parameters = Parameters::new(6, DType::F32, &Device::Cpu);
        let config = ProjectorConfig { hidden: vec![40, 24], dim: 10 };
        let projector = Projector::new(shape.dim(), &config, projector_parameters.root()).unwrap();
        use_parameters(&projector_parameters);
        Self { encoder, parameters, projector, projector_parameters }
    }

    fn outputs(&self) -> Vec<Output> {
        [available_outputs(&self.encoder.shape()), vec![Output::Projection]].concat()
    }

    fn card(&self, sizes: &[ImageSize], precision: Precision) -> EncoderCard {
        let sizes = sizes.iter().map(|&ImageSize { height, width }| InputSize { height, width }).collect();
        let embedding_dim = self.encoder.dim();
        EncoderCard { sizes, embedding_dim, precision, ..card(self.encoder.shape().image_size()) }
    }

    fn export(&self, outputs: &[Output], card: &EncoderCard) -> lejepa_onnx::Result<Vec<u8>> {
        let projector = Some(&self.projector_parameters);
        Export { encoder: &self.encoder, parameters: &self.parameters, projector, outputs, card }.encode()
    }

    /// What Candle computes.
    fn expected(&self, output: Output, pixels: &Tensor) -> Tensor {
        let features = || self.encoder.forward(pixels, &Pass::eval()).unwrap();
        match output {
            Output::Embedding => features(),
            Output::Projection => self.projector.forward(&features(), &Pass::eval()).unwrap(),
            Output::PatchTokens => self.encoder.patch_tokens(pixels).unwrap(),
            Output::ClsAttention => self.class_attention(pixels),
            Output::ClsLast2 => Tensor::cat(&[self.class_before(pixels), features()], 1).unwrap(),
        }
    }

    fn class_attention(&self, pixels: &Tensor) -> Tensor {
        let EncoderShape::Vit(shape) = self.encoder.shape() else { panic!("no attention") };
        let vit = VisionTransformer::new(&shape, self.parameters.frozen().root()).unwrap();
        let (rows, columns) = self.grid(pixels);
        let attention = vit.forward_tokens(pixels).unwrap().last_attention;
        let of_class = attention.narrow(2, 0, 1).unwrap();
        let of_patches = of_class.narrow(3, shape.prefix(), rows * columns).unwrap();
        of_patches.reshape(((), shape.heads, rows, columns)).unwrap()
    }

    /// The feature of the encoder without its last block.
    fn class_before(&self, pixels: &Tensor) -> Tensor {
        let EncoderShape::Vit(mut shape) = self.encoder.shape() else { panic!("no blocks") };
        shape.depth -= 1;
        let last = format!("blocks.{}.", shape.depth);
        let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
        let encoder = Encoder::with_shape(&EncoderShape::Vit(shape), parameters.root()).unwrap();
        let tensors = self.parameters.tensors().filter(|(name, _)| !name.starts_with(&last));
        parameters.load(&tensors.map(|(name, tensor)| (name.into(), tensor.clone())).collect()).unwrap();
        encoder.forward(pixels, &Pass::eval()).unwrap()
    }

    fn grid(&self, pixels: &Tensor) -> (usize, usize) {
        let (_images, _channels, height, width) = pixels.dims4().unwrap();
        let stride = self.encoder.shape().stride();
        (height / stride, width / stride)
    }

    /// Compares every output of a file with Candle.
    fn compare(&self, session: &mut Session, outputs: &[Output], pixels: &Tensor) {
        let found = run(session, pixels).unwrap();
        assert_eq!(found.len(), outputs.len());
        for (&output, (shape, found)) in outputs.iter().zip(&found) {
            let expected = self.expected(output, pixels);
            let context = format!("{output:?} of {:?}, pixels {:?}", self.encoder.shape(), pixels.shape());
            assert_eq!(shape, expected.dims(), "{context}");
            let difference = largest_difference(found, &values(&expected));
            assert!(difference < TOLERANCE, "{context}: {difference:e}");
        }
    }
}

/// ONNX Runtime, where `lejepa-embed` would find it; both in one process it does not allow.
fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let named = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        let library = named.unwrap_or_else(|| {
            let folder = fixture::repository().join(".lejepa/onnxruntime");
            let entries = std::fs::read_dir(folder).map_or_else(|_| Vec::new(), |entries| entries.collect());
            let library = entries.into_iter().flatten().map(|entry| entry.path()).next();
            library.unwrap_or_else(|| "libonnxruntime.so".into())
        });
        ort::init_from(library).unwrap().with_telemetry(false).build().unwrap()
    })
}

fn open(bytes: &[u8]) -> Session {
    // Sizes that must fail are no news.
    let builder = Session::builder(environment()).unwrap().with_log_level(LogLevel::Fatal).unwrap();
    builder.clone().commit_from_memory(bytes).unwrap()
}

/// Shapes and values of all outputs in their order.
fn run(session: &mut Session, pixels: &Tensor) -> ort::Result<Vec<(Vec<usize>, Vec<f32>)>> {
    let (shape, pixels) = (pixels.dims().to_vec(), values(pixels));
    let outputs = session.run(ort::inputs!["pixels" => TensorRef::from_array_view((shape, &*pixels))?])?;
    let read = |value: ort::value::ValueRef<'_>| -> ort::Result<_> {
        let (shape, values) = value.try_extract_tensor::<f32>()?;
        Ok((shape.iter().map(|&size| size as usize).collect(), values.to_vec()))
    };
    outputs.into_iter().map(|(_name, value)| read(value.view())).collect()
}

fn noise(images: usize, size: ImageSize) -> Tensor {
    Tensor::randn(0f32, 1., (images, 3, size.height, size.width), &Device::Cpu).unwrap()
}

/// Waves of every colour: smooth as photographs are, and no two alike.
fn pictures(images: usize, size: ImageSize) -> Tensor {
    let mut pixels = Vec::new();
    for image in 0..images {
        for channel in 0..3 {
            for place in 0..size.height * size.width {
                let (y, x) = ((place / size.width) as f32, (place % size.width) as f32);
                let [image, channel] = [image, channel].map(|index| index as f32);
                let wave = (0.11 * (1. + image % 3.) * x + channel).sin() * (0.07 * y * (1. + channel)).cos();
                pixels.push(wave + (0.05 * (x + y) * (1. + image % 5.) + image).sin() - 0.3 * channel);
            }
        }
    }
    Tensor::from_vec(pixels, (images, 3, size.height, size.width), &Device::Cpu).unwrap()
}

#[test]
fn every_output_of_every_family_agrees_with_candle_for_any_batch_and_shape() {
    for size in [ImageSize::from(32), OBLONG] {
        for shape in families(size) {
            let subject = Subject::new(&shape);
            let outputs = subject.outputs();
            let card = subject.card(&[size], Precision::F32);
            let mut session = open(&subject.export(&outputs, &card).unwrap());
            for images in [1, 2, 17] {
                subject.compare(&mut session, &outputs, &noise(images, size));
            }
        }
    }
}

#[test]
fn every_output_agrees_with_candle_for_every_option_of_a_vision_transformer() {
    for shape in vit_options(vit(OBLONG)) {
        let subject = Subject::new(&shape);
        let card = subject.card(&[OBLONG], Precision::F32);
        let pixels = noise(2, OBLONG);
        let all = subject.outputs();
        subject.compare(&mut open(&subject.export(&all, &card).unwrap()), &all, &pixels);
        for output in all {
            let mut session = open(&subject.export(&[output], &card).unwrap());
            subject.compare(&mut session, &[output], &pixels);
        }
    }
}

/// Not Candle's word alone: what timm computed with the same weights.
#[test]
fn attention_and_patch_tokens_of_timm_come_out_of_the_exported_file() {
    let path = fixture::repository().join("tests/golden/vit.safetensors");
    let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let shape = EncoderShape::Vit(vit(32.into()));
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(&shape, parameters.root()).unwrap();
    let weight = |(name, tensor): (&String, &Tensor)| {
        Some((name.strip_prefix("weights.")?.to_string(), tensor.clone()))
    };
    parameters.load(&golden.iter().filter_map(weight).collect()).unwrap();
    let outputs = [Output::PatchTokens, Output::ClsAttention];
    let card = card(32.into());
    let export = Export {
        encoder: &encoder,
        parameters: &parameters,
        projector: None,
        outputs: &outputs,
        card: &card,
    };
    let found = run(&mut open(&export.encode().unwrap()), &golden["input"]).unwrap();
    // The class token comes first.
    let patches = golden["features"].narrow(1, 1, 16).unwrap();
    let attention = golden["last_attention"].narrow(2, 0, 1).unwrap().narrow(3, 1, 16).unwrap();
    assert_eq!((&*found[0].0, &*found[1].0), (&[2, 4, 4, 48][..], &[2, 3, 4, 4][..]));
    for ((_, found), expected) in found.iter().zip([patches, attention]) {
        let difference = largest_difference(found, &values(&expected));
        assert!(difference < TOLERANCE, "{difference:e}");
    }
}

#[test]
fn one_file_serves_several_sizes_and_refuses_others() {
    for shape in [families(OBLONG), vit_options(vit(OBLONG))].concat() {
        let subject = Subject::new(&shape);
        let outputs = subject.outputs();
        let is_vit = matches!(shape, EncoderShape::Vit(_));
        // ConvNeXt needs 32 pixels.
        let last = ImageSize { height: 48, width: if is_vit { 24 } else { 32 } };
        let sizes = [OBLONG, 32.into(), last];
        let mut session = open(&subject.export(&outputs, &subject.card(&sizes, Precision::F32)).unwrap());
        for size in sizes {
            subject.compare(&mut session, &outputs, &noise(2, size));
        }
        // As many patches as a listed size, too few, one, and such as the patch leaves a rest of.
        let others = [[24, 48], [72, 40], [16, 16], [8, 8], [48, 32], [41, 72], [88, 72]];
        for [height, width] in others.into_iter().filter(|_| is_vit) {
            let pixels = noise(1, ImageSize { height, width });
            assert!(run(&mut session, &pixels).is_err(), "{height}x{width} was taken: {shape:?}");
        }
    }
}

/// Encoders that are as wide as the smallest anybody would use.
fn wide_encoders(size: ImageSize) -> Vec<EncoderShape> {
    let vit = VitShape { dim: 96, heads: 3, mlp_hidden: 384, ..vit(size) };
    [convolutional(size, [32, 64, 96, 128]), vit_options(vit)].concat()
}

#[test]
fn smaller_numbers_change_the_direction_of_an_embedding_little() {
    let size = ImageSize { height: 64, width: 96 };
    for shape in wide_encoders(size) {
        let subject = Subject::new(&shape);
        let pixels = pictures(6, size);
        let expected = values(&subject.expected(Output::Embedding, &pixels));
        let whole = subject.export(&[Output::Embedding], &subject.card(&[size], Precision::F32)).unwrap();
        for (precision, least) in [(Precision::F16, F16_COSINE), (Precision::Int8, INT8_COSINE)] {
            let bytes = subject.export(&[Output::Embedding], &subject.card(&[size], precision)).unwrap();
            assert!(bytes.len() * 10 < whole.len() * 7, "{precision:?} is {} bytes large", bytes.len());
            let found = run(&mut open(&bytes), &pixels).unwrap().remove(0).1;
            let rows = found.chunks(shape.dim()).zip(expected.chunks(shape.dim()));
            let cosine = rows.map(|(found, expected)| cosine(found, expected)).fold(1., f32::min);
            assert!(cosine > least, "{precision:?} of {shape:?}: {cosine}");
        }
    }
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    let dot =
        |left: &[f32], right: &[f32]| left.iter().zip(right).map(|(left, right)| left * right).sum::<f32>();
    dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
}

#[test]
fn outputs_that_an_encoder_lacks_are_refused() {
    let message = |shape: &EncoderShape, outputs: &[Output]| {
        let subject = Subject::new(shape);
        let card = subject.card(&[shape.image_size()], Precision::F32);
        let export = Export {
            encoder: &subject.encoder,
            parameters: &subject.parameters,
            projector: None,
            outputs,
            card: &card,
        };
        export.encode().unwrap_err().to_string()
    };
    let vits = vit_options(vit(32.into()));
    let (plain, average, patches, shallow) = (&vits[0], &vits[3], &vits[5], &vits[6]);
    let of_class = "the encoder can give embedding, patch_tokens, cls_attention, not: ";
    assert_eq!(message(shallow, &[Output::ClsLast2]), format!("{of_class}cls_last2"));
    assert_eq!(message(average, &[Output::ClsLast2]), format!("{of_class}cls_last2"));
    let of_patches = "the encoder can give embedding, patch_tokens, not: ";
    assert_eq!(message(patches, &[Output::ClsAttention]), format!("{of_patches}cls_attention"));
    let resnet = &families(32.into())[0];
    assert_eq!(message(resnet, &[Output::ClsAttention]), format!("{of_patches}cls_attention"));
    assert!(message(plain, &[Output::Projection]).ends_with("not: projection"));
    assert_eq!(message(plain, &[]), "no output was asked for");
    let twice = [Output::Embedding, Output::PatchTokens, Output::Embedding];
    assert_eq!(message(plain, &twice), "an output was asked for twice: embedding");
}

#[test]
fn sizes_that_an_encoder_cannot_take_are_refused() {
    let subject = Subject::new(&EncoderShape::Vit(vit(32.into())));
    let message = |sizes: &[ImageSize]| {
        let card = subject.card(sizes, Precision::F32);
        subject.export(&[Output::Embedding], &card).unwrap_err().to_string()
    };
    assert_eq!(message(&[]), "the card's sizes must be at least one size, got: none");
    let square = ImageSize::from(32);
    assert_eq!(message(&[square, square]), "the card's sizes must be different sizes, got: 32x32 twice");
    let odd = ImageSize { height: 36, width: 32 };
    assert_eq!(message(&[square, odd]), "`card.sizes` must be a multiple of the patch size 8, got: 36x32");
}

/// Written for `tests/onnx_check.sh`, with what every file that is given away has.
#[test]
#[ignore = "writes files into the folder LEJEPA_WRITE_ENCODERS"]
fn encoders_of_every_kind_are_written_for_the_check_in_python() {
    let folder = PathBuf::from(std::env::var_os("LEJEPA_WRITE_ENCODERS").unwrap());
    let (size, other) = (ImageSize { height: 64, width: 96 }, ImageSize { height: 32, width: 48 });
    for (index, shape) in wide_encoders(size).iter().enumerate() {
        let subject = Subject::new(shape);
        for precision in Precision::ALL {
            for sizes in [&[size][..], &[size, other]] {
                let card = subject.card(sizes, precision);
                let bytes = subject.export(&subject.outputs(), &card).unwrap();
                let picture = SelfTest::picture(3).unwrap();
                let pixels = preprocessed(&card.preprocess, &picture);
                let embedding = run(&mut open(&bytes), &pixels).unwrap().remove(0).1;
                let test = SelfTest::new(&picture, embedding, precision);
                let name = format!("{index}-{}-{}.onnx", precision.name(), sizes.len());
                std::fs::write(folder.join(name), with_self_test(bytes, &test).unwrap()).unwrap();
            }
        }
    }
}

fn preprocessed(preprocess: &Preprocess, picture: &Image) -> Tensor {
    let shape = (1, 3, preprocess.crop_height, preprocess.crop_width);
    Tensor::from_vec(preprocess.apply(picture).unwrap(), shape, &Device::Cpu).unwrap()
}
