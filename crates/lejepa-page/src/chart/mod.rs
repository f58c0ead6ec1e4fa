//! Charts as inline SVG whose colours are those of the page, in light and in dark.

mod axis;
mod bar_chart;
mod drawing;
mod heat_map;
mod line_chart;

pub use axis::{Axis, Scale};
pub use bar_chart::{Bar, BarChart, Group};
pub use drawing::swatch;
pub use heat_map::HeatMap;
pub use line_chart::{EndLabels, LineChart, Point, Series, Style};
