//! The scores of a clip while they come in: a row for everything that makes masks, a tally for every object.

use super::score::{Frames, Score, Tally};
use super::{ClipRow, ObjectScore};

/// What may be asked of a row at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is shown.
    Shown,
    /// One of several of which the best is shown, for each object; its number from 1.
    Head { number: usize },
}

#[derive(Debug)]
struct Row {
    name: String,
    kind: Kind,
    tallies: Vec<Tally>,
}

/// Scores of a clip.
#[derive(Debug)]
pub(super) struct Scoreboard {
    objects: Vec<u8>,
    frames: Frames,
    rows: Vec<Row>,
}

impl Scoreboard {
    pub(super) fn new(objects: &[u8], frames: Frames) -> Self {
        Self { objects: objects.into(), frames, rows: Vec::new() }
    }

    /// The scores of a frame, one for each object.
    pub(super) fn add(&mut self, name: &str, scores: &[Score]) {
        self.add_to(name, Kind::Shown, scores);
    }

    /// Scores of a frame, for each head one for each object. Of each object the best head of the whole clip
    /// is shown, and the mean over frames of the best head of each.
    pub(super) fn add_heads(&mut self, name: &str, heads: &[Vec<Score>]) {
        for (number, scores) in (1..).zip(heads) {
            self.add_to(name, Kind::Head { number }, scores);
        }
        let better = |left: &Score, right: &Score| left.jaccard.total_cmp(&right.jaccard);
        let best = |object: usize| heads.iter().map(|scores| scores[object]).max_by(better);
        let best: Option<Vec<Score>> = (0..self.objects.len()).map(best).collect();
        if let Some(best) = best {
            self.add(&format!("{name} of every frame"), &best);
        }
    }

    fn add_to(&mut self, name: &str, kind: Kind, scores: &[Score]) {
        let found = self.rows.iter().position(|row| row.name == name && row.kind == kind);
        let place = found.unwrap_or_else(|| {
            let tallies = self.objects.iter().map(|_| Tally::new(self.frames)).collect();
            self.rows.push(Row { name: name.into(), kind, tallies });
            self.rows.len() - 1
        });
        self.rows[place].tallies.iter_mut().zip(scores).for_each(|(tally, &score)| tally.add(score));
    }

    /// The rows that are shown, in the order in which they first came.
    pub(super) fn finish(&self) -> Vec<ClipRow> {
        let mut rows: Vec<ClipRow> = Vec::new();
        for row in &self.rows {
            if rows.iter().any(|shown| shown.name == row.name) {
                continue;
            }
            let same: Vec<&Row> = self.rows.iter().filter(|other| other.name == row.name).collect();
            let objects = (0..self.objects.len()).filter_map(|object| self.best(&same, object));
            rows.extend(ClipRow::new(&row.name, objects.collect()));
        }
        rows
    }

    /// The best of the rows for an object; the first one of equals.
    fn best(&self, rows: &[&Row], object: usize) -> Option<ObjectScore> {
        let scores = rows.iter().filter_map(|row| {
            let head = match row.kind {
                Kind::Shown => None,
                Kind::Head { number } => Some(number),
            };
            Some(ObjectScore { object: self.objects[object], score: row.tallies[object].average()?, head })
        });
        scores.reduce(|best, next| if next.score.jaccard > best.score.jaccard { next } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(value: f64) -> Score {
        Score { jaccard: value, contour: value }
    }

    #[test]
    fn the_best_head_is_one_for_the_clip_and_each_object() {
        let mut board = Scoreboard::new(&[1, 4], Frames::All);
        board.add_heads("best head", &[vec![score(0.5), score(0.)], vec![score(0.75), score(0.25)]]);
        board.add_heads("best head", &[vec![score(0.75), score(0.)], vec![score(0.25), score(0.25)]]);
        board.add("box", &[score(0.125), score(0.125)]);
        let rows = board.finish();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["best head", "best head of every frame", "box"]);
        let best: Vec<_> =
            rows[0].objects.iter().map(|found| (found.object, found.head, found.score.jaccard)).collect();
        assert_eq!(best, [(1, Some(1), 0.625), (4, Some(2), 0.25)]);
        assert_eq!(rows[0].score, score((0.625 + 0.25) / 2.));
        assert_eq!(rows[1].objects[0].score, score(0.75));
    }

    #[test]
    fn without_frames_there_are_no_rows() {
        assert!(Scoreboard::new(&[1], Frames::All).finish().is_empty());
    }
}
