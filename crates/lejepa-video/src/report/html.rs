//! A segmentation's report as HTML: how good masks are, and what they look like.

use std::fmt::Write;

use lejepa_page::html::{Align, Page, Table, Text, figure, picture, words};
use lejepa_page::number::{counted, percent};
use lejepa_picture::Jpeg;

use crate::{ClipReport, Score, SegmentationReport};

/// More clips than this are folded away.
const OPEN_CLIPS: usize = 6;

impl SegmentationReport {
    /// Everything as one HTML file, which loads nothing.
    pub fn to_html(&self) -> String {
        let mut page = Page::new("Segmentation");
        page.push("<header>\n<h1>Segmentation</h1>\n");
        page.push(facts(self));
        page.push("</header>\n<main>\n");
        page.push(format!("<section>\n<h2>Masks</h2>\n{}</section>\n", body(self)));
        page.push(format!(
            "<section>\n<h2>Command</h2>\n<pre><code>{}</code></pre>\n</section>\n</main>\n",
            Text(&self.command)
        ));
        page.finish()
    }

    /// A section of a larger page, by this id.
    pub fn to_html_section(&self, id: &str) -> String {
        format!(
            "<section id=\"{id}\">\n<h2>{}</h2>\n{}{}</section>\n",
            Text(&self.title()),
            facts(self),
            body(self)
        )
    }
}

fn facts(report: &SegmentationReport) -> String {
    let SegmentationReport {
        // Of the page.
        command: _,
        protocol,
        encoder,
        size: (height, width),
        // Remarks.
        notes: _,
        clips,
        // A table of its own.
        rows: _,
    } = report;
    let frames = clips.iter().map(|clip| clip.frames).sum();
    format!(
        "<p class=\"facts\">{} · {} · <code>{}</code> · masks of <code>{}</code> · whole frames resized to \
         {height}x{width}</p>\n",
        counted(clips.len(), "clip"),
        counted(frames, "frame"),
        Text(protocol),
        Text(encoder)
    )
}

fn body(report: &SegmentationReport) -> String {
    let mut html = String::new();
    if !report.rows.is_empty() {
        html.push_str(&scores(report));
    }
    let remarks = report.remarks();
    if !remarks.is_empty() {
        let remarks: String = remarks.iter().map(|remark| format!("<li>{}</li>\n", Text(remark))).collect();
        let _ = write!(html, "<ul class=\"notes\">\n{remarks}</ul>\n");
    }
    for clip in &report.clips {
        html.push_str(&of_clip(clip, report.clips.len() <= OPEN_CLIPS));
    }
    html
}

fn scores(report: &SegmentationReport) -> String {
    let columns = [
        ("masks of", Align::Left),
        ("J", Align::Right),
        ("F", Align::Right),
        ("J&F", Align::Right),
        ("objects", Align::Right),
    ];
    let mut table =
        Table::new("Scores of all clips", "Percent, mean over all objects of all clips.", &columns);
    for row in &report.rows {
        let mut cells = vec![words(&row.name)];
        cells.extend(measures(row.score));
        cells.push(figure(row.objects.to_string()));
        table.row(&cells);
    }
    let of_heads = if report.clips.iter().any(compares_heads) { OF_HEADS } else { "" };
    format!("{}<p class=\"note\">{OF_MEASURES}{of_heads}</p>\n", table.finish())
}

const OF_MEASURES: &str = "J is the Jaccard index of the regions, F the measure of their contours, as DAVIS \
    defines them. The centred box has half the height and half the width of the frame.";
const OF_HEADS: &str =
    " A best head is chosen with the true masks, and is therefore no result of an encoder alone.";

fn compares_heads(clip: &ClipReport) -> bool {
    clip.rows.iter().flat_map(|row| &row.objects).any(|object| object.head.is_some())
}

fn measures(score: Score) -> [(String, Align); 3] {
    [score.jaccard, score.contour, score.mean()].map(|share| figure(percent(share)))
}

fn of_clip(clip: &ClipReport, open: bool) -> String {
    let ClipReport {
        name,
        frames,
        // In Markdown; here the stills show it.
        frames_with_truth: _,
        left_out,
        left_out_such_as: _,
        // With those of the set.
        remarks: _,
        rows: _,
        stills: _,
    } = clip;
    let name = Text(name);
    let counts = match left_out {
        0 => counted(*frames, "frame"),
        left_out => format!("{}, {left_out} left out", counted(*frames, "frame")),
    };
    let mut html = stills(clip);
    if !clip.rows.is_empty() {
        html.push_str(&objects(clip));
    }
    if !clip.left_out_such_as.is_empty() {
        let reasons: String =
            clip.left_out_such_as.iter().map(|reason| format!("<li>{}</li>\n", Text(reason))).collect();
        let _ = write!(html, "<p>Left out:</p>\n<ul class=\"notes\">\n{reasons}</ul>\n");
    }
    match open {
        true => format!("<h3>{name} <small>{counts}</small></h3>\n{html}"),
        false => format!("<details>\n<summary>{name}, {counts}</summary>\n{html}</details>\n"),
    }
}

/// A column per frame: the mask that was found, below it the true one.
fn stills(clip: &ClipReport) -> String {
    if clip.stills.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Frames of {}\">\n\
         <table class=\"pictures stills\">\n<thead>\n<tr><th scope=\"col\">frame</th>",
        Text(&clip.name)
    );
    for still in &clip.stills {
        let _ = write!(html, "<th scope=\"col\">{}</th>", Text(&still.frame));
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n<tr><th scope=\"row\">found</th>");
    for still in &clip.stills {
        let what = format!("frame {} with the mask that was found", still.frame);
        let _ = write!(html, "<td>{}</td>", picture(still.found.uri(), &what));
    }
    html.push_str("</tr>\n");
    if clip.stills.iter().any(|still| still.truth.is_some()) {
        html.push_str("<tr><th scope=\"row\">true</th>");
        for still in &clip.stills {
            let what = format!("frame {} with the true mask", still.frame);
            let _ = write!(html, "<td>{}</td>", picture(still.truth.as_ref().and_then(Jpeg::uri), &what));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    html
}

fn objects(clip: &ClipReport) -> String {
    let compares_heads = compares_heads(clip);
    let titles =
        ["object", "head", "J", "F", "J&F"].into_iter().filter(|title| *title != "head" || compares_heads);
    let columns: Vec<_> =
        [("masks of", Align::Left)].into_iter().chain(titles.map(|title| (title, Align::Right))).collect();
    let mut table = Table::new(&format!("Scores of {}", clip.name), "", &columns);
    for row in &clip.rows {
        for object in &row.objects {
            let mut cells = vec![words(&row.name), figure(object.object.to_string())];
            if compares_heads {
                cells.push(figure(object.head.map_or_else(|| "–".into(), |head| head.to_string())));
            }
            cells.extend(measures(object.score));
            table.row(&cells);
        }
    }
    table.finish()
}
