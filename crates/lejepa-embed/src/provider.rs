//! Where an encoder computes.

use std::fmt;

use ort::ep::{self, ExecutionProviderDispatch};

/// The device that runs an encoder. One that was asked for and is not there is an error: nothing falls
/// back to the processor silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provider {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA graphics card; needs ONNX Runtime's build for CUDA.
    Cuda {
        /// Its number.
        device: u32,
    },
}

impl Provider {
    pub(crate) fn dispatch(self) -> Option<ExecutionProviderDispatch> {
        match self {
            Self::Cpu => None,
            Self::Cuda { device } => {
                // More cards than an `i32` counts are not there either.
                let device = i32::try_from(device).unwrap_or(i32::MAX);
                Some(ep::CUDA::default().with_device_id(device).build().error_on_failure())
            }
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda { device } => write!(formatter, "cuda:{device}"),
        }
    }
}
