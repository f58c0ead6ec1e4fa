//! The one place where an error becomes a message and an exit code: 2 for what was typed wrongly,
//! 1 for everything that went wrong later.

use std::process::ExitCode;

use lejepa_data::{Error as DataError, Output, printable_name};
use lejepa_embed::Error as EmbedError;
use lejepa_eval::Error as EvalError;
use lejepa_loss::Error as LossError;
use lejepa_model::Error as ModelError;
use lejepa_picture::Error as PictureError;
use lejepa_train::Error as TrainError;
use lejepa_video::Error as VideoError;

use crate::command_line::quoted;
use crate::output::say;

const RUNTIME: u8 = 1;
const USAGE: u8 = 2;

/// Prints an error with its causes and a hint, and says how to exit.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say!("error: {}", sentence(error));
    if let Some(hint) = hint(error).map(str::to_string).or_else(|| retry(error)) {
        say!("hint: {hint}");
    }
    ExitCode::from(if is_usage(error) { USAGE } else { RUNTIME })
}

/// The chain of causes as one sentence, without saying anything twice.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    sentence_of(error.as_ref())
}

/// The same for an error of a library.
pub(crate) fn sentence_of(error: &(dyn std::error::Error + 'static)) -> String {
    let (mut sentence, mut names_others) = (String::new(), false);
    for cause in std::iter::successors(Some(error), |error| error.source()) {
        names_others |= may_name_others(cause);
        let cause = cause.to_string();
        let cause = if names_others { printable_name(cause.trim_end()) } else { cause.trim_end().into() };
        if sentence.contains(&*cause) {
            continue;
        }
        if !sentence.is_empty() {
            sentence.push_str(": ");
        }
        sentence.push_str(&cause);
    }
    sentence
}

/// Whether an error may quote names that others chose, of files or of parts of them: such a name is no new line.
fn may_name_others(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_evaluation = error.downcast_ref();
    error.is::<EmbedError>()
        || error.is::<DataError>()
        || matches!(of_evaluation, Some(EvalError::Encoder(_) | EvalError::Data(_)))
}

fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(is_data_usage)
            || cause.downcast_ref().is_some_and(is_train_usage)
            || cause.downcast_ref().is_some_and(is_embed_usage)
            || cause.downcast_ref().is_some_and(is_loss_usage)
            || matches!(cause.downcast_ref(), Some(ModelError::Setting { .. }))
            || cause.downcast_ref().is_some_and(is_picture_usage)
            || cause.downcast_ref().is_some_and(is_video_usage)
            || cause.downcast_ref().is_some_and(|error| {
                matches!(
                    error,
                    EvalError::UnknownSuite { .. }
                        | EvalError::Suite { .. }
                        | EvalError::FeatureFormat { .. }
                ) || matches!(error, EvalError::Data(error) if is_data_usage(error))
                    || matches!(error, EvalError::Encoder(error) if is_embed_usage(error))
                    || matches!(error, EvalError::Picture(error) if is_picture_usage(error))
                    || matches!(error, EvalError::Video(error) if is_video_usage(error))
            })
    })
}

fn is_data_usage(error: &DataError) -> bool {
    matches!(error, DataError::NotFound { .. } | DataError::Setting { .. })
}

fn is_video_usage(error: &VideoError) -> bool {
    match error {
        VideoError::Smoothing { .. }
        | VideoError::Head { .. }
        | VideoError::MissingClips { .. }
        | VideoError::EmptyClipList { .. }
        | VideoError::NotASet { .. } => true,
        VideoError::Data(error) => is_data_usage(error),
        VideoError::Picture(error) => is_picture_usage(error),
        VideoError::Encoder(error) => is_embed_usage(error),
        _ => false,
    }
}

fn is_picture_usage(error: &PictureError) -> bool {
    match error {
        PictureError::AttentionMass { .. } => true,
        PictureError::Data(error) => is_data_usage(error),
        _ => false,
    }
}

fn is_embed_usage(error: &EmbedError) -> bool {
    matches!(
        error,
        EmbedError::NotFound { .. }
            | EmbedError::NotAFile { .. }
            | EmbedError::Setting { .. }
            | EmbedError::Size { .. }
            | EmbedError::MissingOutput { .. }
    )
}

fn is_loss_usage(error: &LossError) -> bool {
    matches!(error, LossError::Setting { .. })
}

fn is_train_usage(error: &TrainError) -> bool {
    match error {
        TrainError::Config { .. }
        | TrainError::Setting { .. }
        | TrainError::OtherRun { .. }
        | TrainError::Fixed { .. }
        | TrainError::Edited { .. }
        | TrainError::Begun { .. }
        | TrainError::Foreign { .. } => true,
        TrainError::Data(error) => is_data_usage(error),
        TrainError::Model(error) => matches!(error, ModelError::Setting { .. }),
        TrainError::Loss(error) => is_loss_usage(error),
        _ => false,
    }
}

/// A command that may do better, and why.
fn retry(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(TrainError::Diverged { retry, .. }) => Some(format!(
            "go back and go on at a lower rate: lejepa train --out {} --from-step {} --continue-with optimizer.lr={:e}",
            quoted(&retry.run.display().to_string()),
            retry.from_step,
            retry.lr
        )),
        _ => None,
    })
}

fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        if let Some(EvalError::OtherExtraction { .. }) = cause.downcast_ref() {
            return Some("remove that folder to start anew, or choose another --out");
        }
        if let Some(EvalError::PartsWithoutKey { .. }) = cause.downcast_ref() {
            return Some("nothing says what computed them: remove that folder, or choose another --out");
        }
        if let Some(EvalError::OtherImages { .. }) = cause.downcast_ref() {
            return Some("leave that encoder out, or export it in f32 if it overflows in 16 bits");
        }
        if let Some(EvalError::Busy { .. }) = cause.downcast_ref() {
            return Some("wait for it or choose another --out; with --shard several processes share the work");
        }
        if let Some(EvalError::MissingParts { .. }) = cause.downcast_ref() {
            return Some("run the same --shard command for every share that is not finished, then --merge again");
        }
        let video = match cause.downcast_ref() {
            Some(EvalError::Video(error)) => Some(error),
            _ => cause.downcast_ref(),
        };
        if let Some(hint) = video.and_then(video_hint) {
            return Some(hint);
        }
        let data = match (cause.downcast_ref(), cause.downcast_ref(), cause.downcast_ref(), video) {
            (Some(TrainError::Data(error)), _, _, _)
            | (_, Some(EvalError::Data(error)), _, _)
            | (_, _, Some(PictureError::Data(error)), _)
            | (_, _, _, Some(VideoError::Data(error))) => Some(error),
            _ => cause.downcast_ref(),
        };
        match (cause.downcast_ref(), cause.downcast_ref(), data) {
            (Some(EmbedError::RuntimeNotFound), _, _) => Some(
                "`make setup` fetches it, --onnxruntime FILE names one, `lejepa doctor` shows what is found",
            ),
            (
                Some(
                    EmbedError::Limit { .. } | EmbedError::TimeLimit { .. } | EmbedError::MemoryLimit { .. },
                ),
                _,
                _,
            ) => Some("--trusted opens it without limits: only if you trust whoever made the file"),
            (Some(EmbedError::Altered { .. }), _, _) => Some("copy it or export it again"),
            (Some(EmbedError::Provider { .. }), _, _) => {
                Some("`lejepa doctor` lists what the ONNX Runtime that is found can compute on")
            }
            (Some(EmbedError::NotAnEncoder { .. }), _, _) => Some(
                "export the run again, or describe an encoder of another project with --preprocess FILE",
            ),
            (Some(EmbedError::MissingOutput { output: Output::ClsAttention, .. }), _, _) => Some(
                "attention is that of a class token: ConvNets have none, but `lejepa pca` draws their last map and \
                 `lejepa segment --method propagate` follows masks with it; of a vision transformer with one, \
                 `lejepa export --outputs embedding,cls_attention` writes it",
            ),
            (Some(EmbedError::MissingOutput { output: Output::PatchTokens, .. }), _, _) => {
                Some("`lejepa export --outputs embedding,patch_tokens` writes it")
            }
            (_, Some(TrainError::NoCheckpoint { .. }), _) => {
                Some("name the --out folder of a `lejepa train`")
            }
            (_, Some(TrainError::OtherRun { .. }), _) => Some(
                "`lejepa train --out RUN --continue-with KEY=VALUE` goes on with another value of a key, and with other \
                 data after --continue-with data.path=PATH",
            ),
            (_, Some(TrainError::Edited { .. }), _) => Some(
                "`lejepa train --out RUN --continue-with KEY=VALUE` goes on with what the file says; or take the edit back",
            ),
            (_, Some(TrainError::Fixed { .. }), _) => {
                Some("another run can start from its encoder: lejepa train --init RUN")
            }
            (_, Some(TrainError::OtherVersion { .. }), _) => Some(
                "go on with the version that wrote it; `lejepa export RUN --out weights.safetensors` takes its weights",
            ),
            (_, Some(TrainError::Checkpoint { .. }), _) => {
                Some("the same `lejepa train` puts it aside and goes on from the checkpoint before it, if there is one")
            }
            (_, Some(TrainError::OnlyDamaged { .. }), _) => {
                Some("remove that file, and the same command begins anew, from the first step")
            }
            (_, _, Some(DataError::Busy { .. })) => Some("wait for it, or choose another --out"),
            (_, _, Some(DataError::Setting { field: "data.path", .. })) => Some("lejepa train --data PATH"),
            (_, _, Some(DataError::Setting { field: "tensor", got, .. })) if got == "nothing" => {
                Some("lejepa gauge FEATURES --tensor NAME")
            }
            (_, _, Some(DataError::TooManyBroken { .. })) => Some(
                "`lejepa data verify PATH` lists all of them, --set data.broken_limit=SHARE tolerates more",
            ),
            (_, _, Some(DataError::Sample { .. })) => Some("`lejepa data verify PATH` lists all such images"),
            (_, _, Some(DataError::NoSplit { .. })) => {
                Some("put the class folders of each split into train/ and test/ (or val/)")
            }
            _ => None,
        }
    })
}

fn video_hint(error: &VideoError) -> Option<&'static str> {
    match error {
        VideoError::NoFfmpeg { .. } => Some(
            "install it (`apt install ffmpeg`) or name it with --ffmpeg FILE; a folder of frames, a GIF and an \
             animated PNG or WebP are read without it",
        ),
        VideoError::NoFirstMask { .. } => {
            Some("name a mask with --first-mask FILE, or a folder with the first frame's with --masks FOLDER")
        }
        VideoError::MissingClips { .. } => Some("--clips all takes all that are there"),
        VideoError::NotASet { .. } => {
            Some("--clips chooses from a folder of folders of frames, such as DAVIS")
        }
        VideoError::MasksOfOthers { .. } | VideoError::NoObjects { .. } => {
            Some("the mask of frame 00012.jpg is 00012.png; frames of films are called 00000, 00001, ...")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_errors_are_no_lines_of_their_own() {
        let error = EmbedError::Damaged { name: "a\nverdict: healthy".into() };
        let said =
            "not a readable ONNX file (cut off, damaged, or of another kind): a\\u000averdict: healthy";
        assert_eq!(sentence_of(&error), said);
    }
}
