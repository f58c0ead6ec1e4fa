//! The tensors of a model by name: what the optimiser moves and what it does not.

use std::collections::{BTreeMap, HashMap};

use candle_core::{DType, Device, Shape, Tensor, Var};

use crate::{Error, Initialisation, Result};

/// All tensors of a model under timm's names.
///
/// Trainable parameters and buffers (running statistics) are kept apart: an optimiser sees only
/// the former, a checkpoint holds both.
#[derive(Debug)]
pub struct Parameters {
    seed: u64,
    dtype: DType,
    device: Device,
    trainable: BTreeMap<String, Var>,
    buffers: BTreeMap<String, Var>,
    /// Models get what is there, without gradients, instead of tensors of their own.
    is_frozen: bool,
}

impl Parameters {
    /// An empty set whose first values `seed` decides.
    pub fn new(seed: u64, dtype: DType, device: &Device) -> Self {
        let (trainable, buffers) = (BTreeMap::new(), BTreeMap::new());
        Self { seed, dtype, device: device.clone(), trainable, buffers, is_frozen: false }
    }

    /// The same tensors for a second model of the same kind, whose passes keep nothing for a backward pass. It sees
    /// whatever becomes of the tensors.
    pub fn frozen(&self) -> Self {
        Self {
            seed: self.seed,
            dtype: self.dtype,
            device: self.device.clone(),
            trainable: self.trainable.clone(),
            buffers: self.buffers.clone(),
            is_frozen: true,
        }
    }

    /// Where a model makes its parameters.
    pub fn root(&mut self) -> Scope<'_> {
        Scope { parameters: self, prefix: String::new() }
    }

    /// What an optimiser moves, by name.
    pub fn trainable(&self) -> &BTreeMap<String, Var> {
        &self.trainable
    }

    /// What is part of the state but not trained, by name.
    pub fn buffers(&self) -> &BTreeMap<String, Var> {
        &self.buffers
    }

    /// How many numbers an optimiser moves.
    pub fn trainable_count(&self) -> usize {
        self.trainable.values().map(|variable| variable.elem_count()).sum()
    }

    /// Every tensor of the model, buffers included, by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.trainable
            .iter()
            .chain(&self.buffers)
            .map(|(name, variable)| (name.as_str(), variable.as_tensor()))
    }

    /// Replaces every tensor of the model. Names and shapes must match exactly; nothing changes
    /// when they do not.
    pub fn load(&self, tensors: &HashMap<String, Tensor>) -> Result<()> {
        let variable_of = |name: &str| self.trainable.get(name).or_else(|| self.buffers.get(name));
        for name in tensors.keys() {
            if variable_of(name).is_none() {
                return Err(Error::UnknownTensor { name: name.clone() });
            }
        }
        for (name, current) in self.tensors() {
            let tensor = tensors.get(name).ok_or_else(|| Error::MissingTensor { name: name.into() })?;
            if tensor.dims() != current.dims() {
                return Err(Error::TensorShape {
                    name: name.into(),
                    expected: current.dims().to_vec(),
                    got: tensor.dims().to_vec(),
                });
            }
        }
        for (name, tensor) in tensors {
            if let Some(variable) = variable_of(name) {
                variable.set(&tensor.to_dtype(self.dtype)?.to_device(&self.device)?)?;
            }
        }
        Ok(())
    }
}

/// A place in the tree of parameter names, such as `blocks.0.attn`.
#[derive(Debug)]
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    prefix: String,
}

impl Scope<'_> {
    /// The scope below this one.
    pub fn enter(&mut self, name: impl std::fmt::Display) -> Scope<'_> {
        let prefix = self.path(&name.to_string());
        Scope { parameters: self.parameters, prefix }
    }

    /// Makes a parameter that the optimiser moves.
    pub fn parameter(
        &mut self,
        name: &str,
        shape: impl Into<Shape>,
        first: Initialisation,
    ) -> Result<Tensor> {
        if self.parameters.is_frozen {
            return Ok(self.known(&self.parameters.trainable, name, &shape.into())?.as_detached_tensor());
        }
        let (path, variable) = self.draw(name, shape.into(), first)?;
        let tensor = variable.as_tensor().clone();
        self.parameters.trainable.insert(path, variable);
        Ok(tensor)
    }

    /// Makes a tensor that is part of the model's state but not trained.
    pub fn buffer(&mut self, name: &str, shape: impl Into<Shape>, first: Initialisation) -> Result<Var> {
        if self.parameters.is_frozen {
            return self.known(&self.parameters.buffers, name, &shape.into()).cloned();
        }
        let (path, variable) = self.draw(name, shape.into(), first)?;
        self.parameters.buffers.insert(path, variable.clone());
        Ok(variable)
    }

    /// What is there under this name.
    fn known<'v>(&self, all: &'v BTreeMap<String, Var>, name: &str, shape: &Shape) -> Result<&'v Var> {
        let name = self.path(name);
        match all.get(&name) {
            None => Err(Error::MissingTensor { name }),
            Some(variable) if variable.shape() != shape => {
                let (expected, got) = (shape.dims().to_vec(), variable.dims().to_vec());
                Err(Error::TensorShape { name, expected, got })
            }
            Some(variable) => Ok(variable),
        }
    }

    fn draw(&self, name: &str, shape: Shape, first: Initialisation) -> Result<(String, Var)> {
        let path = self.path(name);
        if self.parameters.trainable.contains_key(&path) || self.parameters.buffers.contains_key(&path) {
            return Err(Error::DuplicateParameter { name: path });
        }
        let values = first.draw(shape.elem_count(), self.parameters.seed, &path);
        let tensor =
            Tensor::from_vec(values, shape, &self.parameters.device)?.to_dtype(self.parameters.dtype)?;
        Ok((path, Var::from_tensor(&tensor)?))
    }

    fn path(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_string() } else { format!("{}.{name}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_parameters(seed: u64) -> Parameters {
        let mut parameters = Parameters::new(seed, DType::F32, &Device::Cpu);
        parameters.root().enter("norm").parameter("weight", 3, Initialisation::Normal(1.)).unwrap();
        parameters.root().enter("norm").buffer("running_mean", 3, Initialisation::Zeros).unwrap();
        parameters
    }

    fn values(parameters: &Parameters) -> HashMap<String, Tensor> {
        parameters.tensors().map(|(name, tensor)| (name.to_string(), tensor.clone())).collect()
    }

    #[test]
    fn the_seed_decides_the_first_values() {
        let draw = |seed| two_parameters(seed).trainable["norm.weight"].to_vec1::<f32>().unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn buffers_are_not_trained_but_saved() {
        let parameters = two_parameters(0);
        assert_eq!(parameters.trainable().len(), 1);
        assert_eq!(parameters.tensors().count(), 2);
    }

    #[test]
    fn weights_that_do_not_fit_are_named() {
        let parameters = two_parameters(0);
        let mut weights = values(&two_parameters(1));
        let mean = weights.remove("norm.running_mean").unwrap();
        let message = parameters.load(&weights).unwrap_err().to_string();
        assert!(message.contains("norm.running_mean"), "{message}");

        weights.insert("norm.running_mean".into(), mean.narrow(0, 0, 2).unwrap());
        let message = parameters.load(&weights).unwrap_err().to_string();
        assert!(message.contains("[3]") && message.contains("[2]"), "{message}");

        weights.insert("norm.running_mean".into(), mean.clone());
        weights.insert("head.weight".into(), mean);
        let message = parameters.load(&weights).unwrap_err().to_string();
        assert!(message.contains("head.weight"), "{message}");
    }

    #[test]
    fn a_frozen_model_sees_what_becomes_of_the_tensors_and_tracks_nothing() {
        let parameters = two_parameters(0);
        let mut frozen = parameters.frozen();
        let weight = frozen.root().enter("norm").parameter("weight", 3, Initialisation::Zeros).unwrap();
        let mean = frozen.root().enter("norm").buffer("running_mean", 3, Initialisation::Ones).unwrap();
        parameters.load(&values(&two_parameters(5))).unwrap();
        let expected = parameters.trainable["norm.weight"].to_vec1::<f32>().unwrap();
        assert_eq!(weight.to_vec1::<f32>().unwrap(), expected);
        assert!(!(&weight * 2.).unwrap().track_op());
        mean.set(&weight).unwrap();
        assert_eq!(parameters.buffers()["norm.running_mean"].to_vec1::<f32>().unwrap(), expected);
        assert!(frozen.root().enter("norm").parameter("bias", 3, Initialisation::Zeros).is_err());
        assert!(frozen.root().enter("norm").parameter("weight", 4, Initialisation::Zeros).is_err());
    }

    #[test]
    fn a_name_is_given_once() {
        let mut parameters = two_parameters(0);
        assert!(parameters.root().enter("norm").parameter("weight", 3, Initialisation::Zeros).is_err());
    }
}
