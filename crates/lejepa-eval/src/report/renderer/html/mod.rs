//! A report as one HTML file: no scripts and nothing from elsewhere, readable in light and dark, on a
//! desktop, a phone and paper.

mod charts;
mod classes;
mod dataset;
mod isotropy;
mod map;
mod pictures;
mod scores;

use std::fmt::Write;

use lejepa_page::html::{Align, Page, Table, Text, code, figure, words};
use lejepa_page::number::counted;
use lejepa_video::SegmentationReport;

use super::{Rendered, Renderer, single};
use crate::Result;
use crate::report::footnotes::Footnotes;
use crate::report::number::PENDING;
use crate::report::remarks::seen;
use crate::report::score_table::{ScoreTable, score_tables};
use crate::report::{CandidateInfo, MissingDataset, Report};

/// `report.html`.
#[derive(Debug, Clone, Copy)]
pub struct Html;

const FILE: &str = "report.html";

impl Renderer for Html {
    fn files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn render(&self, report: &Report) -> Result<Vec<Rendered>> {
        Ok(single(FILE, to_html(report)))
    }
}

/// The whole report.
fn to_html(report: &Report) -> String {
    let Report {
        format: _,
        version,
        suite,
        // In the header.
        about: _,
        // By what the tables wait for.
        complete: _,
        command,
        seed,
        candidates: compared,
        datasets,
        missing: absent,
        videos,
        demonstration,
    } = report;
    let footnotes = Footnotes::new(report);
    let mut page = Page::new(&format!("Evaluation: {suite}"));
    page.push(header(report));
    page.push("<main>\n");
    if has_scores(report) {
        page.push(results(report, &footnotes));
    }
    if let Some(demonstration) = demonstration {
        page.push(isotropy::simulation(demonstration));
    }
    if !absent.is_empty() {
        page.push(missing(absent));
    }
    for (index, dataset) in datasets.iter().enumerate() {
        page.push(dataset::section(report, dataset, index, &footnotes));
    }
    for (index, video) in videos.iter().enumerate() {
        page.push(video.to_html_section(&format!("video-{index}")));
    }
    if !compared.is_empty() {
        page.push(candidates(compared));
    }
    if footnotes.iter().next().is_some() {
        page.push(protocols(&footnotes));
    }
    page.push(format!(
        "<section id=\"command\">\n<h2>Command</h2>\n<pre><code>{}</code></pre>\n\
         <p>lejepa {}, seed {seed}.</p>\n</section>\n",
        Text(command),
        Text(version),
    ));
    page.push("</main>\n");
    page.finish()
}

/// Whether there are main tables, or nothing at all: then their place says so.
fn has_scores(report: &Report) -> bool {
    report.datasets.iter().any(|dataset| !dataset.results.is_empty()) || !report.has_results()
}

fn header(report: &Report) -> String {
    let mut html = format!("<header>\n<h1>Evaluation: {}</h1>\n", Text(&report.suite));
    if !report.about.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", Text(&report.about));
    }
    let _ = writeln!(
        html,
        "<p class=\"facts\">{}seed {}</p>",
        [(report.candidates.len(), "candidate"), (report.datasets.len(), "labelled set")]
            .map(|(number, noun)| if number > 0 { counted(number, noun) + " · " } else { String::new() })
            .concat(),
        report.seed
    );
    let mut sections = Vec::new();
    if has_scores(report) {
        sections.push(("results".to_owned(), "Results"));
    }
    if report.demonstration.is_some() {
        sections.push(("simulation".into(), "Simulated features"));
    }
    if !report.missing.is_empty() {
        sections.push(("missing".into(), "Missing sets"));
    }
    sections.extend(
        (0..).zip(&report.datasets).map(|(index, it): (usize, _)| (format!("set-{index}"), &*it.name)),
    );
    let videos: Vec<String> = report.videos.iter().map(SegmentationReport::title).collect();
    sections
        .extend((0..).zip(&videos).map(|(index, title): (usize, _)| (format!("video-{index}"), &**title)));
    if !report.candidates.is_empty() {
        sections.push(("candidates".into(), "Candidates"));
    }
    if report.datasets.iter().any(|dataset| !dataset.results.is_empty()) {
        sections.push(("protocols".into(), "Protocols"));
    }
    sections.push(("command".into(), "Command"));
    html.push_str("<nav aria-label=\"Sections\">\n");
    for (id, name) in sections {
        let _ = writeln!(html, "<a href=\"#{id}\">{}</a>", Text(name));
    }
    html.push_str("</nav>\n</header>\n");
    html
}

fn results(report: &Report, footnotes: &Footnotes<'_>) -> String {
    let mut html = String::from("<section id=\"results\">\n<h2>Results</h2>\n");
    let tables = score_tables(report);
    if tables.is_empty() {
        html.push_str("<p>No result yet.</p>\n");
    }
    for table in &tables {
        html.push_str(&scores::table(table, footnotes));
    }
    if !tables.is_empty() {
        html.push_str("<p class=\"note\">Bold: the best candidate of a column.");
        html.push_str(" In brackets: protocols, in the order of the columns.");
        if tables.iter().any(ScoreTable::has_average) {
            html.push_str(" Averages, also of the paper's numbers, are over the sets of the table.");
        }
        if tables.iter().any(ScoreTable::has_pending) {
            let _ = write!(html, " {PENDING}: not measured yet.");
        }
        html.push_str("</p>\n");
    }
    let seen: String = report
        .datasets
        .iter()
        .flat_map(seen)
        .map(|sentence| format!("<li>{}</li>\n", Text(&sentence)))
        .collect();
    if !seen.is_empty() {
        let _ = write!(html, "<ul class=\"notes\">\n{seen}</ul>\n");
    }
    html.push_str(&charts::results(report, &tables));
    html.push_str("</section>\n");
    html
}

fn missing(missing: &[MissingDataset]) -> String {
    let columns = [("set", Align::Left), ("folders looked for", Align::Left), ("comes from", Align::Left)];
    let mut table = Table::new("Missing sets", "", &columns);
    for MissingDataset { name, folders, source } in missing {
        let folders: Vec<String> = folders.iter().map(|folder| code(folder).0).collect();
        table.row(&[words(name), (folders.join(" or "), Align::Left), words(source)]);
    }
    format!(
        "<section id=\"missing\">\n<h2>Missing sets</h2>\n\
         <p>The suite has these sets too; they were not found.</p>\n\
         {}</section>\n",
        table.finish()
    )
}

fn candidates(candidates: &[CandidateInfo]) -> String {
    let columns = [
        ("candidate", Align::Left),
        ("where from", Align::Left),
        ("features", Align::Left),
        ("length", Align::Right),
        ("fingerprint", Align::Left),
    ];
    let mut table = Table::new("Candidates", "", &columns);
    for CandidateInfo { name, description, feature, dim, fingerprint } in candidates {
        table.row(&[
            words(name),
            words(description),
            code(feature),
            figure(dim.to_string()),
            fingerprint.as_deref().map_or_else(|| words(""), code),
        ]);
    }
    format!("<section id=\"candidates\">\n<h2>Candidates</h2>\n{}</section>\n", table.finish())
}

fn protocols(footnotes: &Footnotes<'_>) -> String {
    let columns = [
        ("", Align::Right),
        ("protocol", Align::Left),
        ("probe", Align::Left),
        ("shots", Align::Left),
        ("candidates", Align::Left),
    ];
    let mut table = Table::new("Protocols", "What exactly was done for each number.", &columns);
    for (number, note) in footnotes.iter() {
        table.row(&[
            (format!("<span id=\"protocol-{number}\">{number}</span>"), Align::Right),
            code(note.protocol),
            words(&note.probes.join(", ")),
            words(&note.shots()),
            words(&note.candidates.join(", ")),
        ]);
    }
    format!("<section id=\"protocols\">\n<h2>Protocols</h2>\n{}</section>\n", table.finish())
}

/// A number that leads to a protocol.
fn link(number: usize) -> String {
    format!("<a href=\"#protocol-{number}\">{number}</a>")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::report::samples;
    use lejepa_page::number::{percent, points, probability, significant};

    /// What stands between `<` and `>`: what users wrote has neither.
    fn tags(html: &str) -> Vec<&str> {
        html.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)).collect()
    }

    #[test]
    fn elements_are_closed_in_order() {
        for (name, report) in samples::all() {
            let html = to_html(&report);
            let mut open = Vec::new();
            for tag in tags(&html) {
                let element = tag.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
                match tag {
                    _ if ["!doctype", "meta", "br"].contains(&element) || tag.ends_with('/') => {}
                    _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(element), "{name}"),
                    _ => open.push(element),
                }
            }
            assert!(open.is_empty(), "{name}: {open:?}");
        }
    }

    #[test]
    fn nothing_is_loaded_and_nothing_runs() {
        for (name, report) in samples::all() {
            let html = to_html(&report);
            assert!(html.contains("default-src 'none'"));
            assert!(html.matches("url(").count() == html.matches("url(data:image/jpeg;base64,").count());
            assert!(!html.contains("@import"));
            for tag in tags(&html) {
                let element = tag.split_whitespace().next().unwrap_or_default();
                assert!(!["script", "iframe", "link", "object", "base"].contains(&element), "{name}: {tag}");
                let attributes = tag.split('"').step_by(2).map(str::trim_start);
                for attribute in attributes {
                    assert!(!attribute.starts_with("on"), "{name}: {tag}");
                }
                let quoted: Vec<&str> = tag.split('"').collect();
                for source in quoted.windows(2).step_by(2).filter(|pair| pair[0].trim().starts_with("src")) {
                    assert!(source[1].starts_with("data:image/jpeg;base64,"), "{name}: {tag}");
                }
                if let Some((_, target)) = tag.split_once("href=\"") {
                    let id = target.strip_prefix('#').and_then(|target| target.strip_suffix('"'));
                    assert!(html.contains(&format!("id=\"{}\"", id.unwrap())), "{name}: {tag}");
                }
            }
        }
    }

    #[test]
    fn every_image_has_a_place_on_every_map_and_every_picture_is_shown() {
        let report = samples::quick();
        let html = to_html(&report);
        let pictures = report.datasets[0].pictures.as_ref().unwrap();
        let maps: usize = pictures.candidates.iter().map(|candidate| candidate.maps.len()).sum();
        assert_eq!(html.matches("<label class=\"dot").count(), maps * pictures.points.len());
        assert_eq!(html.matches("<div class=\"map\"").count(), maps);
        // Both images, components for two candidates, attention and mask for one; two frames of every clip,
        // with the true mask in all but the first.
        let stills: usize = report.videos.iter().map(|video| 2 * (2 * video.clips.len() - 1)).sum();
        assert_eq!(html.matches("<img ").count(), 2 * (1 + 2 + 2) + stills);
        // One stop for the tabulator each: buttons of a map share a name that no other map has.
        let group = |rest: &str| rest.split_once('"').map(|(name, _)| name.to_owned());
        let groups: HashSet<String> = html.split("name=\"map-").skip(1).filter_map(group).collect();
        assert_eq!(groups.len(), maps);
    }

    #[test]
    fn every_number_appears() {
        for (name, report) in samples::all() {
            let html = to_html(&report);
            let cell = |rest: &'_ str| rest.split_once("</td>").map(|(number, _)| number.to_owned());
            let cells: HashSet<String> = html.split("<td class=\"n\">").filter_map(cell).collect();
            let has = |number: &str, what: &str| assert!(cells.contains(number), "{name}, {what}: {number}");
            for dataset in &report.datasets {
                for result in &dataset.results {
                    has(&percent(result.accuracy), "accuracy");
                    let (low, high) = (percent(result.interval.low), percent(result.interval.high));
                    has(&format!("{low} – {high}"), "interval");
                    let shares = result.deviation.into_iter().chain(result.top5).chain([result.class_mean]);
                    let classes = result.class_accuracies.iter().copied().flatten();
                    let draws = result.draws.iter().flat_map(|draw| [draw.accuracy, draw.top5]);
                    shares.chain(classes).chain(draws).for_each(|share| has(&percent(share), "share"));
                    assert!(
                        html.contains(&Text(&result.protocol).to_string()),
                        "{name}: {}",
                        result.protocol
                    );
                }
                for comparison in &dataset.comparisons {
                    has(&points(comparison.difference), "difference");
                    has(&Text(&probability(comparison.p)).to_string(), "p");
                }
                for published in &dataset.published {
                    let number = percent(published.accuracy);
                    assert!(html.contains(&format!("<td class=\"n\">{number}")), "{name}, paper: {number}");
                }
            }
            let simulated = report.demonstration.iter();
            let simulated = simulated.flat_map(|it| it.smooth.iter().flat_map(|point| &point.measurements));
            let shaped = report.datasets.iter().flat_map(|dataset| &dataset.isotropy);
            let shaped = shaped.flat_map(|it| it.found.variants.iter().flat_map(|it| &it.measurements));
            for measurement in simulated.map(|it| &it.measured).chain(shaped) {
                has(&significant(measurement.squared_bias), "squared bias");
                has(&significant(measurement.variance), "variance");
            }
            for video in &report.videos {
                let scores = video.rows.iter().map(|row| row.score);
                let objects = video.clips.iter().flat_map(|clip| &clip.rows).flat_map(|row| &row.objects);
                for score in scores.chain(objects.map(|object| object.score)) {
                    has(&percent(score.jaccard), "J");
                    has(&percent(score.contour), "F");
                    has(&percent(score.mean()), "J&F");
                }
            }
            assert!(html.contains(&Text(&report.command).to_string()));
            assert!(!html.contains("NaN") && !html.contains("inf\""), "{name}");
        }
    }

    #[test]
    fn isotropy_is_plotted_with_theory_beside_measurement() {
        let html = to_html(&samples::isotropy());
        assert!(!html.contains("No result yet."));
        assert!(html.matches("class=\"theory c").count() >= 4, "dashed lines");
        for caption in
            ["OLS (lemma 2)", "Radius k-NN (theorem 1): squared bias", "Kernel (theorem 1): variance"]
        {
            assert!(html.contains(&format!("<figcaption>{caption}</figcaption>")), "{caption}");
        }
        assert!(html.contains("<figcaption>Spectrum of the features as they are</figcaption>"));
    }

    #[test]
    fn a_segmentation_has_a_page_of_its_own() {
        let report = &samples::quick().videos[1];
        let html = report.to_html();
        assert!(html.starts_with("<!doctype html>") && html.contains("default-src 'none'"));
        assert!(html.contains(&Text(&report.command).to_string()));
        // Nine clips are folded away.
        assert_eq!(html.matches("<details>").count(), 9);
        assert!(html.contains("clip &lt;8&gt;") && !html.contains("clip <8>"));
    }

    #[test]
    fn a_report_without_results_says_so() {
        let mut report = samples::quick();
        report.datasets[0].results.clear();
        report.datasets[0].comparisons.clear();
        report.videos.clear();
        assert_eq!(to_html(&report).matches("No result yet.").count(), 2);
        report.datasets.clear();
        assert_eq!(to_html(&report).matches("No result yet.").count(), 1);
    }
}
