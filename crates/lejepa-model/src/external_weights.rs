//! External weights: state dicts with timm's names, or DINOv2's, made to fit an encoder.

use std::collections::{BTreeSet, HashMap};

use candle_core::Tensor;

use crate::{EncoderShape, Error, ImageSize, Parameters, Result};

/// A state dict that fits an encoder, and what was done to it.
#[derive(Debug)]
pub struct ExternalWeights {
    /// Every tensor of the encoder, and no other.
    pub tensors: HashMap<String, Tensor>,
    /// Tensors that an encoder has no use for, such as a classifier's.
    pub dropped: BTreeSet<String>,
    /// What the position embedding was taken for; nothing for encoders without one.
    pub positions: Option<FoundPositions>,
}

/// The position embedding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundPositions {
    /// Rows and columns of patches.
    pub grid: ImageSize,
    /// Whether it was resampled to the encoder's own grid.
    pub resampled: bool,
}

/// What is known about the grid of a file's positions, besides that of the encoder that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownGrid {
    /// Rows and columns as somebody says they are.
    pub given: Option<ImageSize>,
    /// Those of the architecture's own image size.
    pub native: Option<ImageSize>,
}

/// What wrappers put before every name.
const PREFIXES: [&str; 4] = ["model.", "backbone.", "encoder.", "module."];

impl ExternalWeights {
    /// Names the tensors as the encoder does, resamples positions, leaves out classifiers. One error
    /// names everything that does not fit. `grid` is what is known about the positions of the file, which
    /// are a list there.
    pub fn fit(
        tensors: HashMap<String, Tensor>,
        shape: &EncoderShape,
        parameters: &Parameters,
        grid: KnownGrid,
    ) -> Result<Self> {
        let mut tensors = strip_prefixes(tensors);
        let expected: HashMap<&str, &Tensor> = parameters.tensors().collect();
        let is_dropped = |name: &str| !expected.contains_key(name) && is_superfluous(name);
        let dropped: BTreeSet<String> = tensors.keys().filter(|name| is_dropped(name)).cloned().collect();
        tensors.retain(|name, _| !dropped.contains(name));

        let positions = shape.adapt(&mut tensors, grid)?;
        check(&tensors, &expected)?;
        Ok(Self { tensors, dropped, positions })
    }
}

/// Removes what all names begin with.
fn strip_prefixes(mut tensors: HashMap<String, Tensor>) -> HashMap<String, Tensor> {
    while let Some(prefix) = PREFIXES
        .iter()
        .find(|&&prefix| !tensors.is_empty() && tensors.keys().all(|name| name.starts_with(prefix)))
    {
        tensors =
            tensors.into_iter().map(|(name, tensor)| (name[prefix.len()..].to_string(), tensor)).collect();
    }
    tensors
}

/// Classifiers, PyTorch's count of batches and the token of DINOv2's own masking.
fn is_superfluous(name: &str) -> bool {
    name.starts_with("head.")
        || name.starts_with("fc.")
        || name.ends_with(".num_batches_tracked")
        || name == "mask_token"
}

fn check(tensors: &HashMap<String, Tensor>, expected: &HashMap<&str, &Tensor>) -> Result<()> {
    let mut problems = Vec::new();
    let mut collect = |problem: &str, mut names: Vec<String>| {
        if !names.is_empty() {
            names.sort();
            problems.push(format!("{problem}: {}", names.join(", ")));
        }
    };
    let absent = |name: &&&str| !tensors.contains_key(**name);
    collect("missing", expected.keys().filter(absent).map(|name| (*name).to_string()).collect());
    let unknown = |name: &&String| !expected.contains_key(name.as_str());
    collect("unexpected", tensors.keys().filter(unknown).cloned().collect());
    let pairs =
        || tensors.iter().filter_map(|(name, tensor)| Some((name, tensor, expected.get(name.as_str())?)));
    let misshapen = pairs().filter(|(_, tensor, expected)| tensor.dims() != expected.dims());
    let misshapen = misshapen.map(|(name, tensor, expected)| {
        format!("{name} ({:?} instead of {:?})", tensor.dims(), expected.dims())
    });
    collect("wrong shape", misshapen.collect());
    let whole = pairs().filter(|(_, tensor, _)| !tensor.dtype().is_float());
    collect("not of floats", whole.map(|(name, ..)| name.clone()).collect());
    if problems.is_empty() { Ok(()) } else { Err(Error::ExternalWeights { problems: problems.join("; ") }) }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::{Encoder, VitShape};

    const POSITIONS: &str = "pos_embed";
    const CLASS: &str = "cls_token";

    fn encoder(shape: &VitShape) -> (Encoder, Parameters) {
        let mut parameters = Parameters::new(3, DType::F32, &Device::Cpu);
        let encoder = Encoder::with_shape(&EncoderShape::Vit(shape.clone()), parameters.root()).unwrap();
        (encoder, parameters)
    }

    fn tiny() -> VitShape {
        VitShape {
            image_size: 8.into(),
            patch_size: 4,
            dim: 8,
            depth: 1,
            heads: 2,
            mlp_hidden: 32,
            ..Default::default()
        }
    }

    fn state_dict(parameters: &Parameters) -> HashMap<String, Tensor> {
        parameters.tensors().map(|(name, tensor)| (name.to_string(), tensor.copy().unwrap())).collect()
    }

    fn fit(tensors: HashMap<String, Tensor>, shape: &VitShape) -> Result<ExternalWeights> {
        fit_grid(tensors, shape, KnownGrid::default())
    }

    fn fit_grid(
        tensors: HashMap<String, Tensor>,
        shape: &VitShape,
        grid: KnownGrid,
    ) -> Result<ExternalWeights> {
        let (encoder, parameters) = encoder(shape);
        let weights = ExternalWeights::fit(tensors, &encoder.shape(), &parameters, grid)?;
        parameters.load(&weights.tensors)?;
        Ok(weights)
    }

    fn zeros(shape: &[usize]) -> Tensor {
        Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap()
    }

    #[test]
    fn wrappers_and_classifiers_are_removed() {
        let mut tensors = state_dict(&encoder(&tiny()).1);
        tensors.insert("head.weight".into(), zeros(&[10, 8]));
        tensors.insert("fc.bias".into(), zeros(&[10]));
        tensors.insert("bn.num_batches_tracked".into(), Tensor::new(3i64, &Device::Cpu).unwrap());
        let wrapped =
            tensors.into_iter().map(|(name, tensor)| (format!("module.backbone.{name}"), tensor)).collect();
        let weights = fit(wrapped, &tiny()).unwrap();
        let dropped: Vec<&str> = weights.dropped.iter().map(String::as_str).collect();
        assert_eq!(dropped, ["bn.num_batches_tracked", "fc.bias", "head.weight"]);
        assert_eq!(weights.positions, Some(FoundPositions { grid: 2.into(), resampled: false }));
    }

    #[test]
    fn positions_are_resampled_to_the_grid() {
        let tensors = state_dict(&encoder(&tiny()).1);
        let wide = ImageSize { height: 12, width: 20 };
        let shape = VitShape { image_size: wide, ..tiny() };
        let message = fit(tensors.clone(), &shape).unwrap_err().to_string();
        let expected = "the position embedding pos_embed of the shape [1, 4, 8] is not of the grid 3x5 that the \
                        image size asks for: give the grid of the weights, such as --grid 2x2";
        assert_eq!(message, expected);
        for grid in [
            KnownGrid { given: Some(2.into()), native: None },
            KnownGrid { given: None, native: Some(2.into()) },
        ] {
            let weights = fit_grid(tensors.clone(), &shape, grid).unwrap();
            assert_eq!(weights.positions, Some(FoundPositions { grid: 2.into(), resampled: true }));
            assert_eq!(weights.tensors[POSITIONS].dims(), [1, 1 + 15, 8]);
        }
    }

    #[test]
    fn dinov2s_class_position_moves_into_the_token() {
        let shape = VitShape { registers: 2, embed_prefix: false, ..tiny() };
        let mut tensors = state_dict(&encoder(&shape).1);
        let registers = tensors.remove("reg_token").unwrap();
        tensors.insert("register_tokens".into(), registers);
        tensors.insert("mask_token".into(), zeros(&[1, 8]));
        let of_class = Tensor::full(2f32, (1, 1, 8), &Device::Cpu).unwrap();
        let positions = Tensor::cat(&[&of_class, &tensors[POSITIONS]], 1).unwrap();
        tensors.insert(POSITIONS.into(), positions.to_dtype(DType::BF16).unwrap());
        let class: f32 = tensors[CLASS].get(0).unwrap().get(0).unwrap().get(0).unwrap().to_scalar().unwrap();
        let weights = fit(tensors, &shape).unwrap();
        let moved = weights.tensors[CLASS].to_dtype(DType::F32).unwrap().flatten_all().unwrap();
        assert!((moved.get(0).unwrap().to_scalar::<f32>().unwrap() - class - 2.).abs() < 0.01);
        assert_eq!(weights.tensors[POSITIONS].dims(), [1, 4, 8]);
    }

    #[test]
    fn everything_that_does_not_fit_is_named_at_once() {
        let mut tensors = state_dict(&encoder(&tiny()).1);
        tensors.remove("norm.bias");
        tensors.remove("norm.weight");
        tensors.insert("neck.weight".into(), zeros(&[2]));
        tensors.insert(CLASS.into(), zeros(&[1, 8]));
        tensors.insert("patch_embed.proj.bias".into(), Tensor::new(&[0u32; 8], &Device::Cpu).unwrap());
        let message = fit(tensors, &tiny()).unwrap_err().to_string();
        let expected = "the weights do not fit the encoder (missing: norm.bias, norm.weight; unexpected: \
                        neck.weight; wrong shape: cls_token ([1, 8] instead of [1, 1, 8]); not of floats: \
                        patch_embed.proj.bias)";
        assert_eq!(message, expected);
        assert!(fit(HashMap::new(), &tiny()).is_err());
    }
}
