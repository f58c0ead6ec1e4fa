//! A reading as a picture: spectrum, statistics of all slices, and the worst slice.

use anyhow::{Result, anyhow};
use lejepa_loss::gauge::{Histogram, Reading, SigregReading, Spectrum};
use plotters::coord::Shift;
use plotters::prelude::*;

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

const SIZE: (u32, u32) = (1350, 470);
const MEASURED: RGBColor = RGBColor(31, 98, 165);
const PERFECT: RGBColor = RGBColor(214, 92, 30);
const GREY: RGBColor = RGBColor(150, 150, 150);
const FONT: &str = "sans-serif";

/// The picture as SVG.
pub(super) fn draw(reading: &Reading) -> Result<String> {
    let mut svg = String::new();
    draw_into(&mut svg, reading).map_err(|problem| anyhow!("cannot draw the plot: {problem}"))?;
    Ok(svg)
}

fn draw_into(svg: &mut String, reading: &Reading) -> Drawn {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (heading, panels) = area.split_vertically(48);
    let title = format!("{}: {}", reading.verdict.title(), reading.explanation);
    heading.draw(&Text::new(title, (20, 18), (FONT, 19).into_font()))?;
    if let [left, middle, right] = &panels.split_evenly((1, 3))[..] {
        draw_spectrum(left, &reading.spectrum)?;
        Bars::of_slices(&reading.sigreg).draw(middle)?;
        Bars::of_worst_slice(reading).draw(right)?;
    }
    area.present()?;
    Ok(())
}

/// Variance by rank on a log scale, against Marchenko-Pastur.
fn draw_spectrum(panel: &Panel<'_>, spectrum: &Spectrum) -> Drawn {
    let weak = spectrum.expected.iter().take(spectrum.measurable).map(|value| Spectrum::WEAK * value);
    let weak: Vec<f64> = weak.collect();
    let all = || spectrum.variances.iter().chain(&spectrum.expected).chain(&weak).copied();
    let largest = all().fold(0., f64::max);
    if largest == 0. {
        panel.draw(&Text::new("no variance in any direction", (90, 90), (FONT, 16).into_font()))?;
        return Ok(());
    }
    // What is below a billionth of the largest lies at the edge.
    let lowest = 1e-9 * largest;
    let (bottom, top) = (all().fold(largest, f64::min).max(lowest) / 2.5, 2.5 * largest);
    let ranked = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(rank, value)| (rank as f64, value.max(lowest))).collect()
    };
    let count = spectrum.variances.len();
    let mut chart = ChartBuilder::on(panel)
        .caption("variance along principal directions", (FONT, 16))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(-0.5..count as f64 - 0.5, (bottom..top).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GREY.mix(0.3))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_desc("rank")
        .x_labels(6)
        .x_label_formatter(&|rank| format!("{rank:.0}"))
        .y_label_formatter(&|variance| power(*variance))
        .draw()?;
    if spectrum.measurable < count {
        let edge = spectrum.measurable as f64 - 0.5;
        chart
            .draw_series(DashedLineSeries::new([(edge, bottom), (edge, top)], 4, 4, GREY.into()))?
            .label("measurable up to here")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], GREY));
    }
    if spectrum.unit > 0. {
        chart.draw_series(DashedLineSeries::new(ranked(&weak), 5, 4, PERFECT.mix(0.7).into()))?;
        chart
            .draw_series(LineSeries::new(ranked(&spectrum.expected), PERFECT.stroke_width(2)))?
            .label("perfect Gaussian sample; dashed: weak")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], PERFECT.stroke_width(2)));
    }
    let radius = if count > 200 { 1 } else { 3 };
    let points = ranked(&spectrum.variances);
    chart
        .draw_series(points.into_iter().map(|point| Circle::new(point, radius, MEASURED.filled())))?
        .label("measured")
        .legend(|(x, y)| Circle::new((x + 8, y), 3, MEASURED.filled()));
    // Variances fall with the rank: this corner is free.
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .label_font((FONT, 13))
        .background_style(WHITE.mix(0.85))
        .draw()?;
    Ok(())
}

/// A histogram with the curve that it should follow.
struct Bars {
    caption: &'static str,
    horizontal: String,
    vertical: &'static str,
    start: f64,
    width: f64,
    counts: Vec<usize>,
    curve: Vec<(f64, f64)>,
    curve_name: &'static str,
}

impl Bars {
    /// Statistics of all slices, against what perfect samples have there.
    fn of_slices(sigreg: &SigregReading) -> Self {
        const BINS: usize = 40;
        let largest = sigreg.per_slice.iter().copied().fold(sigreg.slice_quantiles.q999, f64::max);
        let width = largest / BINS as f64;
        let mut counts = vec![0; BINS];
        for value in &sigreg.per_slice {
            counts[((value / width) as usize).min(BINS - 1)] += 1;
        }
        let expected = |bin: usize| {
            let edges = [bin, bin + 1].map(|edge| sigreg.slice_null.p_value(width * edge as f64));
            (width * (bin as f64 + 0.5), (edges[0] - edges[1]) * sigreg.slices as f64)
        };
        Self {
            caption: "SIGReg of single slices",
            horizontal: format!("mean {:.3}, {:.2} x floor", sigreg.mean, sigreg.ratio),
            vertical: "slices",
            start: 0.,
            width,
            counts,
            curve: (0..BINS).map(expected).collect(),
            curve_name: "perfect Gaussian sample",
        }
    }

    /// The samples along the worst slice, against the standard normal.
    fn of_worst_slice(reading: &Reading) -> Self {
        const POINTS: usize = 400;
        let Histogram { start, width, counts } = reading.worst_slice_histogram.clone();
        let step = width * counts.len() as f64 / POINTS as f64;
        let scale = reading.samples as f64 * width / (2. * std::f64::consts::PI).sqrt();
        let normal = |point: usize| {
            let value = start + step * point as f64;
            (value, scale * (-0.5 * value * value).exp())
        };
        let describe = |worst: &lejepa_loss::gauge::Slice| {
            format!("slice {}, SIGReg {:.2}, sd {:.3}", worst.index, worst.statistic, worst.deviation)
        };
        Self {
            caption: "samples along the worst slice",
            horizontal: reading.worst_slices.first().map(describe).unwrap_or_default(),
            vertical: "samples",
            start,
            width,
            counts,
            curve: (0..=POINTS).map(normal).collect(),
            curve_name: "standard normal",
        }
    }

    fn draw(&self, panel: &Panel<'_>) -> Drawn {
        let edge = |bin: usize| self.start + self.width * bin as f64;
        let top = self.top();
        let mut chart = ChartBuilder::on(panel)
            .caption(self.caption, (FONT, 16))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(self.start..edge(self.counts.len()), 0f64..top)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .x_desc(&self.horizontal)
            .y_desc(self.vertical)
            .x_labels(7)
            .y_labels(7)
            .x_label_formatter(&|value| value.to_string())
            .y_label_formatter(&|count| count.to_string())
            .draw()?;
        let bars = self.counts.iter().enumerate().map(|(bin, count)| {
            Rectangle::new([(edge(bin), 0.), (edge(bin + 1), *count as f64)], MEASURED.mix(0.55).filled())
        });
        chart
            .draw_series(bars)?
            .label("measured")
            .legend(|(x, y)| Rectangle::new([(x + 2, y - 5), (x + 14, y + 5)], MEASURED.mix(0.55).filled()));
        let curve = self.curve.iter().map(|(value, count)| (*value, count.min(top)));
        chart
            .draw_series(LineSeries::new(curve, PERFECT.stroke_width(2)))?
            .label(self.curve_name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], PERFECT.stroke_width(2)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font((FONT, 13))
            .background_style(WHITE.mix(0.85))
            .draw()?;
        Ok(())
    }

    /// Where the axis of counts ends: above the bars, with room for a legend. The curve may be a needle
    /// beside them and must not flatten them.
    fn top(&self) -> f64 {
        let bars = self.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let curve = self.curve.iter().map(|(_, count)| *count).fold(0., f64::max);
        1.35 * bars.max(curve.min(2. * bars))
    }
}

/// A label of a logarithmic axis.
fn power(value: f64) -> String {
    if (1e-3..1e4).contains(&value) { value.to_string() } else { format!("{value:.0e}") }
}
