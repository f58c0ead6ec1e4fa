//! Charts as inline SVG whose colours are those of the page, in light and in dark.

mod axis;
mod bar_chart;
mod drawing;
mod heat_map;
mod line_chart;

pub(crate) use axis::{Axis, Scale};
pub(crate) use bar_chart::{Bar, BarChart, Group};
pub(crate) use drawing::swatch;
pub(crate) use heat_map::HeatMap;
pub(crate) use line_chart::{EndLabels, LineChart, Point, Series, Style};
