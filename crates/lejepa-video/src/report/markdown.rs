//! A segmentation's report as Markdown.

use std::fmt::Write;

use lejepa_page::markdown::{code, code_block, plain, push_table};
use lejepa_page::number::{counted, percent};

use crate::{ClipReport, ObjectScore, Score, SegmentationReport};

/// More clips have no columns of their own.
const MOST_COLUMNS: usize = 6;

/// Titles of a row's scores.
const MEASURES: [&str; 3] = ["J", "F", "J&F"];

impl SegmentationReport {
    /// What it is called beside other things, such as `Video: attention`.
    pub fn title(&self) -> String {
        format!("Video: {}", self.protocol.split(':').next().unwrap_or_default())
    }

    /// The scores over all clips, and J of each if they are few; nothing without true masks.
    pub fn to_table(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let clips: Vec<&ClipReport> = self.clips.iter().filter(|clip| !clip.rows.is_empty()).collect();
        let columns = if (2..=MOST_COLUMNS).contains(&clips.len()) { &*clips } else { &[] };
        let titles = columns.iter().map(|clip| format!("J of {}", plain(&clip.name)));
        let mut rows = vec![title(&["masks of"]).into_iter().chain(titles).collect::<Vec<_>>()];
        for row in &self.rows {
            let of_clip = |clip: &&ClipReport| {
                let found = clip.rows.iter().find(|found| found.name == row.name);
                found.map_or("–".into(), |found| percent(found.score.jaccard))
            };
            rows.push(
                cells(vec![row.name.clone()], row.score)
                    .into_iter()
                    .chain(columns.iter().map(of_clip))
                    .collect(),
            );
        }
        let mut text = String::new();
        push_table(&mut text, &rows, 1);
        let frames = clips.iter().map(|clip| clip.frames_with_truth).sum();
        let objects = self.rows.iter().map(|row| row.objects).max().unwrap_or_default();
        let (objects, clips) = (counted(objects, "object"), counted(clips.len(), "clip"));
        let _ = write!(text, "\nPercent, mean over {objects} of {clips}, {}; ", counted(frames, "true mask"));
        let _ = writeln!(text, "{}.", self.protocol);
        for remark in self.remarks() {
            let _ = writeln!(text, "- {}", plain(&remark));
        }
        Some(text)
    }

    /// What a reader of the scores should know, of the set and of its clips.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let of_clip = |clip: &ClipReport| {
            let name = clip.name.clone();
            clip.remarks.clone().into_iter().map(move |remark| format!("{name}: {remark}"))
        };
        self.notes.iter().cloned().chain(self.clips.iter().flat_map(of_clip)).collect()
    }

    /// Everything.
    pub fn to_markdown(&self) -> String {
        // Notes are among the remarks.
        let Self { command, protocol, encoder, size: (height, width), notes: _, clips, rows: scores } = self;
        let mut text = String::from("# Segmentation\n\n");
        if let Some(table) = self.to_table() {
            text.push_str(&table);
            text.push_str(EXPLANATION);
        }
        if scores.is_empty() {
            self.remarks().iter().for_each(|remark| text.push_str(&format!("- {}\n", plain(remark))));
            text.push('\n');
        }
        text.push_str("## Clips\n\n");
        let counts = |clip: &ClipReport| {
            let ClipReport {
                name,
                frames,
                frames_with_truth,
                left_out,
                // Below.
                left_out_such_as: _,
                remarks: _,
                rows: _,
                // In HTML.
                stills: _,
            } = clip;
            let counts = [frames, frames_with_truth, left_out].map(|count| count.to_string());
            std::iter::once(plain(name)).chain(counts).collect()
        };
        let mut rows = vec![["clip", "masks", "true masks", "frames left out"].map(String::from).to_vec()];
        rows.extend(clips.iter().map(counts));
        push_table(&mut text, &rows, 1);
        clips.iter().for_each(|clip| push_clip(&mut text, clip));
        let _ = write!(text, "\n## Command\n\n{}\n", code_block(command));
        let _ = writeln!(
            text,
            "Encoder {}, whole frames resized to {height}x{width}, {}.",
            code(encoder),
            code(protocol)
        );
        text
    }
}

const EXPLANATION: &str = "
J is the Jaccard index of the regions, F the measure of their contours, as DAVIS defines them. The best head is
the one with the highest J, chosen with the true masks for each object: one for the whole clip, or one for every
frame. The centred box has half the height and half the width of the frame.

";

fn push_clip(text: &mut String, clip: &ClipReport) {
    if clip.rows.is_empty() && clip.left_out_such_as.is_empty() {
        return;
    }
    let _ = write!(text, "\n### {}\n\n", plain(&clip.name));
    if !clip.rows.is_empty() {
        let mut rows = vec![title(&["masks of", "object", "head"])];
        for row in &clip.rows {
            for ObjectScore { object, score, head } in &row.objects {
                let head = head.map_or("–".into(), |head| head.to_string());
                rows.push(cells(vec![row.name.clone(), object.to_string(), head], *score));
            }
        }
        push_table(text, &rows, 1);
    }
    for reason in &clip.left_out_such_as {
        let _ = writeln!(text, "\nLeft out: {}", plain(reason));
    }
}

fn title(names: &[&str]) -> Vec<String> {
    names.iter().chain(&MEASURES).map(|name| name.to_string()).collect()
}

fn cells(names: Vec<String>, score: Score) -> Vec<String> {
    let measures = [score.jaccard, score.contour, score.mean()].map(percent);
    names.into_iter().chain(measures).collect()
}
