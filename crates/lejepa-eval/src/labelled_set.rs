//! A labelled set: the images that a suite learns from and those it asks about.

use std::collections::BTreeSet;
use std::path::Path;

use lejepa_data::{Dataset, Fingerprinter, Purpose, SourceConfig, Split, generator, held_out, open_source};
use rand::seq::SliceRandom;

use crate::evaluation::Observer;
use crate::{DatasetReport, Error, Event, ImageList, KnownDataset, Result, Suite, paper};

/// Training and test images with their classes.
pub struct LabelledSet {
    pub(crate) name: String,
    pub(crate) train: LabelledImages,
    pub(crate) test: LabelledImages,
    pub(crate) classes: Vec<String>,
    path: String,
    /// The published set that it is, or a part of.
    known: Option<&'static KnownDataset>,
    notes: Vec<String>,
}

/// Images with a class each.
pub(crate) struct LabelledImages {
    pub(crate) images: ImageList,
    pub(crate) labels: Vec<usize>,
    available: usize,
}

impl LabelledSet {
    /// Opens both splits and draws the images that the suite uses. Of a set without test split a fifth of
    /// every class is held back, once and for all.
    pub fn open(name: &str, source: &SourceConfig, suite: &Suite) -> Result<Self> {
        let train = open_source(source, Split::Train)?;
        let mut notes = train.notes().to_vec();
        let mut classes = train.class_names().to_vec();
        let (train, test) = match open_source(source, Split::Test) {
            Ok(test) => {
                notes.extend_from_slice(test.notes());
                if test.class_names().len() > classes.len() {
                    classes = test.class_names().to_vec();
                }
                (Part::whole(train, Split::Train, source)?, Part::whole(test, Split::Test, source)?)
            }
            Err(lejepa_data::Error::NoSplit { .. }) => {
                notes.push(
                    "there is no test split: a fifth of every class, always the same, was held back as such"
                        .into(),
                );
                Part::whole(train, Split::Train, source)?.divide(open_source(source, Split::Train)?)
            }
            Err(error) => return Err(error.into()),
        };
        let train = train.limited(suite.train_limit, suite.seed);
        let test = test.limited(suite.test_limit, suite.seed);
        let occurring: BTreeSet<usize> = train.labels.iter().copied().collect();
        if occurring.len() < 2 {
            return Err(Error::TooFewClasses { got: occurring.len() });
        }
        if test.labels.is_empty() {
            return Err(Error::NoTestImages { path: source.path.clone() });
        }
        let asked: BTreeSet<usize> = test.labels.iter().copied().collect();
        let unknown: Vec<&str> =
            asked.difference(&occurring).filter_map(|class| Some(classes.get(*class)?.as_str())).collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "classes of the test split without a training image, which no probe can find: {}",
                unknown.join(", ")
            ));
        }
        let known = KnownDataset::like(source.recognise()?, classes.len());
        Ok(Self {
            name: name.into(),
            path: source.path.display().to_string(),
            train,
            test,
            classes,
            known,
            notes,
        })
    }

    /// Its short name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a user should know about the data, such as listed images that are not there.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes the fingerprints of both splits, for which all files are read that were not read before.
    pub(crate) fn identify(&self, memo: &Path, observer: &mut Observer<'_>) -> Result<()> {
        let mut observe =
            |hashing| (observer.observe)(Event::Hashing { dataset: &self.name, bytes: hashing });
        let mut fingerprinter = Fingerprinter::default().remembering(memo).observed(&mut observe);
        let mut identify = |part: &LabelledImages| part.images.identify(&mut fingerprinter);
        match identify(&self.train).and_then(|()| identify(&self.test)) {
            Err(Error::Data(lejepa_data::Error::Stopped)) => Err(Error::Stopped),
            identified => identified,
        }
    }

    /// The report before anything is measured.
    pub(crate) fn report(&self, suite: &Suite) -> Result<DatasetReport> {
        let mut published = Vec::new();
        let mut notes = self.notes.clone();
        if let Some(known) = self.known {
            for table in &suite.paper {
                published.extend(paper::published(table, known.name)?);
            }
            published.retain(|number| suite.shots.contains(&number.shots));
            let here = self.train.available + self.test.available;
            if here != known.images && !published.is_empty() {
                notes.push(format!(
                    "the paper's numbers are of {}, with {} training and test images; here are {here}",
                    known.name, known.images
                ));
            }
        }
        Ok(DatasetReport {
            name: self.name.clone(),
            path: self.path.clone(),
            fingerprints: [self.train.images.data_fingerprint()?, self.test.images.data_fingerprint()?],
            train: self.train.labels.len(),
            train_available: self.train.available,
            test: self.test.labels.len(),
            test_available: self.test.available,
            classes: self.classes.clone(),
            notes,
            seen: Vec::new(),
            results: Vec::new(),
            comparisons: Vec::new(),
            published,
            isotropy: Vec::new(),
            pictures: None,
        })
    }
}

/// A split before the suite has taken its share of it.
struct Part {
    dataset: Box<dyn Dataset>,
    split: Split,
    indices: Vec<usize>,
    labels: Vec<usize>,
}

impl Part {
    fn whole(dataset: Box<dyn Dataset>, split: Split, source: &SourceConfig) -> Result<Self> {
        let unlabelled = |index| Error::Unlabelled { index, split: split.name(), path: source.path.clone() };
        let indices: Vec<usize> = (0..dataset.len()).collect();
        let labels = indices
            .iter()
            .map(|&index| dataset.label(index).ok_or_else(|| unlabelled(index)))
            .collect::<Result<_>>()?;
        Ok(Self { dataset, split, indices, labels })
    }

    /// Divides a training split; `again` is the same dataset once more.
    fn divide(self, again: Box<dyn Dataset>) -> (Self, Self) {
        let test = held_out(&self.labels);
        let train: Vec<usize> =
            self.indices.iter().copied().filter(|index| test.binary_search(index).is_err()).collect();
        let labels = |indices: &[usize]| indices.iter().map(|&index| self.labels[index]).collect();
        let (train_labels, test_labels) = (labels(&train), labels(&test));
        (
            Self { dataset: self.dataset, split: Split::Train, indices: train, labels: train_labels },
            Self { dataset: again, split: Split::Train, indices: test, labels: test_labels },
        )
    }

    fn limited(self, limit: Option<usize>, seed: u64) -> LabelledImages {
        let Self { dataset, split, indices, labels } = self;
        let mut chosen: Vec<usize> = (0..indices.len()).collect();
        if let Some(limit) = limit.filter(|&limit| limit < chosen.len()) {
            chosen.shuffle(&mut generator(seed, Purpose::Evaluation, split as u64, 0));
            chosen.truncate(limit);
            chosen.sort_unstable();
        }
        let taken: Vec<usize> = chosen.iter().map(|&place| indices[place]).collect();
        LabelledImages {
            images: ImageList::of(split, dataset).select(&taken),
            labels: chosen.iter().map(|&place| labels[place]).collect(),
            available: indices.len(),
        }
    }
}
