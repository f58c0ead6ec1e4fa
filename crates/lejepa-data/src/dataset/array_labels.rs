//! Labels that are kept as an array of integers, one for each image.

/// The largest label that is believed where nothing names the classes.
pub(super) const LARGEST: usize = 1_000_000;

/// Checks the shape of labels: `[images]` or `[images, 1]`; the error says what is wrong.
pub(super) fn check_label_shape(axes: &[usize], images: usize) -> Result<(), String> {
    match *axes {
        [count] | [count, 1] if count == images => Ok(()),
        [count] | [count, 1] => Err(format!("{count} labels for {images} images")),
        _ => Err(format!("expected one label for each of {images} images, got shape {axes:?}")),
    }
}

/// Labels as indices of classes.
pub(super) fn check_labels(values: impl IntoIterator<Item = i128>) -> Result<Vec<usize>, String> {
    let check = |(image, value)| believed(value).map_err(|problem| format!("{problem} for image {image}"));
    values.into_iter().enumerate().map(check).collect()
}

/// A label that can be the number of a class. Enormous ones are refused, because each class has a name.
pub(super) fn believed(value: i128) -> Result<usize, String> {
    match usize::try_from(value) {
        Ok(label) if label <= LARGEST => Ok(label),
        _ => Err(format!("expected labels from 0 to {LARGEST}, got {value}")),
    }
}

/// Numbers as names of classes, up to the largest label.
pub(super) fn numbered_classes(labels: impl IntoIterator<Item = usize>) -> Vec<String> {
    let count = labels.into_iter().max().map_or(0, |largest| largest + 1);
    (0..count).map(|class| class.to_string()).collect()
}

/// What to tell people whose labels are no integers.
pub(super) fn wrong_label_type(kind: &str) -> String {
    format!("labels are {kind}, expected integers: write them as class numbers from 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_cannot_be_classes_are_refused() {
        assert_eq!(check_labels([0, 5, 1_000_000]).unwrap(), [0, 5, 1_000_000]);
        assert!(check_labels([0, -1]).unwrap_err().contains("got -1 for image 1"));
        assert!(check_labels([1_000_001]).is_err());
        assert!(check_labels([u64::MAX.into()]).is_err());
    }

    #[test]
    fn there_is_one_label_for_each_image() {
        assert!(check_label_shape(&[7], 7).is_ok());
        assert!(check_label_shape(&[7, 1], 7).is_ok());
        assert_eq!(check_label_shape(&[6], 7).unwrap_err(), "6 labels for 7 images");
        assert!(check_label_shape(&[7, 14], 7).unwrap_err().contains("one label for each"));
        assert!(check_label_shape(&[], 7).is_err());
    }

    #[test]
    fn classes_are_numbered_up_to_the_largest_label() {
        assert_eq!(numbered_classes([2, 0]), ["0", "1", "2"]);
        assert!(numbered_classes([]).is_empty());
    }
}
