//! Finds and follows the objects of clips with an encoder, and says how good the masks are.
//!
//! ```text
//! Clip -> FrameSource -> frames -> Encoder -> attention    -> AttentionMasks -> LabelMap -> files, film
//!                                          -> patch tokens -> Propagation    ->          -> J, F
//! ```
//!
//! Everything goes frame by frame: memory does not grow with the length of a clip.
//!
//! ```
//! use lejepa_video::jaccard;
//! use ndarray::array;
//!
//! let (found, truth) = (array![[true, true, false]], array![[false, true, false]]);
//! assert_eq!(jaccard(found.view(), truth.view()), 0.5);
//! ```

mod animation;
mod attention_masks;
mod centred_box;
mod clip;
mod clip_folder;
mod clip_run;
mod clip_set;
mod contour;
mod error;
mod ffmpeg;
mod film;
mod frame;
mod frame_folder;
mod frame_source;
mod ground_truth;
mod jaccard;
mod label_map;
mod mask_file;
mod mask_maker;
mod palette;
mod propagation;
mod report;
mod score;
mod scoreboard;
mod segmentation;
mod stills;

pub use attention_masks::{AttentionMasks, AttentionSettings, HeadMasks};
pub use clip::Clip;
pub use clip_folder::ClipFolder;
pub use clip_set::{ClipChoice, ClipSet};
pub use contour::Contour;
pub use error::{Error, Result};
pub use ffmpeg::Ffmpeg;
pub use frame::Frame;
pub use frame_source::FrameSource;
pub use jaccard::jaccard;
pub use label_map::LabelMap;
pub use propagation::{Propagation, PropagationSettings};
pub use report::{ClipReport, ClipRow, ObjectScore, SegmentationReport, SetRow};
pub use score::Score;
pub use segmentation::{Segmentation, SegmentationCandidate, SegmentationEvent, SegmentationMethod};
pub use stills::Still;
