//! From values to places on a line, and the ticks between.

use crate::number::significant;

/// An axis of a chart.
pub struct Axis {
    /// What its values are.
    pub title: String,
    /// How values become distances.
    pub scale: Scale,
    /// Values with names; chosen by the chart if there are none.
    pub ticks: Vec<(f64, String)>,
}

/// How values become distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps at equal distances.
    Linear,
    /// Values that are not positive have no place.
    Log,
}

/// An axis with its ends in values and in pixels.
pub(super) struct Placed {
    scale: Scale,
    /// In the scale's unit: values, or their logarithms.
    ends: [f64; 2],
    pixels: [f64; 2],
    pub(super) ticks: Vec<(f64, String)>,
}

/// About how many ticks are chosen.
const TICKS: f64 = 5.;

impl Axis {
    /// An axis of equal steps with ticks chosen by the chart.
    pub fn linear(title: &str) -> Self {
        Self { title: title.into(), scale: Scale::Linear, ticks: Vec::new() }
    }

    /// Ends where its outermost ticks or values are.
    pub(super) fn place(&self, values: impl Iterator<Item = f64>, pixels: [f64; 2]) -> Placed {
        let values = values.chain(self.ticks.iter().map(|(value, _)| *value));
        let (low, high) = values
            .filter_map(|value| self.scale.apply(value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match high - low {
            span if span > 0. && span.is_finite() => (low, high),
            // A single value, or none.
            _ if low.is_finite() => (low - 0.5, low + 0.5),
            _ => (0., 1.),
        };
        let mut placed = Placed { scale: self.scale, ends: [low, high], pixels, ticks: self.ticks.clone() };
        if placed.ticks.is_empty() {
            placed.choose_ticks();
        }
        placed
    }
}

impl Scale {
    fn apply(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => Some(value),
            Self::Log => (value > 0.).then(|| value.log10()),
        }
        .filter(|value| value.is_finite())
    }
}

impl Placed {
    /// Round steps, and ends that are ticks.
    fn choose_ticks(&mut self) {
        let [low, high] = self.ends;
        let step = match self.scale {
            Scale::Linear => round_step((high - low) / TICKS),
            Scale::Log => ((high - low) / TICKS).ceil(),
        };
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        self.ends = [first * step, last * step];
        let count = (last - first).clamp(1., 20.) as usize;
        for index in 0..=count {
            let place = (first + index as f64) * step;
            let value = if self.scale == Scale::Log { 10f64.powf(place) } else { place };
            self.ticks.push((value, significant(value)));
        }
    }

    /// The place of a value, if it has one.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let ([low, high], [start, end]) = (self.ends, self.pixels);
        let value = self.scale.apply(value)?;
        Some(start + (value - low) / (high - low) * (end - start)).filter(|place| place.is_finite())
    }

    /// A value by the name of its tick, or as a number.
    pub(super) fn name(&self, value: f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| *tick == value);
        tick.map_or_else(|| significant(value), |(_, name)| name.clone())
    }
}

/// The next of 1, 2, 5, 10 and so on.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1., 2., 5.]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&round| round >= step * 0.999)
        .unwrap_or(10. * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: Scale, values: &[f64]) -> Vec<String> {
        let axis = Axis { title: String::new(), scale, ticks: Vec::new() };
        axis.place(values.iter().copied(), [0., 100.]).ticks.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(ticks(Scale::Linear, &[31.2, 78.9]), ["30", "40", "50", "60", "70", "80"]);
        assert_eq!(ticks(Scale::Log, &[0.02, 30.]), ["0.01", "0.1", "1", "10", "100"]);
    }

    #[test]
    fn one_value_none_and_those_without_a_place_do_no_harm() {
        assert!(ticks(Scale::Linear, &[50.]).len() > 1);
        assert!(ticks(Scale::Linear, &[]).len() > 1);
        assert!(ticks(Scale::Log, &[0., -1., f64::NAN, f64::INFINITY]).len() > 1);
    }
}
