//! Which images of a set an encoder was trained on, as far as its card says: a score on images that it has seen says
//! little about others.

use std::path::Path;

use lejepa_data::{ImageHash, SeenImages, regular_file, write_atomically};
use lejepa_page::number::{counted, percent};
use rayon::prelude::*;

use crate::Result;
use crate::features::FeatureSource;
use crate::run::Candidate;
use crate::sets::{ImageList, LabelledSet};

/// Images of a split that are looked at, evenly spread: enough to tell a share within a percent.
const LOOKED_AT: usize = 20_000;

/// A sentence for every candidate and split that have images in common.
/// Hashes of images are kept in a folder for the next time.
pub(crate) fn overlaps(
    set: &LabelledSet,
    candidates: &[Candidate<'_>],
    folder: &Path,
) -> Result<Vec<String>> {
    let cards = candidates.iter().filter_map(|candidate| Some((candidate, seen(candidate)?)));
    let cards: Vec<(&Candidate<'_>, &SeenImages)> = cards.filter(|(_, seen)| seen.images() > 0).collect();
    if cards.is_empty() {
        return Ok(Vec::new());
    }
    let (train, test) = (hashes(&set.train.images, folder)?, hashes(&set.test.images, folder)?);
    let mut sentences = Vec::new();
    for (candidate, seen) in cards {
        let name = &candidate.name;
        if let Some(share) = overlap(seen, &test, "test image") {
            sentences
                .push(format!("{name} was trained on {share}: its scores are not those of unseen images"));
        }
        if let Some(share) = overlap(seen, &train, "training image") {
            sentences.push(format!("{name} was trained, without labels, on {share}"));
        }
    }
    Ok(sentences)
}

fn seen<'a>(candidate: &Candidate<'a>) -> Option<&'a SeenImages> {
    match candidate.source {
        FeatureSource::Encoder(encoder) => encoder.card()?.seen.as_ref(),
        FeatureSource::Pixels(_) => None,
    }
}

fn hashes(images: &ImageList, folder: &Path) -> Result<Vec<ImageHash>> {
    let path = folder.join(format!("{}.images", images.fingerprint()?));
    if let Some(known) = regular_file::read(&path).ok().and_then(|bytes| parse(&bytes)) {
        return Ok(known);
    }
    let step = images.len().div_ceil(LOOKED_AT).max(1);
    let hashes: Vec<ImageHash> =
        (0..images.len()).into_par_iter().step_by(step).filter_map(|index| images.hash(index)).collect();
    let mut bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_bytes()).collect();
    bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
    // What cannot be kept costs time and no more.
    let _ = write_atomically(&path, |file| file.write_all(&bytes));
    Ok(hashes)
}

/// Hashes, and a hash of them all; nothing if the file is not whole.
fn parse(bytes: &[u8]) -> Option<Vec<ImageHash>> {
    let (hashes, all) = bytes.split_last_chunk::<32>()?;
    let (hashes, rest) = hashes.as_chunks::<8>();
    let is_whole = rest.is_empty() && blake3::hash(hashes.as_flattened()) == *all;
    is_whole.then(|| hashes.iter().map(|bytes| ImageHash::from_bytes(*bytes)).collect())
}

/// How many of the images were trained on; nothing if none was.
fn overlap(seen: &SeenImages, hashes: &[ImageHash], what: &str) -> Option<String> {
    let share = seen.share_of(hashes).filter(|share| share.seen > 0)?;
    Some(match (share.is_exact, share.seen == share.judged) {
        (true, true) => format!("all {}s of this set", what),
        (true, false) => format!("{} of the {} of this set", share.seen, counted(share.judged, what)),
        (false, _) => {
            format!("about {} % of the {what}s of this set ({} judged)", percent(share.share()), share.judged)
        }
    })
}
