//! A table beside features: which image every row belongs to.

use std::path::Path;

use lejepa_data::Claim;

use super::streamed;
use crate::features::Extracted;
use crate::report::plain;
use crate::sets::ImageList;
use crate::{Error, Result};

pub(super) fn write(claim: &Claim, path: &Path, features: &Extracted, images: &ImageList) -> Result<()> {
    streamed(claim, path, |file| {
        let mut table = csv::Writer::from_writer(file);
        table.write_record(["row", "id", "split", "label", "class"]).map_err(Error::Csv)?;
        for (row, &index) in features.indices.iter().enumerate() {
            let info = images.info(index);
            let label = info.label.map(|label| label.to_string()).unwrap_or_default();
            let (split, class) = (info.split.unwrap_or_default(), info.class.unwrap_or_default());
            table
                .write_record([&*row.to_string(), &plain(&info.id), split, &label, &plain(class)])
                .map_err(Error::Csv)?;
        }
        table.flush().map_err(Error::Write)
    })
}
