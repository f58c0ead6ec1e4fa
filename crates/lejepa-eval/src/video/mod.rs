//! Masks of the objects in clips, made with an encoder, and how good they are.
//!
//! ```text
//! Clip -> FrameSource -> frames -> Encoder -> attention    -> AttentionMasks -> LabelMap -> files, film
//!                                          -> patch tokens -> Propagation    ->          -> J, F
//! ```
//!
//! Everything goes frame by frame: memory does not grow with the length of a clip.

mod animation;
mod attention_masks;
mod centred_box;
mod clip;
mod clip_run;
mod clip_set;
mod contour;
mod ffmpeg;
mod film;
mod frame;
mod frame_folder;
mod frame_source;
mod ground_truth;
mod jaccard;
mod label_map;
mod markdown;
mod mask_file;
mod mask_maker;
mod palette;
mod propagation;
mod score;
mod scoreboard;
mod segmentation;
mod segmentation_report;
mod stills;

pub use attention_masks::{AttentionMasks, AttentionSettings, HeadMasks};
pub use clip::Clip;
pub use clip_set::{ClipChoice, ClipSet};
pub use contour::Contour;
pub use ffmpeg::Ffmpeg;
pub use frame::Frame;
pub use frame_source::FrameSource;
pub use jaccard::jaccard;
pub use label_map::LabelMap;
pub use propagation::{Propagation, PropagationSettings};
pub use score::Score;
pub use segmentation::{Segmentation, SegmentationCandidate, SegmentationEvent, SegmentationMethod};
pub use segmentation_report::{ClipReport, ClipRow, ObjectScore, SegmentationReport, SetRow};
pub use stills::Still;
