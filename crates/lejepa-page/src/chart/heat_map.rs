//! A square of classes against predicted classes, each row as shares of its sum.

use super::drawing::{Anchor, Drawing, Fit, shorten, width};
use crate::number::{counted, percent};

/// A confusion matrix.
pub struct HeatMap<'a> {
    /// What is read out in its place.
    pub label: String,
    /// Names of the classes, in the order of their numbers.
    pub classes: &'a [String],
    /// `[class, predicted class, test images]`
    pub counts: &'a [[usize; 3]],
}

/// The widest class name.
const NAME: f64 = 120.;

/// The angle of names above the columns.
const TURNED: f64 = 50.;

/// Shares from which on a number is written in the colour of the page.
const DARK: f64 = 0.5;

/// Classes up to which cells are large enough for numbers.
const NUMBERED: usize = 14;

impl HeatMap<'_> {
    /// An `<svg>` element.
    pub fn to_svg(&self) -> String {
        let classes = self.classes.len();
        let cell = if classes <= NUMBERED { 34. } else { 17. };
        let names: Vec<String> = self.classes.iter().map(|name| shorten(name, NAME)).collect();
        let longest = names.iter().map(|name| width(name)).fold(20., f64::max);
        let (left, top) = (longest + 28., longest * TURNED.to_radians().sin() + 34.);
        let side = cell * classes as f64;
        // The last of the turned names reaches beyond the square.
        let overhang = longest * TURNED.to_radians().cos();
        let mut drawing =
            Drawing::new([left + side + overhang + 4., top + side + 4.], Fit::Scroll, &self.label);
        drawing.text("title", [left, 12.], Anchor::Start, "predicted class");
        drawing.turned("title", [12., top + side / 2., 90.], Anchor::Middle, "class");
        for (index, name) in names.iter().enumerate() {
            let middle = cell * (index as f64 + 0.5);
            drawing.text("name", [left - 6., top + middle + 4.], Anchor::End, name);
            drawing.turned("name", [left + middle + 3., top - 6., TURNED], Anchor::Start, name);
        }
        drawing.rect("class=\"frame\"", [left, top, side, side], "");
        let mut sums = vec![0; classes];
        for &[class, _, images] in self.counts {
            if let Some(sum) = sums.get_mut(class) {
                *sum += images;
            }
        }
        for &[class, predicted, images] in self.counts {
            let (Some(name), Some(other)) = (self.classes.get(class), self.classes.get(predicted)) else {
                continue;
            };
            let share = images as f64 / sums[class].max(1) as f64;
            let place = [left + cell * predicted as f64, top + cell * class as f64];
            let title =
                format!("{name} as {other}: {} ({} %)", counted(images, "test image"), percent(share));
            let attributes = format!("class=\"heat\" fill-opacity=\"{share:.3}\"");
            drawing.rect(&attributes, [place[0], place[1], cell, cell], &title);
            if classes <= NUMBERED && share >= 0.005 {
                let class = if share >= DARK { "inverse" } else { "value" };
                let centre = [place[0] + cell / 2., place[1] + cell / 2. + 4.];
                drawing.text(class, centre, Anchor::Middle, &format!("{:.0}", 100. * share));
            }
        }
        drawing.finish()
    }
}
