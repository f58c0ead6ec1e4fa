//! What tells one evaluation from another: the content of suite, sets, encoders and clips, whatever their paths.
//! `identity.json` beside the report holds it, so that a report is never replaced by that of something else.

use std::path::Path;

use lejepa_data::Output;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::features::FeatureSource;
use crate::run::{Candidate, Video};
use crate::sets::LabelledSet;
use crate::suite::Suite;
use crate::{Error, Result};

/// Everything that decides the numbers of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    suite: Value,
    sets: Vec<SetIdentity>,
    candidates: Vec<CandidateIdentity>,
    #[serde(default)]
    clips: Vec<ClipIdentity>,
    /// The candidates once more, as they see clips.
    #[serde(default)]
    clip_candidates: Vec<CandidateIdentity>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SetIdentity {
    name: String,
    path: String,
    /// Fingerprints of the images and labels that are learnt from and asked about.
    content: [String; 2],
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CandidateIdentity {
    description: String,
    /// What computes the features, by name.
    features: serde_json::Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClipIdentity {
    name: String,
    content: String,
}

impl Identity {
    /// Of sets that were identified before.
    pub(crate) fn new(
        suite: &Suite,
        sets: &[LabelledSet],
        candidates: &[Candidate<'_>],
        video: Option<(&Video<'_>, &Path)>,
    ) -> Result<Self> {
        let set = |set: &LabelledSet| {
            let [name, path] = set.place().map(String::from);
            Ok(SetIdentity { name, path, content: set.fingerprints()? })
        };
        let mut identity = Self {
            suite: serde_json::to_value(suite).map_err(Error::Json)?,
            sets: sets.iter().map(set).collect::<Result<_>>()?,
            candidates: candidates.iter().map(CandidateIdentity::new).collect::<Result<_>>()?,
            clips: Vec::new(),
            clip_candidates: Vec::new(),
        };
        if let Some((video, memory)) = video {
            for clip in &video.set.clips {
                let (name, content) = (clip.name.clone(), clip.fingerprint(memory)?);
                identity.clips.push(ClipIdentity { name, content });
            }
            identity.clip_candidates =
                video.candidates.iter().map(CandidateIdentity::new).collect::<Result<_>>()?;
        }
        Ok(identity)
    }

    /// What an earlier report is of that a new one would not have, in words. Sets, clips and candidates that are
    /// added are no difference: nothing is lost.
    pub(crate) fn lost_in(&self, new: &Self) -> Option<String> {
        if let Some(keys) = differences(&self.suite, &new.suite) {
            return Some(format!("a report of another suite (other: {keys})"));
        }
        for set in &self.sets {
            if new.sets.iter().any(|it| it.content == set.content) {
                continue;
            }
            return Some(match new.sets.iter().any(|it| it.name == set.name) {
                true => format!("a report of other images, labels or splits of {}", set.name),
                false => format!("a report of {}", set.path),
            });
        }
        let candidates = [(&self.candidates, &new.candidates), (&self.clip_candidates, &new.clip_candidates)];
        for (candidates, known) in candidates {
            for candidate in candidates {
                if known.iter().any(|it| it.features == candidate.features) {
                    continue;
                }
                let name = |it: &CandidateIdentity| {
                    Path::new(&it.description).file_name().map(std::ffi::OsStr::to_owned)
                };
                let same = known.iter().find(|it| name(it) == name(candidate));
                let keys = same.and_then(|it| {
                    differences(&candidate.features.clone().into(), &it.features.clone().into())
                });
                return Some(match keys {
                    Some(keys) => format!("a report of {} (other: {keys})", candidate.description),
                    None => format!("a report of {}", candidate.description),
                });
            }
        }
        let lost = self.clips.iter().find(|clip| !new.clips.contains(clip));
        lost.map(|clip| format!("masks of another clip {}", clip.name))
    }

    /// The short names of its sets.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|set| set.name.as_str())
    }

    /// The names of its clips.
    pub(crate) fn clips(&self) -> impl Iterator<Item = &str> {
        self.clips.iter().map(|clip| clip.name.as_str())
    }
}

impl CandidateIdentity {
    fn new(candidate: &Candidate<'_>) -> Result<Self> {
        let features = match candidate.source {
            FeatureSource::Encoder(encoder) => {
                serde_json::to_value(encoder.computation(Output::Embedding)?).map_err(Error::Json)?
            }
            FeatureSource::Pixels(preprocess) => serde_json::json!({ "preprocess": preprocess }),
        };
        let features = features.as_object().cloned().unwrap_or_default();
        Ok(Self { description: candidate.description.clone(), features })
    }
}

/// Keys of two tables whose values differ; nothing if there are none.
fn differences(one: &Value, other: &Value) -> Option<String> {
    let empty = serde_json::Map::new();
    let [one, other] = [one, other].map(|value| value.as_object().unwrap_or(&empty));
    let mut keys: Vec<&str> = one
        .iter()
        .filter(|(key, value)| other.get(*key) != Some(value))
        .map(|(key, _)| key.as_str())
        .collect();
    keys.extend(other.keys().filter(|key| !one.contains_key(*key)).map(String::as_str));
    (!keys.is_empty()).then(|| keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        let set = |name: &str| SetIdentity {
            name: name.into(),
            path: format!("data/{name}"),
            content: [format!("{name} train"), format!("{name} test")],
        };
        let candidate = |file: &str| CandidateIdentity {
            description: file.into(),
            features: [("encoder".to_string(), file.into()), ("batch".into(), 32.into())]
                .into_iter()
                .collect(),
        };
        Identity {
            suite: serde_json::json!({ "seed": 0, "probe": ["knn"] }),
            sets: vec![set("pets"), set("cars")],
            candidates: vec![candidate("a.onnx"), candidate("b.onnx")],
            clips: vec![ClipIdentity { name: "dog".into(), content: "frames".into() }],
            clip_candidates: Vec::new(),
        }
    }

    #[test]
    fn what_would_be_lost_is_named() {
        let lost = |change: &dyn Fn(&mut Identity)| {
            let mut new = identity();
            change(&mut new);
            identity().lost_in(&new)
        };
        assert_eq!(lost(&|_| {}), None);
        type Change<'a> = &'a dyn Fn(&mut Identity);
        let cases: [(Change<'_>, &str); 7] = [
            (&|new| new.suite["seed"] = 1.into(), "a report of another suite (other: seed)"),
            (&|new| new.sets[1].content[0].push('x'), "a report of other images, labels or splits of cars"),
            (&|new| drop(new.sets.remove(0)), "a report of data/pets"),
            (&|new| drop(new.candidates.remove(0)), "a report of a.onnx"),
            (
                &|new| {
                    new.candidates[0].features.insert("encoder".into(), "further".into());
                    new.candidates[0].description = "/elsewhere/a.onnx".into();
                },
                "a report of a.onnx (other: encoder)",
            ),
            (&|new| new.clips[0].content.clear(), "masks of another clip dog"),
            (&|new| new.clips.clear(), "masks of another clip dog"),
        ];
        for (change, words) in cases {
            assert_eq!(lost(change).as_deref(), Some(words));
        }
    }

    #[test]
    fn names_places_and_what_is_added_are_no_difference() {
        let (mut moved, mut more) = (identity(), identity());
        moved.sets.iter_mut().for_each(|set| set.path = format!("/elsewhere/{}/", set.name));
        moved.candidates.iter_mut().for_each(|it| it.description = format!("./{}", it.description));
        assert_eq!(identity().lost_in(&moved), None);
        more.sets.push(SetIdentity { name: "dtd".into(), path: "dtd".into(), content: Default::default() });
        assert_eq!(identity().lost_in(&more), None);
    }
}
