//! The "X" unfolded by each statistic (paper, figure "nonparametric"): `unfold [PICTURE.svg]`.
//!
//! 100 points start as an "X" in the first two dimensions and as a Gaussian in all others, and descend
//! on a statistic of 10 random directions that are drawn anew at every step. The upper row has no other
//! dimensions, the lower row 1022. An "X" has `E[x^2 y^2] = 3`, a Gaussian 1.
//!
//! The upper row tells the statistics apart: VICReg's limit sees means and variances only, which are
//! right from the start, and leaves the "X" alone. Among 1024 dimensions the two of the "X" are a 500th of every
//! slice, and what unfolds them is mostly the random walk of the resampled directions, whatever the statistic.

mod points;

use std::sync::Arc;

use candle_core::Device;
use lejepa_loss::{
    AndersonDarling, CramerVonMises, Directions, EppsPulley, ExtendedJarqueBera, JarqueBera, Moments,
    ShapiroWilk, Statistic, VicregLimit, Watson,
};
use plotters::prelude::*;
use points::{Points, x_shape};

const SAMPLES: usize = 100;
const SLICES: usize = 10;
const PANEL: u32 = 150;
const FRAME: f64 = 4.;

struct Setting {
    dim: usize,
    steps: u64,
    learning_rate: f32,
}

const SETTINGS: [Setting; 2] = [
    Setting { dim: 2, steps: 500, learning_rate: 0.05 },
    Setting { dim: 1024, steps: 600, learning_rate: 0.05 },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "unfold.svg".into());
    let statistics: [Arc<dyn Statistic>; 9] = [
        Arc::new(EppsPulley::new(5., 17)?),
        Arc::new(CramerVonMises),
        Arc::new(AndersonDarling),
        Arc::new(Watson),
        Arc::new(ShapiroWilk::default()),
        Arc::new(JarqueBera),
        Arc::new(ExtendedJarqueBera),
        Arc::new(Moments::new(4)?),
        Arc::new(VicregLimit),
    ];
    let size = (PANEL * (1 + statistics.len() as u32), (PANEL + 20) * SETTINGS.len() as u32);
    let picture = SVGBackend::new(&path, size).into_drawing_area();
    picture.fill(&WHITE)?;
    let panels = picture.split_evenly((SETTINGS.len(), 1 + statistics.len()));
    for (setting, panels) in SETTINGS.iter().zip(panels.chunks(1 + statistics.len())) {
        let start = x_shape(SAMPLES, setting.dim, 0);
        let title = format!("{} dimensions", setting.dim);
        draw(&panels[0], &title, &Points::new(start.clone(), setting.dim)?.first_two())?;
        for (panel, statistic) in panels[1..].iter().zip(&statistics) {
            let mut points = Points::new(start.clone(), setting.dim)?;
            for step in 0..setting.steps {
                let directions = Directions::Gaussian.draw(setting.dim, SLICES, step, &Device::Cpu)?;
                let loss = statistic.clone().along(points.tensor(), &directions)?.mean_all()?;
                points.descend(&loss, setting.learning_rate)?;
            }
            let shape = draw(panel, statistic.name(), &points.first_two())?;
            eprintln!("{:>4} dimensions, {:<20} x2y2 {shape:.2}", setting.dim, statistic.name());
        }
    }
    picture.present()?;
    eprintln!("{path}");
    Ok(())
}

/// Draws points and returns `E[x^2 y^2]` in units of the variances.
fn draw<B: DrawingBackend>(
    panel: &DrawingArea<B, plotters::coord::Shift>,
    title: &str,
    points: &[(f64, f64)],
) -> Result<f64, Box<dyn std::error::Error>>
where
    B::ErrorType: 'static,
{
    let mean =
        |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| f(x, y)).sum::<f64>() / points.len() as f64;
    let shape = mean(&|x, y| x * x * y * y) / (mean(&|x, _| x * x) * mean(&|_, y| y * y));
    let mut chart = ChartBuilder::on(panel)
        .margin(4)
        .caption(title, ("sans-serif", 12))
        .build_cartesian_2d(-FRAME..FRAME, -FRAME..FRAME)?;
    chart.configure_mesh().disable_mesh().disable_x_axis().disable_y_axis().draw()?;
    chart
        .plotting_area()
        .draw(&Rectangle::new([(-FRAME, -FRAME), (FRAME, FRAME)], RGBColor(200, 200, 200)))?;
    let dots = points.iter().map(|&point| Circle::new(point, 2, RGBColor(40, 90, 180).mix(0.6).filled()));
    chart.draw_series(dots)?;
    let note = format!("x²y² {shape:.2}");
    chart.plotting_area().draw(&Text::new(
        note,
        (0.2 - FRAME, FRAME - 0.1),
        ("sans-serif", 11).into_font().color(&BLACK),
    ))?;
    Ok(shape)
}
