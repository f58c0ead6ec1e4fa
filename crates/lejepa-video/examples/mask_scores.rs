//! J and F of every object of the masks in one folder against those of the same names in another, for
//! `tests/segmentation_agreement.sh`:
//!
//!     cargo run --release -p lejepa-eval --example mask_scores -- MASKS TRUE_MASKS

#![allow(clippy::print_stdout)]

use std::path::Path;

use lejepa_video::{Contour, LabelMap, jaccard};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [masks, truths] = &*folders else { return Err("usage: mask_scores MASKS TRUE_MASKS".into()) };
    let mut names: Vec<_> = std::fs::read_dir(masks)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_, std::io::Error>>()?;
    names.sort();
    for name in names {
        let mask = LabelMap::read(&Path::new(masks).join(&name))?;
        let truth = LabelMap::read(&Path::new(truths).join(&name))?;
        for object in truth.objects() {
            let (mask, truth) = (mask.object(object), truth.object(object));
            let region = jaccard(mask.view(), truth.view());
            let contour = Contour::of(mask.view()).f_measure(&Contour::of(truth.view()));
            println!("{} {object} {region:.12} {contour:.12}", name.display());
        }
    }
    Ok(())
}
