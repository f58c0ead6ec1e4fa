//! Fixed against resampled directions (paper, figure "resampling"): `resampling [PICTURE.svg]`.
//!
//! Points that are far from Gaussian descend on SIGReg with `M` directions per step, either the same at
//! every step or drawn anew. The mean statistic over fresh directions after training, over its floor,
//! tells how well the whole space was covered: a few resampled directions do what thousands of fixed
//! ones do.

mod points;

use lejepa_loss::{Directions, EppsPulley, Sigreg};
use plotters::prelude::*;
use points::{Points, x_shape};

const SAMPLES: usize = 256;
const DIM: usize = 64;
const STEPS: u64 = 300;
const LEARNING_RATE: f32 = 0.03;
const MOST_SLICES: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "resampling.svg".into());
    // Standard deviations from 0.1 to 3: some dimensions are nearly lost, others too wide.
    let spread = |index: usize| 0.1 * 30f32.powf((index % DIM) as f32 / (DIM - 1) as f32);
    let start: Vec<f32> = x_shape(SAMPLES, DIM, 1)
        .into_iter()
        .enumerate()
        .map(|(index, value)| spread(index) * value)
        .collect();
    let judge = Sigreg::new(EppsPulley::new(5., 17)?, 4096);
    let floor = judge.floor(SAMPLES).ok_or("Epps-Pulley has a floor")?;
    let over_floor = |points: &Points| -> Result<f64, Box<dyn std::error::Error>> {
        let fresh = judge.forward(points.tensor(), u64::MAX)?;
        Ok(f64::from(fresh.to_scalar::<f32>()?) / floor)
    };
    let before = over_floor(&Points::new(start.clone(), DIM)?)?;
    eprintln!("before: {before:.1} x floor");

    let mut curves = vec![];
    for directions in [Directions::Fixed, Directions::Gaussian] {
        let mut curve = vec![];
        let mut slices = 1;
        while slices <= MOST_SLICES {
            let sigreg = Sigreg::new(EppsPulley::new(5., 17)?, slices).with_directions(directions);
            let mut points = Points::new(start.clone(), DIM)?;
            for step in 0..STEPS {
                let loss = sigreg.forward(points.tensor(), step)?;
                points.descend(&loss, LEARNING_RATE)?;
            }
            let after = over_floor(&points)?;
            eprintln!("{directions:?}, {slices} slices: {after:.2} x floor");
            curve.push((slices as f64, after));
            slices *= 2;
        }
        curves.push((directions, curve));
    }
    draw(&path, before, &curves)?;
    eprintln!("{path}");
    Ok(())
}

fn draw(
    path: &str,
    before: f64,
    curves: &[(Directions, Vec<(f64, f64)>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let picture = SVGBackend::new(path, (760, 480)).into_drawing_area();
    picture.fill(&WHITE)?;
    let most = MOST_SLICES as f64;
    let lowest = curves.iter().flat_map(|(_, curve)| curve).map(|point| point.1).fold(1., f64::min);
    let title = format!("SIGReg over fresh directions after {STEPS} steps, {DIM} dimensions");
    let mut chart = ChartBuilder::on(&picture)
        .margin(16)
        .caption(title, ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d((1f64..most).log_scale().base(2.), (lowest * 0.8..before * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("directions per step")
        .y_desc("over the floor of a Gaussian")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| format!("{value}"))
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 14))
        .draw()?;
    let mut line =
        |points: Vec<(f64, f64)>, colour: RGBColor, label: &str| -> Result<(), Box<dyn std::error::Error>> {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            Ok(())
        };
    for (directions, curve) in curves {
        match directions {
            Directions::Fixed => line(curve.clone(), RGBColor(40, 90, 200), "the same at every step")?,
            _ => line(curve.clone(), RGBColor(20, 140, 70), "drawn anew at every step")?,
        }
    }
    let grey = RGBColor(140, 140, 140);
    line(vec![(1., before), (most, before)], grey, "before training")?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(RGBColor(200, 200, 200))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(picture.present()?)
}
