//! Which images an encoder was trained on, in a few kilobytes: the smallest of the hashes of all (a bottom-k sketch).
//!
//! ```text
//! of some images:   share that was trained on  =  of those whose hash is up to the largest kept one, the share of kept ones
//! ```
//!
//! Hashes are of the stored bytes, so that an image is known again in another folder, archive or split. Of a set that
//! has no more images than are kept the answer is exact.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What tells an image from others: a hash of its file, or of its pixels where it has no file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageHash(pub(crate) u64);

/// The images that an encoder was trained on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct SeenImages {
    images: u64,
    and_unknown: bool,
    /// Rising, at most [`SeenImages::MOST`].
    smallest: Vec<ImageHash>,
}

/// As it stands in a file.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    images: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    and_unknown: bool,
    /// 16 hexadecimal digits for every hash.
    smallest_hashes: String,
}

/// How many of some images were trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenShare {
    /// Images that were trained on.
    pub seen: usize,
    /// Images of which it is known whether they were.
    pub judged: usize,
    /// Whether these are all that were asked about.
    pub is_exact: bool,
}

impl ImageHash {
    /// The beginning of a longer hash.
    pub fn of(content: &[u8; 32]) -> Self {
        let mut beginning = [0; 8];
        beginning.copy_from_slice(&content[..8]);
        Self::from_bytes(beginning)
    }

    /// As it was written.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    /// To be written.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl SeenImages {
    /// Hashes that are kept: of a million images trained on, and as many in a test split of fifty thousand, fifty are
    /// judged.
    pub const MOST: usize = 1024;

    /// The images with these hashes.
    pub fn of(hashes: impl IntoIterator<Item = ImageHash>) -> Self {
        let (mut images, mut smallest) = (0, BTreeSet::new());
        for hash in hashes {
            images += 1;
            if smallest.len() < Self::MOST || smallest.last().is_some_and(|largest| hash < *largest) {
                smallest.insert(hash);
            }
            if smallest.len() > Self::MOST {
                smallest.pop_last();
            }
        }
        Self { images, and_unknown: false, smallest: smallest.into_iter().collect() }
    }

    /// Those of an encoder that does not say what it was trained on.
    pub fn unknown() -> Self {
        Self { and_unknown: true, ..Self::default() }
    }

    /// Those of an encoder that was trained on one, and then on the other.
    pub fn union(&self, other: &Self) -> Self {
        let (and_unknown, images) = (self.and_unknown || other.and_unknown, self.images + other.images);
        let known = self.limit().min(other.limit());
        let both: BTreeSet<ImageHash> =
            self.smallest.iter().chain(&other.smallest).copied().filter(|hash| *hash <= known).collect();
        Self { images, and_unknown, smallest: both.into_iter().take(Self::MOST).collect() }
    }

    /// How many images there were, those that came twice counted twice.
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Whether there were others, of which nothing is known.
    pub fn has_unknown(&self) -> bool {
        self.and_unknown
    }

    /// How many of these images were trained on; nothing if that cannot be told of any.
    pub fn share_of(&self, hashes: &[ImageHash]) -> Option<SeenShare> {
        let limit = self.limit();
        let judged: Vec<&ImageHash> = hashes.iter().filter(|hash| **hash <= limit).collect();
        let seen = judged.iter().filter(|hash| self.smallest.binary_search(hash).is_ok()).count();
        let is_exact = judged.len() == hashes.len();
        (!judged.is_empty()).then_some(SeenShare { seen, judged: judged.len(), is_exact })
    }

    /// Hashes up to here are kept if they occurred.
    fn limit(&self) -> ImageHash {
        let all = ImageHash(u64::MAX);
        if self.smallest.len() < Self::MOST { all } else { self.smallest.last().copied().unwrap_or(all) }
    }
}

impl SeenShare {
    /// From 0 to 1.
    pub fn share(self) -> f64 {
        self.seen as f64 / self.judged.max(1) as f64
    }
}

impl From<SeenImages> for Written {
    fn from(seen: SeenImages) -> Self {
        let smallest_hashes = seen.smallest.iter().map(|ImageHash(hash)| format!("{hash:016x}")).collect();
        Self { images: seen.images, and_unknown: seen.and_unknown, smallest_hashes }
    }
}

impl TryFrom<Written> for SeenImages {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let digits = written.smallest_hashes.as_bytes();
        let hash = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 16)?;
            u64::from_str_radix(text, 16).ok().map(ImageHash)
        };
        let smallest: Option<Vec<ImageHash>> = digits.chunks(16).map(hash).collect();
        let is_usable = |hashes: &Vec<ImageHash>| {
            hashes.len() <= Self::MOST && hashes.is_sorted_by(|left, right| left < right)
        };
        let smallest = smallest.filter(is_usable).ok_or("smallest_hashes is not a list of rising hashes")?;
        Ok(Self { images: written.images, and_unknown: written.and_unknown, smallest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(numbers: std::ops::Range<u64>) -> Vec<ImageHash> {
        numbers.map(|number| ImageHash::of(blake3::hash(&number.to_le_bytes()).as_bytes())).collect()
    }

    #[test]
    fn of_few_images_the_share_is_exact() {
        let seen = SeenImages::of(hashes(0..600));
        assert_eq!(
            seen.share_of(&hashes(500..700)),
            Some(SeenShare { seen: 100, judged: 200, is_exact: true })
        );
        assert_eq!(seen.share_of(&hashes(600..700)).unwrap().seen, 0);
        assert_eq!(seen.share_of(&[]), None);
        assert_eq!(SeenImages::default().share_of(&hashes(0..9)).unwrap().seen, 0);
    }

    #[test]
    fn of_many_images_the_share_is_estimated() {
        /// Three standard deviations of a share of 0.25 of about 400 judged images.
        const TOLERANCE: f64 = 0.07;
        let seen = SeenImages::of(hashes(0..50_000));
        let share = seen.share_of(&hashes(45_000..65_000)).unwrap();
        assert!(!share.is_exact && share.judged > 200, "{share:?}");
        assert!((share.share() - 0.25).abs() < TOLERANCE, "{share:?}");
        assert_eq!(seen.share_of(&hashes(0..20_000)).unwrap().share(), 1.);
        assert_eq!(seen.share_of(&hashes(50_000..70_000)).unwrap().share(), 0.);
    }

    #[test]
    fn a_union_knows_what_both_know() {
        let (few, many) = (SeenImages::of(hashes(0..100)), SeenImages::of(hashes(1000..31_000)));
        let both = few.union(&many);
        assert_eq!(both, many.union(&few));
        assert_eq!(both, SeenImages::of(hashes(0..100).into_iter().chain(hashes(1000..31_000))));
        assert_eq!((both.images(), both.has_unknown()), (30_100, false));
        assert!(few.union(&SeenImages::unknown()).has_unknown());
        assert_eq!(few.union(&SeenImages::default()), few);
    }

    #[test]
    fn it_survives_json_and_what_is_no_list_of_hashes_is_refused() {
        let seen = SeenImages::of(hashes(0..3000));
        let json = serde_json::to_string(&seen).unwrap();
        assert!(json.len() < 17_000, "{}", json.len());
        assert_eq!(serde_json::from_str::<SeenImages>(&json).unwrap(), seen);
        for wrong in ["0", "zzzzzzzzzzzzzzzz", "00000000000000020000000000000001", "0000000000000000é"] {
            let json = format!("{{\"images\":1,\"smallest_hashes\":\"{wrong}\"}}");
            assert!(serde_json::from_str::<SeenImages>(&json).is_err(), "{wrong}");
        }
    }
}
