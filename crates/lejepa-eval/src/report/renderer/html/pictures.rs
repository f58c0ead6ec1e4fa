//! Test images beside what encoders see in them.

use std::fmt::Write;

use lejepa_page::html::{Text, picture};
use lejepa_picture::Jpeg;

use crate::pictures::{CandidatePictures, PatchPictures, SetPictures};
use crate::report::DatasetReport;

/// A row per image; nothing if no candidate has pictures.
pub(super) fn section(dataset: &DatasetReport, pictures: &SetPictures) -> String {
    let candidates: Vec<&CandidatePictures> =
        pictures.candidates.iter().filter(|candidate| !candidate.patches.is_empty()).collect();
    if candidates.is_empty() || pictures.images.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<h3>What encoders see</h3>\n<p class=\"note\">Colours: the first three principal components of an \
         image's patches. Attention: what the class token looks at, on average over heads; mask: the patches \
         that hold 60 % of it.</p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Pictures of {}\">\n\
         <table class=\"pictures\">\n<thead>\n<tr><th scope=\"col\" rowspan=\"2\">image</th>",
        Text(&dataset.name)
    );
    for candidate in &candidates {
        let columns = columns(candidate).len();
        let _ =
            write!(html, "<th scope=\"colgroup\" colspan=\"{columns}\">{}</th>", Text(&candidate.candidate));
    }
    html.push_str("</tr>\n<tr>");
    for (name, _) in candidates.iter().flat_map(|candidate| columns(candidate)) {
        let _ = write!(html, "<th scope=\"col\">{name}</th>");
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for (row, image) in pictures.images.iter().enumerate() {
        let class = dataset.classes.get(image.label).map_or("", String::as_str);
        let seen = candidates[0].patches.get(row).map(|patches| &patches.image);
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<span>{}</span></th>",
            picture(seen.and_then(Jpeg::uri), &format!("test image {} of class {class}", image.id)),
            Text(class)
        );
        for candidate in &candidates {
            for (name, of) in columns(candidate) {
                let what = format!("{name} of {}, {class}", candidate.candidate);
                let _ = write!(
                    html,
                    "<td>{}</td>",
                    picture(candidate.patches.get(row).and_then(of).and_then(Jpeg::uri), &what)
                );
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

type Column = (&'static str, fn(&PatchPictures) -> Option<&Jpeg>);

/// What there is of a candidate.
fn columns(candidate: &CandidatePictures) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![("components", |patches| Some(&patches.components))];
    if candidate.patches.iter().any(|patches| patches.attention.is_some()) {
        columns.push(("attention", |patches| Some(&patches.attention.as_ref()?.heat)));
        columns.push(("mask", |patches| Some(&patches.attention.as_ref()?.mask)));
    }
    columns
}
