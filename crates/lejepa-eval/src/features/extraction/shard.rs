//! A share of the images.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// One of several equal shares, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    count: usize,
}

impl Shard {
    /// Most shares there can be.
    const MOST: usize = 100_000;

    /// Number `number` of `count`; `None` if there is no such one.
    pub fn new(number: usize, count: usize) -> Option<Self> {
        (1..=Self::MOST).contains(&count).then_some(())?;
        (1..=count).contains(&number).then_some(Self { number, count })
    }

    /// Its images: shares differ by one inference at most and start where one does.
    pub(super) fn range(self, images: usize, batch: usize) -> Range<usize> {
        let batches = images.div_ceil(batch.max(1));
        let start = |number: usize| (batches * number / self.count * batch).min(images);
        start(self.number - 1)..start(self.number)
    }

    /// For the names of files.
    pub(super) fn label(self) -> String {
        format!("{:04}-of-{:04}", self.number, self.count)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let numbers = typed
            .split_once('/')
            .and_then(|(number, count)| Self::new(number.trim().parse().ok()?, count.trim().parse().ok()?));
        numbers.ok_or_else(|| "expected a number and how many there are, from 1/16 to 16/16".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_all_images_once_in_order_and_start_with_an_inference() {
        for (images, batch, count) in [(1000, 4, 16), (10, 4, 16), (0, 4, 3), (1281167, 7, 13), (5, 1, 5)] {
            let ranges: Vec<_> =
                (1..=count).map(|number| Shard::new(number, count).unwrap().range(images, batch)).collect();
            let mut next = 0;
            for range in &ranges {
                assert_eq!(range.start, next);
                assert!(range.is_empty() || range.start.is_multiple_of(batch));
                next = range.end;
            }
            assert_eq!(next, images);
            let longest = ranges.iter().map(Range::len).max().unwrap();
            assert!(longest <= images / count + 2 * batch, "{longest} of {images}");
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 3, count: 16 }));
        for typed in ["0/16", "17/16", "3", "3/0", "a/b", "-1/2", "1/9999999"] {
            assert!(typed.parse::<Shard>().is_err(), "{typed}");
        }
    }
}
