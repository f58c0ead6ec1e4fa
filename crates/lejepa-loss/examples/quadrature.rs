//! Quadrature error against knots (paper, figure "quadrature"): `quadrature [PICTURE.svg]`.
//!
//! Over the whole line the Epps-Pulley integral has a closed form, the one-dimensional BHEP statistic
//! with `beta = 1` times `sqrt(2 pi)`. The trapezoid rule comes near it faster than quadratically, until
//! what is left is the part beyond `t_max`.

use candle_core::{Device, Tensor};
use lejepa_loss::{EppsPulley, Statistic, multivariate};
use plotters::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

const SAMPLES: usize = 512;
const T_MAX: f64 = 5.;

type Draw = fn(&mut ChaCha8Rng) -> f64;

/// One-dimensional embeddings of an encoder, good and bad.
const DISTRIBUTIONS: [(&str, RGBColor, Draw); 6] = [
    ("Gaussian", RGBColor(20, 140, 70), |generator| StandardNormal.sample(generator)),
    ("uniform", RGBColor(40, 90, 200), |generator| (generator.random::<f64>() - 0.5) * 12f64.sqrt()),
    ("Laplace", RGBColor(200, 60, 50), |generator| {
        let size: f64 = Exp1.sample(generator);
        size * std::f64::consts::FRAC_1_SQRT_2 * if generator.random() { 1. } else { -1. }
    }),
    ("two clusters", RGBColor(150, 70, 180), |generator| {
        let noise: f64 = StandardNormal.sample(generator);
        0.3 * noise + if generator.random() { 1. } else { -1. }
    }),
    ("wide, shifted", RGBColor(220, 140, 20), |generator| {
        let value: f64 = StandardNormal.sample(generator);
        2. * value + 1.
    }),
    ("collapsed", RGBColor(90, 90, 90), |_generator| 0.),
];

struct Curve {
    name: &'static str,
    colour: RGBColor,
    /// Knots and error.
    points: Vec<(f64, f64)>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "quadrature.svg".into());
    let mut generator = ChaCha8Rng::seed_from_u64(0);
    let mut curves = vec![];
    for (name, colour, draw) in DISTRIBUTIONS {
        let samples: Vec<f64> = (0..SAMPLES).map(|_| draw(&mut generator)).collect();
        let column = Tensor::from_slice(&samples, (SAMPLES, 1), &Device::Cpu)?;
        let exact = multivariate::bhep(&column, 1.)? * std::f64::consts::TAU.sqrt();
        let mut curve = vec![];
        for knots in (3..=65).step_by(2) {
            let error = (EppsPulley::new(T_MAX, knots)?.value(&samples) / exact - 1.).abs();
            curve.push((knots as f64, error));
            if knots == 17 {
                eprintln!("{name}: {exact:.4}, relative error with 17 knots {error:.1e}");
            }
        }
        curves.push(Curve { name, colour, points: curve });
    }
    draw(&path, &curves)?;
    eprintln!("{path}");
    Ok(())
}

fn draw(path: &str, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    let picture = SVGBackend::new(path, (760, 480)).into_drawing_area();
    picture.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&picture)
        .margin(16)
        .caption(format!("Trapezoid rule over [-{T_MAX}, {T_MAX}]"), ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d((3f64..65.).log_scale().base(2.), (1e-8..10f64).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("knots")
        .y_desc("relative error of the statistic")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| format!("{value:.0e}"))
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 14))
        .draw()?;
    let grey = RGBColor(170, 170, 170);
    let quadratic = (3..=65).map(|knots| (f64::from(knots), 9. / f64::from(knots * knots)));
    let with_legend =
        |colour: RGBColor| move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2));
    chart
        .draw_series(LineSeries::new(quadratic, grey.stroke_width(2)))?
        .label("quadratic")
        .legend(with_legend(grey));
    for Curve { name, colour, points } in curves {
        let points = points.iter().map(|&(knots, error)| (knots, error.max(1e-8)));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(*name)
            .legend(with_legend(*colour));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(RGBColor(200, 200, 200))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(picture.present()?)
}
