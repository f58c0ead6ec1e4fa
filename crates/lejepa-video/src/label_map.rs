//! Which object every pixel belongs to.

use ndarray::Array2;

/// A label for every pixel; 0 is the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMap {
    /// The labels, `(height, width)`.
    pub labels: Array2<u8>,
    /// The label of pixels that are not judged.
    pub void: Option<u8>,
}

impl LabelMap {
    /// Labels of which none is void.
    pub fn new(labels: Array2<u8>) -> Self {
        Self { labels, void: None }
    }

    /// One object, with the label 1.
    pub fn of_mask(mask: &Array2<bool>) -> Self {
        Self::new(mask.mapv(u8::from))
    }

    /// The labels that occur, without background and void, rising.
    pub fn objects(&self) -> Vec<u8> {
        let mut occurs = [false; 256];
        self.labels.iter().for_each(|&label| occurs[usize::from(label)] = true);
        let is_object = |label: &u8| *label != 0 && Some(*label) != self.void && occurs[usize::from(*label)];
        (0..=u8::MAX).filter(is_object).collect()
    }

    /// The pixels of an object.
    pub fn object(&self, label: u8) -> Array2<bool> {
        self.labels.mapv(|found| found == label)
    }

    /// The pixels that are not judged; nothing if all are.
    pub(crate) fn void_pixels(&self) -> Option<Array2<bool>> {
        self.void.filter(|void| self.labels.iter().any(|label| label == void)).map(|void| self.object(void))
    }

    /// The labels at another size; every pixel takes the nearest one.
    pub fn resized(&self, (height, width): (usize, usize)) -> Self {
        let (from_height, from_width) = self.labels.dim();
        let nearest = |place: usize, from: usize, to: usize| (2 * place + 1) * from / (2 * to);
        let labels = Array2::from_shape_fn((height, width), |(row, column)| {
            self.labels[(nearest(row, from_height, height), nearest(column, from_width, width))]
        });
        Self { labels, void: self.void }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn background_and_void_are_no_objects() {
        let map = LabelMap { labels: array![[0, 2, 255], [7, 2, 0]], void: Some(255) };
        assert_eq!(map.objects(), [2, 7]);
        assert_eq!(map.object(2), array![[false, true, false], [false, true, false]]);
        assert_eq!(map.void_pixels(), Some(array![[false, false, true], [false, false, false]]));
        assert_eq!(LabelMap::new(array![[0, 255]]).objects(), [255]);
        assert_eq!(LabelMap::new(array![[0, 255]]).void_pixels(), None);
    }

    #[test]
    fn pixels_take_the_nearest_label() {
        let map = LabelMap::new(array![[1, 2], [3, 4]]);
        assert_eq!(map.resized((1, 4)).labels, array![[3, 3, 4, 4]]);
        assert_eq!(map.resized((4, 2)).resized((2, 2)), map);
    }
}
