//! A segmentation's report, for people and programs.

mod html;
mod markdown;

use serde::{Deserialize, Serialize};

use crate::{Score, Still};

/// The masks of a set of clips, and how good they are where that can be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentationReport {
    /// What was typed.
    pub command: String,
    /// How masks were made, at which size and of which clips, such as
    /// `attention:mass0.6:smoothing0:240x424:clips2017/val`.
    pub protocol: String,
    /// The encoder file.
    pub encoder: String,
    /// Height and width to which whole frames were resized.
    pub size: (usize, usize),
    /// What a reader should know, such as clips of the list that are not there.
    pub notes: Vec<String>,
    /// The clips in the order in which they were segmented.
    pub clips: Vec<ClipReport>,
    /// The mean over all objects of all clips, row by row; none without true masks.
    pub rows: Vec<SetRow>,
}

/// One clip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClipReport {
    /// The clip.
    pub name: String,
    /// Frames with a mask.
    pub frames: usize,
    /// Frames of them that have a true mask.
    pub frames_with_truth: usize,
    /// Frames that could not be read.
    pub left_out: usize,
    /// The first few of those, with the reason.
    pub left_out_such_as: Vec<String>,
    /// What a reader should know about its objects.
    pub remarks: Vec<String>,
    /// Scores, where there are true masks.
    pub rows: Vec<ClipRow>,
    /// A few frames with the masks that are written.
    pub stills: Vec<Still>,
}

/// The scores of one maker of masks on one clip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClipRow {
    /// Who made the masks.
    pub name: String,
    /// The mean over objects.
    pub score: Score,
    /// J&F: the mean of both.
    pub mean: f64,
    /// Each object.
    pub objects: Vec<ObjectScore>,
}

/// How well an object was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObjectScore {
    /// Its label in the masks.
    pub object: u8,
    /// The mean over frames.
    pub score: Score,
    /// The head that found it best, from 1, where heads are compared.
    pub head: Option<usize>,
}

/// The scores of one maker of masks on all clips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetRow {
    /// Who made the masks.
    pub name: String,
    /// The mean over all objects of all clips, as DAVIS 2017 has it.
    pub score: Score,
    /// J&F: the mean of both.
    pub mean: f64,
    /// Objects that it is over.
    pub objects: usize,
}

impl ClipRow {
    /// Scores with the mean over objects; nothing without any.
    pub fn new(name: &str, objects: Vec<ObjectScore>) -> Option<Self> {
        let score = Score::average(objects.iter().map(|object| object.score))?;
        Some(Self { name: name.into(), score, mean: score.mean(), objects })
    }
}

impl SegmentationReport {
    /// Averages over clips.
    pub fn summarise(&mut self) {
        let mut names: Vec<&str> = Vec::new();
        for row in self.clips.iter().flat_map(|clip| &clip.rows) {
            if !names.contains(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        let row = |name: &str| {
            let rows = self.clips.iter().flat_map(|clip| &clip.rows).filter(|row| row.name == name);
            let objects: Vec<Score> = rows.flat_map(|row| &row.objects).map(|object| object.score).collect();
            let score = Score::average(objects.iter().copied())?;
            Some(SetRow { name: name.into(), score, mean: score.mean(), objects: objects.len() })
        };
        self.rows = names.into_iter().filter_map(row).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_counts_the_same_whatever_clip_it_is_of() {
        let object = |jaccard| ObjectScore { object: 1, score: Score { jaccard, contour: 0. }, head: None };
        let clip = |name: &str, objects: Vec<ObjectScore>| ClipReport {
            name: name.into(),
            frames: 3,
            frames_with_truth: 3,
            left_out: 0,
            left_out_such_as: Vec::new(),
            remarks: Vec::new(),
            rows: ClipRow::new("encoder", objects).into_iter().collect(),
            stills: Vec::new(),
        };
        let mut report = SegmentationReport {
            command: String::new(),
            protocol: String::new(),
            notes: Vec::new(),
            encoder: String::new(),
            size: (8, 8),
            clips: vec![clip("a", vec![object(0.5), object(0.25)]), clip("b", vec![object(0.75)])],
            rows: Vec::new(),
        };
        report.summarise();
        assert_eq!(report.rows.len(), 1);
        assert_eq!(
            (report.rows[0].score.jaccard, report.rows[0].mean, report.rows[0].objects),
            (0.5, 0.25, 3)
        );
    }
}
