//! Brightness, contrast, saturation, hue and grey, as torchvision changes them on Pillow images: values
//! are cut to 8 bits after every change.
//!
//! All changes between two means of the image are made in one pass over blocks that stay in the
//! fastest cache.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::planes::{Planes, to_byte};
use super::{ViewSize, ViewsConfig};

/// One change of all colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Adjustment {
    /// Multiplies every value: 1 changes nothing, 0 gives black.
    Brightness(f32),
    /// Stretches every value away from the mean grey: 1 changes nothing, 0 gives flat grey.
    Contrast(f32),
    /// Stretches every pixel away from its own grey: 1 changes nothing, 0 takes the colours away.
    Saturation(f32),
    /// Turns the colour circle, by 256ths.
    Hue(u8),
    /// Takes the colours away.
    Grey,
}

/// The changes of one view, in their order.
pub(super) type Adjustments = [Option<Adjustment>; 5];

/// Draws the changes of a view: the four parts of colour jitter in random order, then grey.
pub(super) fn draw(config: &ViewsConfig, channels: usize, generator: &mut ChaCha8Rng) -> Adjustments {
    let mut adjustments = [None; 5];
    if generator.random_bool(config.jitter) {
        let mut factor = |range: f64| generator.random_range(1. - range..=1. + range) as f32;
        let brightness = Adjustment::Brightness(factor(config.brightness));
        let contrast = Adjustment::Contrast(factor(config.contrast));
        let saturation = Adjustment::Saturation(factor(config.saturation));
        let hue = generator.random_range(-config.hue..=config.hue);
        // As torchvision rounds it: towards zero, then modulo 256.
        let hue = Adjustment::Hue((hue * 255.) as i32 as u8);
        let mut jitter = [brightness, contrast, saturation, hue];
        jitter.shuffle(generator);
        for (slot, change) in adjustments.iter_mut().zip(jitter) {
            *slot = Some(change);
        }
    }
    if generator.random_bool(config.grey) {
        adjustments[4] = Some(Adjustment::Grey);
    }
    // What leaves a picture as it is need not be computed.
    adjustments.map(|adjustment| {
        adjustment.filter(|change| match change {
            Adjustment::Brightness(factor) | Adjustment::Contrast(factor) => *factor != 1.,
            Adjustment::Saturation(factor) => channels == 3 && *factor != 1.,
            Adjustment::Hue(turn) => channels == 3 && *turn != 0,
            Adjustment::Grey => channels == 3,
        })
    })
}

/// Pixels that are changed at a time.
const BLOCK: usize = 256;

/// A block of pixels with whole values in `[0, 255]`, in a type with which the processor computes
/// eight or more at a time.
struct Block {
    red: [f32; BLOCK],
    green: [f32; BLOCK],
    blue: [f32; BLOCK],
}

/// Makes all changes.
#[inline(always)]
pub(super) fn adjust(planes: &mut Planes, adjustments: &Adjustments) {
    let mut pending = [None; 5];
    let mut count = 0;
    for &adjustment in adjustments.iter().flatten() {
        let mean = if matches!(adjustment, Adjustment::Contrast(_)) {
            apply(planes, &pending[..count]);
            count = 0;
            mean_grey(planes)
        } else {
            0.
        };
        pending[count] = Some((adjustment, mean));
        count += 1;
    }
    apply(planes, &pending[..count]);
}

#[inline(always)]
fn apply(planes: &mut Planes, changes: &[Option<(Adjustment, f32)>]) {
    if changes.is_empty() {
        return;
    }
    let mut block = Block { red: [0.; BLOCK], green: [0.; BLOCK], blue: [0.; BLOCK] };
    match planes.channels_mut() {
        [red, green, blue] => {
            let pixels = red.chunks_mut(BLOCK).zip(green.chunks_mut(BLOCK)).zip(blue.chunks_mut(BLOCK));
            for ((red, green), blue) in pixels {
                load(red, &mut block.red);
                load(green, &mut block.green);
                load(blue, &mut block.blue);
                for &(adjustment, mean) in changes.iter().flatten() {
                    block.change(adjustment, mean);
                }
                store(&block.red, red);
                store(&block.green, green);
                store(&block.blue, blue);
            }
        }
        [grey, ..] => {
            for grey in grey.chunks_mut(BLOCK) {
                load(grey, &mut block.red);
                for &(adjustment, mean) in changes.iter().flatten() {
                    match adjustment {
                        Adjustment::Brightness(factor) => stretch(&mut block.red, 0., factor),
                        Adjustment::Contrast(factor) => stretch(&mut block.red, mean, factor),
                        // Grey pictures have no colours to change.
                        Adjustment::Saturation(_) | Adjustment::Hue(_) | Adjustment::Grey => {}
                    }
                }
                store(&block.red, grey);
            }
        }
        [] => {}
    }
}

impl Block {
    #[inline(always)]
    fn change(&mut self, adjustment: Adjustment, mean: f32) {
        match adjustment {
            Adjustment::Brightness(factor) => self.stretch(0., factor),
            Adjustment::Contrast(factor) => self.stretch(mean, factor),
            Adjustment::Saturation(factor) => self.saturate(factor),
            Adjustment::Hue(turn) => self.turn_hue(turn),
            Adjustment::Grey => self.saturate(0.),
        }
    }

    #[inline(always)]
    fn stretch(&mut self, from: f32, factor: f32) {
        for values in [&mut self.red, &mut self.green, &mut self.blue] {
            stretch(values, from, factor);
        }
    }

    #[inline(always)]
    fn saturate(&mut self, factor: f32) {
        let Self { red, green, blue } = self;
        for pixel in 0..BLOCK {
            let grey = luma(red[pixel], green[pixel], blue[pixel]);
            red[pixel] = blend(grey, red[pixel], factor);
            green[pixel] = blend(grey, green[pixel], factor);
            blue[pixel] = blend(grey, blue[pixel], factor);
        }
    }

    #[inline(always)]
    fn turn_hue(&mut self, turn: u8) {
        let Self { red, green, blue } = self;
        let turn = f32::from(turn);
        for pixel in 0..BLOCK {
            let (hue, saturation, value) = to_hsv(red[pixel], green[pixel], blue[pixel]);
            let turned = hue + turn;
            let hue = if turned >= 256. { turned - 256. } else { turned };
            (red[pixel], green[pixel], blue[pixel]) = to_rgb(hue, saturation, value);
        }
    }
}

#[inline(always)]
fn load(values: &[u8], block: &mut [f32; BLOCK]) {
    for (value, &byte) in block.iter_mut().zip(values) {
        *value = f32::from(byte);
    }
}

#[inline(always)]
fn store(block: &[f32; BLOCK], values: &mut [u8]) {
    for (byte, &value) in values.iter_mut().zip(block) {
        *byte = to_byte(value);
    }
}

#[inline(always)]
fn stretch(values: &mut [f32; BLOCK], from: f32, factor: f32) {
    for value in values {
        *value = blend(from, *value, factor);
    }
}

/// Pillow's `Image.blend` for one value.
#[inline(always)]
fn blend(from: f32, to: f32, factor: f32) -> f32 {
    (from + (to - from) * factor).clamp(0., 255.).trunc()
}

/// ITU-R 601 luma as Pillow rounds it; every step is exact in `f32`.
#[inline(always)]
fn luma(red: f32, green: f32, blue: f32) -> f32 {
    ((red * 19595. + green * 38470. + blue * 7471. + 32768.) * (1. / 65536.)).floor()
}

/// Hue, saturation and value in whole numbers up to 255, as Pillow rounds them.
#[inline(always)]
fn to_hsv(red: f32, green: f32, blue: f32) -> (f32, f32, f32) {
    let largest = red.max(green).max(blue);
    let chroma = largest - red.min(green).min(blue);
    // Grey pixels get saturation 0, whatever the division gives for their hue.
    let per_chroma = if chroma > 0. { chroma } else { 1. };
    let red_gap = (largest - red) / per_chroma;
    let green_gap = (largest - green) / per_chroma;
    let blue_gap = (largest - blue) / per_chroma;
    let [red_gap, green_gap, blue_gap] = [red_gap, green_gap, blue_gap].map(f64::from);
    let of_blue = 4. + green_gap - red_gap;
    let of_green = 2. + red_gap - blue_gap;
    let of_red = blue_gap - green_gap;
    let sector = if green == largest { of_green } else { of_blue };
    let sector = if red == largest { of_red } else { sector } as f32;
    // Pillow goes through both precisions, and one step of hue is up to six steps of colour.
    let circle = f64::from(sector) / 6. + 1.;
    let hue = ((circle - circle.floor()) as f32 * 255.).floor();
    let saturation = (chroma / largest.max(1.) * 255.).floor();
    (hue, saturation, largest)
}

/// The way back, with Pillow's rounding.
#[inline(always)]
fn to_rgb(hue: f32, saturation: f32, value: f32) -> (f32, f32, f32) {
    let sector = hue * 6. / 255.;
    let whole = sector.floor();
    let part = sector - whole;
    let share = saturation / 255.;
    let round = |value: f32| (value + 0.5).floor();
    let low = round(value * (1. - share));
    let falling = round(value * (1. - share * part));
    let rising = round(value * (1. - share * (1. - part)));
    let choose = |zero, one, two, three, four, five| {
        let upper = if whole == 3. {
            three
        } else if whole == 4. {
            four
        } else {
            five
        };
        let lower = if whole == 1. {
            one
        } else if whole == 2. {
            two
        } else {
            upper
        };
        // Hue 255 is the start of the circle again.
        if whole == 0. || whole == 6. { zero } else { lower }
    };
    (
        choose(value, falling, low, low, rising, value),
        choose(rising, value, value, falling, low, low),
        choose(low, low, rising, value, value, falling),
    )
}

/// The mean of Pillow's greys, rounded.
#[inline(always)]
fn mean_grey(planes: &Planes) -> f32 {
    let ViewSize { height, width } = planes.size();
    let sum: u64 = match planes.channels() {
        [red, green, blue] => {
            let blocks = red.chunks(BLOCK).zip(green.chunks(BLOCK)).zip(blue.chunks(BLOCK));
            blocks.map(|((red, green), blue)| u64::from(sum_of_greys(red, green, blue))).sum()
        }
        [grey, ..] => grey.iter().map(|&value| u64::from(value)).sum(),
        [] => 0,
    };
    (sum as f64 / (height * width) as f64).round() as f32
}

/// Of one block, so that the sum fits.
#[inline(always)]
fn sum_of_greys(red: &[u8], green: &[u8], blue: &[u8]) -> u32 {
    let pixels = red.iter().zip(green).zip(blue);
    let grey = |((&red, &green), &blue): ((&u8, &u8), &u8)| {
        (u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16
    };
    pixels.map(grey).sum()
}
