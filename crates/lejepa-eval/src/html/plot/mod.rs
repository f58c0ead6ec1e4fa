//! Charts as inline SVG whose colours are those of the page, in light and in dark.

mod axis;
mod bar_chart;
mod drawing;
mod heat_map;
mod line_chart;

pub(super) use axis::{Axis, Scale};
pub(super) use bar_chart::{Bar, BarChart, Group};
pub(super) use drawing::swatch;
pub(super) use heat_map::HeatMap;
pub(super) use line_chart::{EndLabels, LineChart, Point, Series, Style};
