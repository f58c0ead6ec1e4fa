//! The views of a sample: random resized crops, turned, recoloured, blurred (paper, section 5).
//!
//! What happens to each view is drawn before the image is decoded, from its size alone; so a large JPEG
//! is decoded no larger than the crops need. One [`Workbench`] per thread holds the memory of all views:
//! after the first sample nothing is allocated for one, but for the coefficients of its resizing.

mod blur;
mod colour;
mod config;
mod crop;
#[cfg(test)]
mod golden_tests;
mod planes;

pub use config::{CropConfig, ViewsConfig};

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::resize::Resizer;
use crate::{CropBox, Image, Preprocess, Result, Stored};
use blur::Blur;
use colour::Adjustments;
use planes::{Orientation, Planes};

/// Pixels of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// Makes the views of a sample.
#[derive(Debug, Clone)]
pub struct Views {
    config: ViewsConfig,
    global_size: ViewSize,
    local_size: ViewSize,
    preprocess: Preprocess,
}

/// The memory of a thread that makes views.
#[derive(Debug, Default)]
pub struct Workbench {
    recipes: Vec<ViewRecipe>,
    resizer: Resizer,
    resized: Vec<u8>,
    planes: Planes,
    blur: Blur,
}

/// All that was drawn for one view.
#[derive(Debug, Clone, PartialEq)]
struct ViewRecipe {
    size: ViewSize,
    crop: CropBox,
    orientation: Orientation,
    adjustments: Adjustments,
    blur_sigma: Option<f32>,
    solarize: bool,
}

impl Views {
    /// Global views have the size of the encoder's input, which `preprocess` describes together with
    /// channels and normalisation.
    pub fn new(config: &ViewsConfig, preprocess: &Preprocess, local_size: ViewSize) -> Result<Self> {
        config.check()?;
        preprocess.check()?;
        let global_size = ViewSize { height: preprocess.crop_height, width: preprocess.crop_width };
        Ok(Self { config: config.clone(), global_size, local_size, preprocess: preprocess.clone() })
    }

    /// Number and size of global views.
    pub fn global(&self) -> (usize, ViewSize) {
        (self.config.global.count, self.global_size)
    }

    /// Number and size of local views.
    pub fn local(&self) -> (usize, ViewSize) {
        (self.config.local.count, self.local_size)
    }

    /// Channels of every view.
    pub fn channels(&self) -> usize {
        self.preprocess.channels
    }

    /// A view as a picture.
    pub(crate) fn picture(&self, size: ViewSize, pixels: &[f32]) -> Result<Image> {
        self.preprocess.picture(size.height, size.width, pixels)
    }

    /// Makes all views of a sample, global ones first, each `(channels, height, width)`, into
    /// `targets`: one slice per view.
    pub fn make(
        &self,
        stored: Stored,
        generator: &mut ChaCha8Rng,
        workbench: &mut Workbench,
        targets: &mut [&mut [f32]],
    ) -> Result<()> {
        let (height, width) = stored.size()?;
        workbench.recipes.clear();
        let (global, local) = (&self.config.global, &self.config.local);
        for (crops, size) in [(global, self.global_size), (local, self.local_size)] {
            for _view in 0..crops.count {
                let crop = crop::random_crop(height, width, crops.scale, generator);
                workbench.recipes.push(self.recipe(crop, size, generator));
            }
        }
        let shrink = workbench.recipes.iter().map(ViewRecipe::largest_shrink).min().unwrap_or(1);
        let image = stored.decode_shrunk(shrink)?.with_channels(self.channels());
        let Workbench { recipes, resizer, resized, planes, blur } = workbench;
        for (recipe, target) in recipes.iter().zip(targets) {
            let crop = recipe.crop.rescaled((height, width), (image.height(), image.width()));
            let ViewSize { height: rows, width: columns } = recipe.orientation.source_size(recipe.size);
            resizer.crop(&image, crop, (rows, columns), resized)?;
            let channels = image.channels();
            pulp::Arch::new().dispatch(Finish {
                views: self,
                recipe,
                resized,
                channels,
                planes,
                blur,
                target,
            });
        }
        Ok(())
    }

    fn recipe(&self, crop: CropBox, size: ViewSize, generator: &mut ChaCha8Rng) -> ViewRecipe {
        let config = &self.config;
        let flip = generator.random_bool(config.flip);
        let flip_vertical = generator.random_bool(config.flip_vertical);
        let quarters =
            if generator.random_bool(config.quarter_turns) { generator.random_range(1..=3) } else { 0 };
        let orientation = Orientation { transpose: false, flip, flip_vertical }.turned(quarters);
        let adjustments = colour::draw(config, self.channels(), generator);
        let [narrowest, widest] = config.blur_sigma;
        let blur_sigma =
            generator.random_bool(config.blur).then(|| generator.random_range(narrowest..=widest) as f32);
        let solarize = generator.random_bool(config.solarize);
        ViewRecipe { size, crop, orientation, adjustments, blur_sigma, solarize }
    }
}

/// Everything after the crop, compiled for the best instructions that the processor has.
struct Finish<'a> {
    views: &'a Views,
    recipe: &'a ViewRecipe,
    resized: &'a [u8],
    channels: usize,
    planes: &'a mut Planes,
    blur: &'a mut Blur,
    target: &'a mut [f32],
}

impl pulp::NullaryFnOnce for Finish<'_> {
    type Output = ();

    // All that it calls must be inlined too, or it is compiled for the oldest processor.
    #[inline(always)]
    fn call(self) {
        let Self { views, recipe, resized, channels, planes, blur, target } = self;
        planes.load(resized, channels, recipe.size, recipe.orientation);
        colour::adjust(planes, &recipe.adjustments);
        if let Some(sigma) = recipe.blur_sigma {
            blur.apply(planes, views.config.blur_kernel, sigma);
        }
        if recipe.solarize {
            planes.solarize(views.config.solarize_threshold);
        }
        planes.normalise_into(&views.preprocess, target);
    }
}

impl ViewRecipe {
    /// By how much the image may be shrunk and still have as many pixels in the crop as in the view.
    fn largest_shrink(&self) -> usize {
        let source = self.orientation.source_size(self.size);
        (self.crop.height / source.height).min(self.crop.width / source.width).max(1)
    }
}

impl CropBox {
    /// The same part of the image at another size.
    fn rescaled(self, from: (usize, usize), to: (usize, usize)) -> Self {
        if from == to {
            return self;
        }
        let along = |start: usize, length: usize, from: usize, to: usize| {
            let scale = to as f64 / from as f64;
            let length = ((length as f64 * scale).round() as usize).clamp(1, to);
            (((start as f64 * scale).round() as usize).min(to - length), length)
        };
        let (top, height) = along(self.top, self.height, from.0, to.0);
        let (left, width) = along(self.left, self.width, from.1, to.1);
        Self { top, left, height, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, generator};

    fn make(views: &Views, image: Image, part: u64, workbench: &mut Workbench) -> Vec<Vec<f32>> {
        let ((global, global_size), (local, local_size)) = (views.global(), views.local());
        let length = |size: ViewSize| views.channels() * size.height * size.width;
        let mut made: Vec<Vec<f32>> = std::iter::repeat_n(vec![0.; length(global_size)], global)
            .chain(std::iter::repeat_n(vec![0.; length(local_size)], local))
            .collect();
        let mut targets: Vec<&mut [f32]> = made.iter_mut().map(|view| &mut view[..]).collect();
        let mut generator = generator(0, Purpose::Views, 0, part);
        views.make(Stored::Pixels(image), &mut generator, workbench, &mut targets).unwrap();
        made
    }

    #[test]
    fn views_have_the_sizes_that_were_asked_for_whatever_happens_to_them() {
        let config = ViewsConfig { quarter_turns: 0.7, flip_vertical: 0.5, ..Default::default() };
        let local = ViewSize { height: 14, width: 9 };
        let mut workbench = Workbench::default();
        for channels in [1, 3] {
            let preprocess = Preprocess::new(28, (28, 20), channels);
            let views = Views::new(&config, &preprocess, local).unwrap();
            for (part, (height, width)) in [(40, 30), (1, 1), (3, 200), (200, 2)].into_iter().enumerate() {
                let image = Image::from_pixels(height, width, 3, vec![77; height * width * 3]).unwrap();
                let made = make(&views, image, part as u64, &mut workbench);
                assert!(made.iter().flatten().all(|value| value.is_finite()));
                // A flat image gives flat views: no pixel was left out or written twice.
                for view in &made {
                    for plane in view.chunks_exact(view.len() / channels) {
                        assert!(plane.iter().all(|value| value == &plane[0]));
                    }
                }
            }
        }
    }

    #[test]
    fn a_used_workbench_makes_the_same_views_as_a_new_one() {
        let local = ViewSize { height: 8, width: 8 };
        let views = Views::new(&ViewsConfig::default(), &Preprocess::new(16, (16, 16), 3), local).unwrap();
        let image = |index: usize| {
            let pixels = (0..50 * 40 * 3).map(|value| (value * (index + 3) / 7) as u8).collect();
            Image::from_pixels(50, 40, 3, pixels).unwrap()
        };
        let mut used = Workbench::default();
        for part in 0..20 {
            let again = make(&views, image(part), part as u64, &mut used);
            assert!(again == make(&views, image(part), part as u64, &mut Workbench::default()));
        }
    }

    #[test]
    fn a_crop_keeps_its_place_in_a_shrunk_image() {
        let crop = CropBox { top: 100, left: 40, height: 60, width: 80 };
        assert_eq!(crop.rescaled((200, 160), (200, 160)), crop);
        assert_eq!(crop.rescaled((200, 160), (50, 40)), CropBox { top: 25, left: 10, height: 15, width: 20 });
        let edge = CropBox { top: 198, left: 0, height: 3, width: 161 };
        let shrunk = edge.rescaled((201, 161), (26, 21));
        assert!(shrunk.height >= 1 && shrunk.top + shrunk.height <= 26 && shrunk.width <= 21, "{shrunk:?}");
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let message = |config: ViewsConfig| config.check().unwrap_err().to_string();
        let good = ViewsConfig::default();
        assert!(message(ViewsConfig { flip: 1.5, ..good.clone() }).contains("views.flip"));
        assert!(message(ViewsConfig { hue: 0.6, ..good.clone() }).contains("views.hue"));
        assert!(message(ViewsConfig { blur_kernel: 8, ..good.clone() }).contains("views.blur_kernel"));
        assert!(message(ViewsConfig { blur_sigma: [0., 1.], ..good.clone() }).contains("views.blur_sigma"));
        let none = CropConfig { count: 0, scale: [0.3, 1.] };
        assert!(message(ViewsConfig { global: none, ..good.clone() }).contains("views.global.count"));
        let reversed = CropConfig { count: 2, scale: [0.3, 0.1] };
        assert!(message(ViewsConfig { local: reversed, ..good }).contains("views.local.scale"));
    }
}
