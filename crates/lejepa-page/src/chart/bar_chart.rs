//! Horizontal bars from 0 to 100 %, in groups, with error bars.

use super::drawing::{Anchor, Drawing, Fit, colour, shorten, width};
use crate::number::percent;

/// Groups of bars, one below the other.
pub struct BarChart {
    /// What is read out in its place.
    pub label: String,
    /// From top to bottom.
    pub groups: Vec<Group>,
}

/// Bars with a name, or a gap with a remark if there are none.
pub struct Group {
    /// What its bars have in common.
    pub name: String,
    /// From top to bottom; a gap if there are none.
    pub bars: Vec<Bar>,
}

/// One bar.
pub struct Bar {
    /// Of the candidate, for the words under the pointer.
    pub name: String,
    /// Which colour it has.
    pub series: usize,
    /// A share.
    pub value: f64,
    /// Shares at both ends of an interval.
    pub range: Option<[f64; 2]>,
}

const WIDTH: f64 = 420.;
const BAR: f64 = 14.;
const GAP: f64 = 8.;
const TOP: f64 = 8.;
const BOTTOM: f64 = 24.;

/// Right of 100 %, where an error bar may end and a number stands.
const RIGHT: f64 = 40.;

/// The widest name of a group.
const NAME: f64 = 145.;

impl BarChart {
    /// An `<svg>` element.
    pub fn to_svg(&self) -> String {
        let bars = |group: &Group| BAR * group.bars.len().max(1) as f64;
        let single = self.groups.iter().all(|group| group.bars.len() <= 1);
        let gap = if single { 3. } else { GAP };
        let height = TOP + self.groups.iter().map(|group| bars(group) + gap).sum::<f64>() + BOTTOM;
        let left = self.groups.iter().map(|group| width(&group.name)).fold(20., f64::max).min(NAME) + 8.;
        let place = |share: f64| left + share.clamp(0., 1.) * (WIDTH - RIGHT - left);
        let mut drawing = Drawing::new([WIDTH, height], Fit::Shrink, &self.label);
        let bottom = height - BOTTOM;
        for quarter in 0..=4 {
            let at = place(f64::from(quarter) / 4.);
            drawing.line("grid", [at, TOP - 4.], [at, bottom]);
            let name = format!("{}{}", 25 * quarter, if quarter == 4 { " %" } else { "" });
            drawing.text("tick", [at, bottom + 16.], Anchor::Middle, &name);
        }
        let mut top = TOP;
        for group in &self.groups {
            let middle = top + bars(group) / 2. + 4.;
            if group.bars.is_empty() {
                drawing.text("tick", [left + 6., middle], Anchor::Start, &group.name);
            } else {
                drawing.text("name", [left - 6., middle], Anchor::End, &shorten(&group.name, NAME));
            }
            for (index, bar) in group.bars.iter().enumerate() {
                bar.draw(&mut drawing, [left, top + BAR * index as f64], place, &group.name);
            }
            top += bars(group) + gap;
        }
        drawing.line("axis", [left, TOP - 4.], [left, bottom]);
        drawing.finish()
    }
}

impl Bar {
    fn draw(&self, drawing: &mut Drawing, [left, top]: [f64; 2], place: impl Fn(f64) -> f64, group: &str) {
        let class = colour(self.series);
        let end = place(self.value);
        let title = match self.range {
            Some([low, high]) => {
                format!(
                    "{}, {group}: {} % ({} – {})",
                    self.name,
                    percent(self.value),
                    percent(low),
                    percent(high)
                )
            }
            None => format!("{}, {group}: {} %", self.name, percent(self.value)),
        };
        let attributes = format!("class=\"bar {class}\"");
        drawing.rect(&attributes, [left, top + 1., (end - left).max(0.5), BAR - 2.], &title);
        let mut free_from = end;
        if let Some([low, high]) = self.range {
            let middle = top + BAR / 2.;
            let (low, high) = (place(low), place(high));
            drawing.line("whisker", [low, middle], [high, middle]);
            for end in [low, high] {
                drawing.line("whisker", [end, middle - 3.], [end, middle + 3.]);
            }
            free_from = free_from.max(high);
        }
        drawing.text("value", [free_from + 5., top + BAR / 2. + 4.], Anchor::Start, &percent(self.value));
    }
}
