//! Where a run computes: `cpu`, `cuda` or `cuda:1`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::{Error, Result};

/// A device by name. It is not part of a recipe: the same run may go on elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// All cores of this machine.
    #[default]
    Cpu,
    /// The graphics card with this number.
    Cuda(usize),
}

impl DeviceChoice {
    /// Gets hold of the device. One that is not there is an error, never another one.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(_) if !cfg!(feature = "cuda") => Err(Error::Device {
                device: self,
                problem: "this build is for the CPU: build with --features cuda".into(),
            }),
            Self::Cuda(number) => Device::new_cuda(number)
                .map_err(|error| Error::Device { device: self, problem: error.to_string() }),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(typed: &str) -> std::result::Result<Self, String> {
        match typed.split_once(':') {
            None if typed == "cpu" => Ok(Self::Cpu),
            None if typed == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", number)) => {
                number.parse().map(Self::Cuda).map_err(|_| format!("not a number: {number}"))
            }
            _ => Err("expected cpu, cuda or cuda:N".into()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => write!(formatter, "cpu"),
            Self::Cuda(number) => write!(formatter, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for name in ["cpu", "cuda:0", "cuda:3"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for wrong in ["gpu", "cpu:0", "cuda:first", ""] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_device_that_is_not_there_is_an_error() {
        let message = DeviceChoice::Cuda(1).open().unwrap_err().to_string();
        assert!(message.contains("cuda:1") && message.contains("--features cuda"), "{message}");
    }
}
