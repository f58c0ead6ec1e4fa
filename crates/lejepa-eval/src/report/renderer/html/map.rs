//! Maps of images that show the image under the pointer, without a script: dots are radio buttons, so that a
//! tap or the arrow keys choose one, and a map is a single stop for the tabulator.

use std::fmt::Write;

use lejepa_page::html::Text;
use lejepa_page::number::{count, percent};

use crate::pictures::{CandidatePictures, EmbeddingMap, MapMethod, SetPictures};
use crate::report::DatasetReport;

/// With more classes a legend says nothing.
const LEGEND: usize = 24;
/// Share of a map's side that stays free at each edge.
const MARGIN: f32 = 0.04;

/// All maps of a set; `index` tells it from others of the page.
pub(super) fn section(dataset: &DatasetReport, pictures: &SetPictures, index: usize) -> String {
    let Some(sprite) = pictures.thumbnails.picture.uri().filter(|_| !pictures.points.is_empty()) else {
        return String::new();
    };
    let mut html = format!(
        "<h3>Map of test images</h3>\n<p class=\"note\">{} of {} test images, by class. Point at a dot, tap \
         it, or walk with the arrow keys to see its image. Components are the two along which features vary \
         most; t-SNE keeps neighbours together, and its distances between groups mean little.</p>\n",
        count(pictures.points.len()),
        count(dataset.test),
    );
    html.push_str(&legend(dataset));
    let _ = writeln!(
        html,
        "<div class=\"figures maps\" style=\"--sprite:url({sprite});--columns:{};--rows:{}\">",
        pictures.thumbnails.columns, pictures.thumbnails.rows
    );
    for (number, candidate) in pictures.candidates.iter().enumerate() {
        for (which, map) in candidate.maps.iter().enumerate() {
            let name = format!("map-{index}-{number}-{which}");
            html.push_str(&figure(dataset, pictures, candidate, (map, &name)));
        }
    }
    html.push_str("</div>\n");
    html
}

fn legend(dataset: &DatasetReport) -> String {
    if dataset.classes.len() > LEGEND {
        return String::new();
    }
    let mut html = String::from("<ul class=\"legend\">\n");
    for (class, name) in dataset.classes.iter().enumerate() {
        let hue = hue(class, dataset);
        let odd = if class % 2 == 1 { " o" } else { "" };
        let _ = writeln!(html, "<li><span class=\"dot{odd}\" style=\"--h:{hue}\"></span>{}</li>", Text(name));
    }
    html.push_str("</ul>\n");
    html
}

fn figure(
    dataset: &DatasetReport,
    pictures: &SetPictures,
    candidate: &CandidatePictures,
    (map, name): (&EmbeddingMap, &str),
) -> String {
    let method = match map.method {
        MapMethod::Pca { variance } => {
            format!("principal components, {} % of the variance", percent(variance))
        }
        MapMethod::Tsne { perplexity } => format!("t-SNE, perplexity {perplexity}"),
    };
    let mut html = format!(
        "<figure>\n<figcaption>{} <small>{method}</small></figcaption>\n\
         <div class=\"map\" role=\"radiogroup\" aria-label=\"{}, {method}\">\n",
        Text(&candidate.candidate),
        Text(&candidate.candidate)
    );
    let [across, up] = [0, 1].map(|axis| shares(map, axis));
    for (place, point) in pictures.points.iter().enumerate() {
        let (Some(&left), Some(&height)) = (across.get(place), up.get(place)) else { continue };
        let top = 1. - height;
        let odd = if point.label % 2 == 1 { " o" } else { "" };
        let side = [odd, if left > 0.5 { " l" } else { "" }, if top > 0.5 { " u" } else { "" }].concat();
        let [column, row] = pictures.thumbnails.place(place);
        let class = dataset.classes.get(point.label).map_or("", String::as_str);
        let _ = writeln!(
            html,
            "<label class=\"dot{side}\" style=\"left:{:.1}%;top:{:.1}%;--h:{}\">\
             <input type=\"radio\" name=\"{name}\"/><span><i style=\"--x:{column};--y:{row}\"></i>{}</span></label>",
            100. * left,
            100. * top,
            hue(point.label, dataset),
            Text(class)
        );
    }
    let _ = writeln!(
        html,
        "<label class=\"none\"><input type=\"radio\" name=\"{name}\" checked/>no image</label>\n\
         </div>\n</figure>"
    );
    html
}

/// Places along an axis between 0 and 1; in the middle if all are the same.
fn shares(map: &EmbeddingMap, axis: usize) -> Vec<f32> {
    let values = || map.places.iter().map(|place| place[axis]);
    let (low, high) =
        values().fold((f32::INFINITY, f32::NEG_INFINITY), |ends, it| (ends.0.min(it), ends.1.max(it)));
    let share = |value: f32| if high > low { (value - low) / (high - low) } else { 0.5 };
    values().map(|value| MARGIN + (1. - 2. * MARGIN) * share(value)).collect()
}

/// Degrees around the circle of colours.
fn hue(class: usize, dataset: &DatasetReport) -> usize {
    (25 + 360 * class / dataset.classes.len().max(1)) % 360
}
