//! A labelled set: the images that a suite learns from and those it asks about.

use std::collections::BTreeSet;
use std::path::Path;

use lejepa_data::{Dataset, Fingerprinter, Purpose, SourceConfig, Split, generator, held_out, open_source};
use rand::seq::SliceRandom;

use crate::report::{DatasetReport, paper};
use crate::run::Event;
use crate::run::evaluation::Observer;
use crate::sets::{ImageList, KnownDataset};
use crate::suite::Suite;
use crate::{Error, Result};

/// The first few names of a list.
fn named(names: &[&str]) -> String {
    const FEW: usize = 5;
    match names.len() {
        0..=FEW => names.join(", "),
        count => format!("{} and {} more", names[..FEW].join(", "), count - FEW),
    }
}

/// Training and test images with their classes.
pub struct LabelledSet {
    pub(crate) name: String,
    pub(crate) train: LabelledImages,
    pub(crate) test: LabelledImages,
    pub(crate) classes: Vec<String>,
    path: String,
    /// What is learnt from and asked about.
    splits: Splits,
    /// The published set that it is.
    known: Option<&'static KnownDataset>,
    /// The published set that it is, or a part of.
    like: Option<&'static KnownDataset>,
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
        let mut train = Part::whole(train, Split::Train, source)?;
        let mut splits = Splits { learnt: Learnt::Train, asked: Asked::HeldBack };
        let test = match Part::asked(source, suite.test_split, &mut notes)? {
            Some((split, test)) => {
                splits.asked = Asked::Split(split);
                test
            }
            None => {
                let (rest, test) = train.divide(open_source(source, Split::Train)?);
                train = rest;
                test
            }
        };
        for dataset in test.sections.iter().map(|(_, dataset)| dataset) {
            if splits.asked != Asked::HeldBack {
                notes.extend_from_slice(dataset.notes());
            }
            if dataset.class_names().len() > classes.len() {
                classes = dataset.class_names().to_vec();
            }
        }
        if suite.use_validation {
            match (splits.asked, open_source(source, Split::Validation)) {
                (Asked::Split(Split::Validation), _) => notes.push(
                    "validation images are asked about, and therefore not learnt from as the suite would"
                        .into(),
                ),
                (_, Ok(validation)) => {
                    notes.extend_from_slice(validation.notes());
                    train.join(validation, source)?;
                    splits.learnt = Learnt::TrainAndValidation;
                }
                (_, Err(lejepa_data::Error::NoSplit { .. })) => {
                    notes.push("there is no validation split to learn from".into());
                }
                (_, Err(error)) => return Err(error.into()),
            }
        }
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
        if asked.is_disjoint(&occurring) {
            return Err(Error::NoSharedClass { path: source.path.clone() });
        }
        let unknown: Vec<&str> =
            asked.difference(&occurring).filter_map(|class| Some(classes.get(*class)?.as_str())).collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "classes of the test split without a training image, which no probe can find: {}",
                named(&unknown)
            ));
        }
        let unasked: Vec<&str> =
            occurring.difference(&asked).filter_map(|class| Some(classes.get(*class)?.as_str())).collect();
        if !unasked.is_empty() {
            notes.push(format!(
                "classes without a test image, of which the accuracy says nothing: {}",
                named(&unasked)
            ));
        }
        let (format, here) = (source.recognise()?, train.available + test.available);
        let like = KnownDataset::like(format, classes.len());
        // The published number of images is that of the training split and the one that people ask about.
        let known =
            KnownDataset::exactly(format, classes.len(), here).or(match (splits.learnt, splits.asked) {
                (Learnt::Train, Asked::HeldBack | Asked::Split(Split::Test)) => None,
                _ => like.filter(|like| like.classes == classes.len()),
            });
        if let (None, Some(like)) = (known, like) {
            notes.push(format!(
                "this is not {} as it is published, with {} training and test images: here are {here}, and \
                 published numbers say nothing about them",
                like.name, like.images
            ));
        }
        // Splits may have the same to say.
        let mut said = BTreeSet::new();
        notes.retain(|note| said.insert(note.clone()));
        Ok(Self {
            name: name.into(),
            path: source.path.display().to_string(),
            train,
            test,
            classes,
            splits,
            known,
            like,
            notes,
        })
    }

    /// What of the data is learnt and asked, in a protocol string: nothing for the training and the test split.
    pub(crate) fn protocol(&self) -> &'static str {
        match (self.splits.learnt, self.splits.asked) {
            (Learnt::Train, Asked::Split(Split::Validation)) => "test=val",
            (Learnt::Train, Asked::HeldBack) => "test=fifth",
            (Learnt::Train, Asked::Split(_)) => "",
            (Learnt::TrainAndValidation, Asked::HeldBack) => "train+val:test=fifth",
            (Learnt::TrainAndValidation, Asked::Split(_)) => "train+val",
        }
    }

    /// Its short name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its short name and where it lies.
    pub(crate) fn place(&self) -> [&str; 2] {
        [&self.name, &self.path]
    }

    /// Of the images and labels that are learnt from and asked about, after [`Self::identify`].
    pub(crate) fn fingerprints(&self) -> Result<[String; 2]> {
        let of = |part: &LabelledImages| -> Result<String> {
            let labels: Vec<u8> =
                part.labels.iter().flat_map(|label| (*label as u64).to_le_bytes()).collect();
            let (images, classes) = (part.images.fingerprint()?, self.classes.join("\0"));
            Ok(Fingerprinter::combined([images.as_bytes(), &labels, classes.as_bytes()]))
        };
        Ok([of(&self.train)?, of(&self.test)?])
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
        }
        let fingerprints = [self.train.images.data_fingerprint()?, self.test.images.data_fingerprint()?];
        if fingerprints[0] == fingerprints[1] && self.splits.asked != Asked::HeldBack {
            notes.push(
                "training and test split are the same images: what is measured is memory, not generalisation"
                    .into(),
            );
        }
        Ok(DatasetReport {
            name: self.name.clone(),
            path: self.path.clone(),
            fingerprints,
            train: self.train.labels.len(),
            train_available: self.train.available,
            test: self.test.labels.len(),
            test_available: self.test.available,
            splits: self.splits.names(),
            per_class: suite.per_class || self.known.or(self.like).is_some_and(KnownDataset::per_class),
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

/// Which images of a set are learnt from, and which are asked about.
#[derive(Clone, Copy)]
struct Splits {
    learnt: Learnt,
    asked: Asked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Learnt {
    Train,
    TrainAndValidation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Split(Split),
    /// A share of the training split.
    HeldBack,
}

impl Splits {
    /// Both for a report.
    fn names(self) -> [String; 2] {
        let learnt = match self.learnt {
            Learnt::Train => "training split",
            Learnt::TrainAndValidation => "training and validation split",
        };
        let asked = match self.asked {
            Asked::Split(split) => format!("{} split", split.name()),
            Asked::HeldBack => "a fifth of the training split".into(),
        };
        [learnt.into(), asked]
    }
}

/// A split, or several, before the suite has taken its share of it.
struct Part {
    sections: Vec<(Split, Box<dyn Dataset>)>,
    /// Numbers of images, through all sections.
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
        Ok(Self { sections: vec![(split, dataset)], indices, labels })
    }

    /// The split that is asked about: the one that is named, else the test split, else the validation split
    /// where there is no test split or one without labels, as ImageNet's. None if there is none of these.
    fn asked(
        source: &SourceConfig,
        named: Option<Split>,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Split, Self)>> {
        let open = |split| -> Result<Self> { Self::whole(open_source(source, split)?, split, source) };
        if let Some(split) = named {
            return Ok(Some((split, open(split)?)));
        }
        let absent = |error: &Error| matches!(error, Error::Data(lejepa_data::Error::NoSplit { .. }));
        let why = match open(Split::Test) {
            Ok(test) => return Ok(Some((Split::Test, test))),
            Err(error) if absent(&error) => "there is no test split",
            Err(Error::Unlabelled { .. }) => "the test split has images without labels",
            Err(error) => return Err(error),
        };
        match open(Split::Validation) {
            Ok(validation) => {
                notes.push(format!("{why}: the validation split is asked about instead"));
                Ok(Some((Split::Validation, validation)))
            }
            Err(error) if absent(&error) || matches!(error, Error::Unlabelled { .. }) => {
                notes.push(format!("{why}: a fifth of every class, always the same, was held back as such"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the images of another split with the same classes.
    fn join(&mut self, dataset: Box<dyn Dataset>, source: &SourceConfig) -> Result<()> {
        let first: usize = self.sections.iter().map(|(_, dataset)| dataset.len()).sum();
        let own = self.sections.first().map_or(&[][..], |(_, dataset)| dataset.class_names());
        let shared = own.len().min(dataset.class_names().len());
        if own[..shared] != dataset.class_names()[..shared] {
            return Err(Error::OtherClasses { path: source.path.clone() });
        }
        let Self { sections, indices, labels } = Self::whole(dataset, Split::Validation, source)?;
        self.sections.extend(sections);
        self.indices.extend(indices.into_iter().map(|index| first + index));
        self.labels.extend(labels);
        Ok(())
    }

    /// Divides a training split; `again` is the same dataset once more.
    fn divide(self, again: Box<dyn Dataset>) -> (Self, Self) {
        let test = held_out(&self.labels);
        let train: Vec<usize> =
            self.indices.iter().copied().filter(|index| test.binary_search(index).is_err()).collect();
        let labels = |indices: &[usize]| indices.iter().map(|&index| self.labels[index]).collect();
        let (train_labels, test_labels) = (labels(&train), labels(&test));
        (
            Self { sections: self.sections, indices: train, labels: train_labels },
            Self { sections: vec![(Split::Train, again)], indices: test, labels: test_labels },
        )
    }

    fn limited(self, limit: Option<usize>, seed: u64) -> LabelledImages {
        let Self { sections, indices, labels } = self;
        let split = sections.first().map_or(Split::Train, |(split, _)| *split);
        let mut chosen: Vec<usize> = (0..indices.len()).collect();
        if let Some(limit) = limit.filter(|&limit| limit < chosen.len()) {
            chosen.shuffle(&mut generator(seed, Purpose::Evaluation, split as u64, 0));
            chosen.truncate(limit);
            chosen.sort_unstable();
        }
        let taken: Vec<usize> = chosen.iter().map(|&place| indices[place]).collect();
        LabelledImages {
            images: ImageList::of_all(sections).select(&taken),
            labels: chosen.iter().map(|&place| labels[place]).collect(),
            available: indices.len(),
        }
    }
}
