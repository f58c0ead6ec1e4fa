//! Lines over an axis with error bars, or with bands where points are many.

use super::axis::{Axis, Placed};
use super::drawing::{Anchor, Drawing, Fit, colour, shorten, width};
use crate::number::significant;

/// Several series over the same axes.
pub struct LineChart {
    /// What is read out in its place.
    pub label: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn one upon the other.
    pub series: Vec<Series>,
    /// Whether names stand at the ends of lines.
    pub end_labels: EndLabels,
}

/// A line, or points.
pub struct Series {
    /// What it is called at its end and under the pointer.
    pub name: String,
    /// How it looks.
    pub style: Style,
    /// In the order of `x`.
    pub points: Vec<Point>,
}

/// How a series looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// With the colour and marker of this number.
    Marked(usize),
    /// Dashed, with the colour of this number: what a marked series should be.
    Theory(usize),
    /// Thin, grey and dashed: for comparison.
    Reference,
}

/// A place in a chart.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Its horizontal value.
    pub x: f64,
    /// Its vertical value.
    pub y: f64,
    /// Both ends of an interval.
    pub range: Option<[f64; 2]>,
}

/// Whether names stand at the ends of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndLabels {
    /// If they are few and short enough.
    WhereTheyFit,
    /// A legend says it for several charts.
    None,
}

const WIDTH: f64 = 420.;
const HEIGHT: f64 = 290.;
const TOP: f64 = 30.;
const BOTTOM: f64 = 44.;
const RIGHT: f64 = 14.;

/// The widest name at the end of a line.
const LABEL: f64 = 110.;

/// The distance of names that would overlap.
const LABEL_HEIGHT: f64 = 14.;

/// More points than this have a band and no markers.
const MARKERS: usize = 14;

impl LineChart {
    /// An `<svg>` element.
    pub fn to_svg(&self) -> String {
        let labels = self.labels();
        let right = labels.iter().map(|label| width(&label.name) + 10.).fold(RIGHT, f64::max);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let heights =
            points().flat_map(|point| [point.y].into_iter().chain(point.range.into_iter().flatten()));
        let y = self.y.place(heights, [HEIGHT - BOTTOM, TOP]);
        let left = y.ticks.iter().map(|(_, name)| width(name) + 12.).fold(0., f64::max);
        let sides = [left, WIDTH - right];
        let x = self.x.place(points().map(|point| point.x), [sides[0] + 8., sides[1] - 4.]);
        let mut drawing = Drawing::new([WIDTH, HEIGHT], Fit::Shrink, &self.label);
        self.draw_axes(&mut drawing, &x, &y, sides);
        for series in &self.series {
            series.draw(&mut drawing, &x, &y);
        }
        draw_labels(&mut drawing, &labels, &y, WIDTH - right + 4.);
        drawing.finish()
    }

    fn draw_axes(&self, drawing: &mut Drawing, x: &Placed, y: &Placed, [left, right]: [f64; 2]) {
        for (value, name) in &y.ticks {
            let Some(place) = y.at(*value) else { continue };
            drawing.line("grid", [left, place], [right, place]);
            drawing.text("tick", [left - 6., place + 4.], Anchor::End, name);
        }
        drawing.line("axis", [left, HEIGHT - BOTTOM], [right, HEIGHT - BOTTOM]);
        let mut free_from = f64::NEG_INFINITY;
        for (value, name) in &x.ticks {
            let Some(place) = x.at(*value) else { continue };
            drawing.line("axis", [place, HEIGHT - BOTTOM], [place, HEIGHT - BOTTOM + 4.]);
            // A name that would touch the one before is left out; its tick stays.
            if place - width(name) / 2. > free_from {
                drawing.text("tick", [place, HEIGHT - BOTTOM + 17.], Anchor::Middle, name);
                free_from = place + width(name) / 2. + 2.;
            }
        }
        drawing.text("title", [2., 14.], Anchor::Start, &self.y.title);
        drawing.text("title", [(left + right) / 2., HEIGHT - 8.], Anchor::Middle, &self.x.title);
    }

    /// Names for the ends of the marked series, if all fit.
    fn labels(&self) -> Vec<EndLabel> {
        let label = |series: &Series| match series.style {
            Style::Marked(index) => {
                Some(EndLabel { index, end: series.points.last()?.y, name: shorten(&series.name, LABEL) })
            }
            Style::Theory(_) | Style::Reference => None,
        };
        let labels: Vec<EndLabel> = self.series.iter().filter_map(label).collect();
        let room = ((HEIGHT - TOP - BOTTOM) / LABEL_HEIGHT) as usize / 2;
        match self.end_labels {
            EndLabels::WhereTheyFit if labels.len() <= room => labels,
            EndLabels::WhereTheyFit | EndLabels::None => Vec::new(),
        }
    }
}

/// A name at the end of a line.
struct EndLabel {
    index: usize,
    /// The value where the line ends.
    end: f64,
    name: String,
}

impl Series {
    fn draw(&self, drawing: &mut Drawing, x: &Placed, y: &Placed) {
        let place = |at: f64, height: f64| Some([x.at(at)?, y.at(height)?]);
        let line: Vec<[f64; 2]> = self.points.iter().filter_map(|point| place(point.x, point.y)).collect();
        let index = match self.style {
            Style::Marked(index) => index,
            Style::Theory(index) => {
                drawing.path(&format!("theory {}", colour(index)), &line, &self.name);
                return;
            }
            Style::Reference => {
                drawing.path("reference", &line, &self.name);
                return;
            }
        };
        let class = colour(index);
        let ranges = self.points.iter().filter_map(|point| {
            let [low, high] = point.range?;
            Some((place(point.x, low)?, place(point.x, high)?))
        });
        if self.points.len() > MARKERS {
            let (lows, highs): (Vec<_>, Vec<_>) = ranges.unzip();
            let outline: Vec<_> = lows.into_iter().chain(highs.into_iter().rev()).collect();
            if !outline.is_empty() {
                drawing.path(&format!("band {class}"), &outline, "");
            }
            drawing.path(&format!("curve {class}"), &line, &self.name);
            return;
        }
        for ([at, low], [_, high]) in ranges {
            drawing.line(&format!("error {class}"), [at, low], [at, high]);
            for end in [low, high] {
                drawing.line(&format!("error {class}"), [at - 3., end], [at + 3., end]);
            }
        }
        drawing.path(&format!("curve {class}"), &line, "");
        for point in &self.points {
            let Some(place) = place(point.x, point.y) else { continue };
            let range =
                point.range.map(|[low, high]| format!(" ({} – {})", significant(low), significant(high)));
            let title = format!(
                "{}, {}: {}{}",
                self.name,
                x.name(point.x),
                significant(point.y),
                range.unwrap_or_default()
            );
            drawing.marker(index, place, &title);
        }
    }
}

/// Names at the height of their line, moved apart where they would overlap.
fn draw_labels(drawing: &mut Drawing, labels: &[EndLabel], y: &Placed, left: f64) {
    let mut places: Vec<(f64, &EndLabel)> =
        labels.iter().filter_map(|label| Some((y.at(label.end)?, label))).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut lowest = TOP;
    for (height, _) in &mut places {
        *height = height.max(lowest);
        lowest = *height + LABEL_HEIGHT;
    }
    let mut highest = HEIGHT - BOTTOM;
    for (height, _) in places.iter_mut().rev() {
        *height = height.min(highest);
        highest = *height - LABEL_HEIGHT;
    }
    for (height, label) in places {
        let class = format!("name {}", colour(label.index));
        drawing.text(&class, [left, height + 4.], Anchor::Start, &label.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Scale;

    fn chart(series: Vec<Vec<Point>>) -> LineChart {
        let series = series.into_iter().enumerate().map(|(index, points)| Series {
            name: format!("series {index}"),
            style: Style::Marked(index),
            points,
        });
        LineChart {
            label: "a < b".into(),
            x: Axis { title: "x".into(), scale: Scale::Log, ticks: Vec::new() },
            y: Axis::linear("y"),
            series: series.collect(),
            end_labels: EndLabels::WhereTheyFit,
        }
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, range: Some([y - 1., y + 1.]) }
    }

    #[test]
    fn points_without_a_place_are_left_out() {
        let odd = [point(0., 1.), point(f64::NAN, 1.), point(1., f64::INFINITY), point(2., 3.)];
        let svg = chart(vec![odd.to_vec(), Vec::new()]).to_svg();
        assert_eq!(svg.matches("class=\"marker").count(), 1);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn many_points_have_a_band_and_few_have_error_bars() {
        let points = |count: u32| (1..=count).map(|x| point(f64::from(x), 5.)).collect();
        let (few, many) = (chart(vec![points(3)]).to_svg(), chart(vec![points(100)]).to_svg());
        assert!(few.contains("class=\"error c1\"") && !few.contains("class=\"band"));
        assert!(many.contains("class=\"band c1\"") && !many.contains("class=\"error"));
    }

    #[test]
    fn names_of_lines_that_end_together_do_not_overlap() {
        let svg = chart(vec![vec![point(1., 5.), point(2., 5.)]; 5]).to_svg();
        let names = svg.lines().filter(|line| line.starts_with("<text class=\"name"));
        let height = |line: &str| line.split("y=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
        let heights: Vec<f64> = names.filter_map(height).collect();
        assert_eq!(heights.len(), 5);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT));
    }
}
