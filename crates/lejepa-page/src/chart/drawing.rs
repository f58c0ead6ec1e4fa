//! The little of SVG that charts need. Lengths are pixels at full size.

use std::fmt::Write;

use crate::html::Text;

/// An `<svg>` element that grows.
pub(super) struct Drawing {
    svg: String,
}

/// How a drawing fits into its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Shrinks with the page.
    Shrink,
    /// Keeps its size and scrolls.
    Scroll,
}

/// Where a text starts, relative to its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Mean width of a character of a chart's text.
const CHARACTER: f64 = 6.9;

/// Different colours; a candidate beyond them differs by its marker.
const COLOURS: usize = 7;

/// Different markers: no divisor in common with the colours, so that 42 pairs differ.
const MARKERS: usize = 6;

impl Drawing {
    /// `label` is what is read out in its place.
    pub(super) fn new([width, height]: [f64; 2], fit: Fit, label: &str) -> Self {
        let class = match fit {
            Fit::Shrink => "chart",
            Fit::Scroll => "chart fixed",
        };
        let svg = format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{0}\">\n<title>{0}</title>\n",
            Text(label)
        );
        Self { svg }
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let line = format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
        );
        let _ = self.svg.write_fmt(line);
    }

    /// A rectangle with words that appear under the pointer.
    pub(super) fn rect(&mut self, attributes: &str, [x, y, width, height]: [f64; 4], title: &str) {
        let _ = write!(
            self.svg,
            "<rect {attributes} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\""
        );
        let _ = match title {
            "" => writeln!(self.svg, "/>"),
            title => writeln!(self.svg, "><title>{}</title></rect>", Text(title)),
        };
    }

    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, text: &str) {
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{}>{}</text>",
            anchor.attribute(),
            Text(text)
        );
    }

    /// As [`Self::text`], turned to the left around its place by an angle in degrees.
    pub(super) fn turned(&mut self, class: &str, [x, y, angle]: [f64; 3], anchor: Anchor, text: &str) {
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-{angle})\"{}>{}</text>",
            anchor.attribute(),
            Text(text)
        );
    }

    /// Connects points, with words that appear under the pointer.
    pub(super) fn path(&mut self, class: &str, points: &[[f64; 2]], title: &str) {
        let _ = write!(self.svg, "<path class=\"{class}\" d=\"");
        for (index, [x, y]) in points.iter().enumerate() {
            let _ = write!(self.svg, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        let _ = match title {
            "" => writeln!(self.svg, "\"/>"),
            title => writeln!(self.svg, "\"><title>{}</title></path>", Text(title)),
        };
    }

    /// The marker of a candidate.
    pub(super) fn marker(&mut self, index: usize, place: [f64; 2], title: &str) {
        let _ = writeln!(self.svg, "{}", marker(index, place, title));
    }

    pub(super) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

impl Anchor {
    fn attribute(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => " text-anchor=\"middle\"",
            Self::End => " text-anchor=\"end\"",
        }
    }
}

/// The class that colours what belongs to a candidate.
pub(super) fn colour(index: usize) -> String {
    format!("c{}", index % COLOURS + 1)
}

fn marker(index: usize, [x, y]: [f64; 2], title: &str) -> String {
    let outline = match index % MARKERS {
        0 => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "M-3.6-3.6h7.2v7.2h-7.2z",
        2 => "M0-4.8L4.6 3.4h-9.2z",
        3 => "M0-5.2L5.2 0L0 5.2L-5.2 0z",
        4 => "M0 4.8L4.6-3.4h-9.2z",
        _ => "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    };
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", Text(title)) };
    let class = colour(index);
    format!(
        "<path class=\"marker {class}\" transform=\"translate({x:.1} {y:.1})\" d=\"{outline}\">{title}</path>"
    )
}

/// A candidate's marker on its line, for legends.
pub fn swatch(index: usize) -> String {
    let class = colour(index);
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 24 12\" width=\"24\" height=\"12\" aria-hidden=\"true\">\
         <line class=\"curve {class}\" x1=\"0\" y1=\"6\" x2=\"24\" y2=\"6\"/>{}</svg>",
        marker(index, [12., 6.], "")
    )
}

/// About how wide a text is.
pub(super) fn width(text: &str) -> f64 {
    CHARACTER * text.chars().count() as f64
}

/// What fits into a width: the text or its start.
pub(super) fn shorten(text: &str, space: f64) -> String {
    if width(text) <= space {
        return text.into();
    }
    let characters = (space / CHARACTER).floor().max(2.) as usize - 1;
    let mut short: String = text.chars().take(characters).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}
