//! The colours of masks: those of DAVIS.

/// What index 255 means in an indexed mask: a pixel that is not judged.
pub(super) const VOID: u8 = 255;
/// How many indices have a colour; the others are grey.
const COLOURED: u8 = 22;

/// Red, green and blue of an object's number: the bits of the number, lowest first, go to red, green and
/// blue in turn, from the highest bit of the colour down.
pub(super) fn colour(number: u8) -> [u8; 3] {
    if number >= COLOURED {
        return [number; 3];
    }
    // DAVIS writes 191 where Pascal VOC has 192.
    let channel = |shift: u8| match (number >> shift & 1, number >> (shift + 3) & 1) {
        (0, 0) => 0,
        (0, _) => 64,
        (_, 0) => 128,
        _ => 191,
    };
    [channel(0), channel(1), channel(2)]
}

/// The same, bright enough to be laid over a picture.
pub(super) fn bright_colour(number: u8) -> [u8; 3] {
    colour(number).map(|value| value.saturating_mul(2))
}

/// All 256 colours one after the other.
pub(super) fn palette() -> Vec<u8> {
    (0..=u8::MAX).flat_map(colour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_davis() {
        let written: Vec<[u8; 3]> = [0, 1, 2, 3, 4, 7, 8, 9, 18, 21, 22, 255].map(colour).into();
        let davis = [
            [0, 0, 0],
            [128, 0, 0],
            [0, 128, 0],
            [128, 128, 0],
            [0, 0, 128],
            [128, 128, 128],
            [64, 0, 0],
            [191, 0, 0],
            [0, 191, 0],
            [128, 64, 128],
            [22, 22, 22],
            [255, 255, 255],
        ];
        assert_eq!(written, davis);
        assert_eq!(palette().len(), 768);
    }
}
