//! JPEG files that are cut off or damaged, for those who would rather have grey than nothing.

use std::path::PathBuf;

use super::{Dataset, Fingerprinter};
use crate::decode::is_cut_jpeg;
use crate::{Result, Stored};

/// A dataset whose JPEG files may be cut off or damaged: what is missing is grey.
pub(super) struct CutFiles {
    dataset: Box<dyn Dataset>,
    notes: Vec<String>,
}

impl CutFiles {
    pub(super) fn accepted(dataset: Box<dyn Dataset>) -> Self {
        let note = "JPEG files that are cut off or damaged are accepted, with grey for what is missing: `lejepa data \
                    verify` counts them";
        let notes = dataset.notes().iter().cloned().chain([note.into()]).collect();
        Self { dataset, notes }
    }
}

impl Dataset for CutFiles {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        Ok(match self.dataset.stored(index)? {
            Stored::File(bytes) if is_cut_jpeg(&bytes) => Stored::CutFile(bytes),
            stored => stored,
        })
    }

    fn name(&self, index: usize) -> String {
        self.dataset.name(index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.dataset.label(index)
    }

    fn class_names(&self) -> &[String] {
        self.dataset.class_names()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.dataset.files()
    }

    /// The same files give more images than otherwise.
    fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        Ok(Fingerprinter::combined(["cut files are accepted", &self.dataset.fingerprint(fingerprinter)?]))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use crate::dataset::fixture;
    use crate::{ReadOptions, SourceConfig, Split, Verification, open_source};

    #[test]
    fn what_is_missing_of_a_cut_file_is_grey_if_asked_for_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let whole = std::fs::read(fixture::path("images/baseline.jpg")).unwrap();
        std::fs::write(folder.path().join("a.jpg"), &whole).unwrap();
        std::fs::write(folder.path().join("b.jpg"), &whole[..whole.len() * 9 / 10]).unwrap();
        std::fs::write(folder.path().join("c.jpg"), &whole[..20]).unwrap();
        let source = |accept_truncated| SourceConfig {
            path: folder.path().into(),
            options: ReadOptions { accept_truncated, ..Default::default() },
            ..Default::default()
        };
        let readable = |source: &SourceConfig| {
            let data = open_source(source, Split::Train).unwrap();
            let images = (0..3).map(|index| data.image(index).is_ok()).collect::<Vec<_>>();
            (images, fixture::fingerprint(&*data), data.notes().len())
        };
        let (strict, lenient) = (readable(&source(false)), readable(&source(true)));
        assert_eq!((strict.0, strict.2), (vec![true, false, false], 0));
        assert_eq!((lenient.0, lenient.2), (vec![true, true, false], 1));
        assert_ne!(strict.1, lenient.1);
        let verified = |source| {
            let split = Verification::of(&source, &|_| ()).unwrap().splits.remove(0);
            (split.cut, split.unreadable.len())
        };
        assert_eq!((verified(source(false)), verified(source(true))), ((0, 2), (1, 1)));
    }
}
