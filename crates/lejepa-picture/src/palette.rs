//! Colours for values.

/// Matplotlib's `magma` at eighths: dark to light, also for people who see colours differently.
const MAGMA: [[u8; 3]; 9] = [
    [0, 0, 4],
    [28, 16, 68],
    [79, 18, 123],
    [129, 37, 129],
    [181, 54, 122],
    [229, 80, 100],
    [251, 135, 97],
    [254, 194, 135],
    [252, 253, 191],
];

/// The colour of a value between 0 and 1.
pub fn heat(value: f32) -> [u8; 3] {
    // No number is drawn as nothing.
    let place = if value.is_nan() { 0. } else { value.clamp(0., 1.) } * (MAGMA.len() - 1) as f32;
    let below = (place as usize).min(MAGMA.len() - 2);
    let share = place - below as f32;
    [0, 1, 2].map(|channel| {
        let [from, to] = [MAGMA[below][channel], MAGMA[below + 1][channel]].map(f32::from);
        (from + share * (to - from)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_values_are_lighter() {
        let light = |value: f32| heat(value).into_iter().map(u32::from).sum::<u32>();
        assert!((0..100).all(|step| light(step as f32 / 100.) < light((step + 1) as f32 / 100.)));
        assert_eq!((heat(-1.), heat(0.5), heat(2.)), (MAGMA[0], MAGMA[4], MAGMA[8]));
        assert_eq!(heat(f32::NAN), MAGMA[0]);
    }
}
