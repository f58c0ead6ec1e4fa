//! The course of runs as a picture: loss, RankMe and k-NN accuracy over the steps.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::run_folder::Run;

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;
type Points = Vec<(f64, f64)>;

const SIZE: (u32, u32) = (1600, 400);
const FONT: &str = "sans-serif";
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 98, 165),
    RGBColor(214, 92, 30),
    RGBColor(42, 140, 82),
    RGBColor(140, 70, 160),
    RGBColor(190, 150, 20),
    RGBColor(90, 90, 90),
];

/// The picture as SVG.
pub(super) fn draw(runs: &[Run]) -> Result<String> {
    let mut svg = String::new();
    draw_into(&mut svg, runs).map_err(|problem| anyhow!("cannot draw the plot: {problem}"))?;
    Ok(svg)
}

fn draw_into(svg: &mut String, runs: &[Run]) -> Drawn {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (legend, panels) = area.split_vertically(40);
    let width = SIZE.0 as i32 / runs.len().max(1) as i32;
    for (index, run) in runs.iter().enumerate() {
        let left = 20 + index as i32 * width;
        let name = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        legend.draw(&Rectangle::new([(left, 16), (left + 24, 22)], colour(index).filled()))?;
        legend.draw(&Text::new(name, (left + 32, 12), (FONT, 15).into_font()))?;
    }
    let losses = |run: &Run| smooth(&run.losses);
    let features =
        |run: &Run| run.looks.iter().map(|look| (look.step as f64, look.features.rankme)).collect();
    let embeddings =
        |run: &Run| run.looks.iter().map(|look| (look.step as f64, look.embeddings.rankme)).collect();
    let knn =
        |run: &Run| run.looks.iter().filter_map(|look| Some((look.step as f64, 100. * look.knn?))).collect();
    let curves: [(&str, Vec<Points>); 4] = [
        ("loss", runs.iter().map(losses).collect()),
        ("RankMe of the embeddings", runs.iter().map(embeddings).collect()),
        ("RankMe of the features", runs.iter().map(features).collect()),
        ("k-NN accuracy in %", runs.iter().map(knn).collect()),
    ];
    for (panel, (title, curves)) in panels.split_evenly((1, curves.len())).iter().zip(curves) {
        draw_panel(panel, title, curves)?;
    }
    area.present()?;
    Ok(())
}

/// Means over a hundredth of the run: single steps hide the course.
fn smooth(losses: &[f64]) -> Points {
    let window = losses.len().div_ceil(100).max(1);
    let mean = |(index, values): (usize, &[f64])| {
        let middle = (index * window) as f64 + values.len() as f64 / 2.;
        (middle, values.iter().sum::<f64>() / values.len() as f64)
    };
    losses.chunks(window).enumerate().map(mean).collect()
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn draw_panel(panel: &Panel<'_>, title: &str, curves: Vec<Points>) -> Drawn {
    let points = || curves.iter().flatten().filter(|(_, y)| y.is_finite());
    let last = points().map(|&(x, _)| x).fold(1., f64::max);
    let lowest = points().map(|&(_, y)| y).fold(f64::INFINITY, f64::min);
    let highest = points().map(|&(_, y)| y).fold(f64::NEG_INFINITY, f64::max);
    if lowest > highest {
        panel.draw(&Text::new(format!("no {title}"), (90, 90), (FONT, 16).into_font()))?;
        return Ok(());
    }
    let margin = 0.05 * (highest - lowest).max(1e-6);
    let mut chart = ChartBuilder::on(panel)
        .caption(title, (FONT, 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0. ..1.02 * last, lowest - margin..highest + margin)?;
    chart.configure_mesh().light_line_style(WHITE).x_desc("step").x_labels(6).y_labels(6).draw()?;
    for (index, curve) in curves.into_iter().enumerate() {
        let finite: Points = curve.into_iter().filter(|(_, y)| y.is_finite()).collect();
        chart.draw_series(LineSeries::new(finite, colour(index).stroke_width(2)))?;
    }
    Ok(())
}
