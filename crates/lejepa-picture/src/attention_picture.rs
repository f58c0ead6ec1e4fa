//! What the class token of a vision transformer looks at: attention, masks and both over the image.

use lejepa_data::{ContactSheet, Image, SheetCell, SheetRow};
use ndarray::{Array2, ArrayView3};

use super::overlay::{Overlay, blend};
use super::{Upsampling, attention_mask, heat, mean_attention};
use crate::Result;

/// Pictures of one map of attention, all of the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionPicture {
    /// `mean`, or `head 1` and so on.
    pub name: String,
    /// The attention, the largest in the lightest colour.
    pub heat: Image,
    /// White where the mask is set.
    pub mask: Image,
    /// The mask over the image: what is outside is dark and grey.
    pub overlay: Image,
}

/// How pictures of attention are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionPictures {
    /// The share of attention that masks keep.
    pub mass: f64,
    /// How maps are drawn at the size of the image.
    pub upsampling: Upsampling,
}

/// How much of the surroundings of a mask is left.
const DIMMED: Overlay = Overlay { colour: [16, 16, 20], opacity: 0.7 };
/// The edge between both stays visible on dark images too.
const TINT: Overlay = Overlay { colour: [255, 196, 0], opacity: 0.16 };

impl AttentionPictures {
    /// Pictures of the mean over heads and of every head. The image is the part that the encoder saw, at
    /// any size.
    ///
    /// # Shapes
    /// - `heads`: `(heads, rows, columns)`
    pub fn of(&self, image: &Image, heads: ArrayView3<'_, f32>) -> Result<Vec<AttentionPicture>> {
        let mut pictures = vec![self.picture("mean".into(), image, &mean_attention(heads))?];
        for (head, attention) in (1..).zip(heads.outer_iter()) {
            pictures.push(self.picture(format!("head {head}"), image, &attention.to_owned())?);
        }
        Ok(pictures)
    }

    /// A picture of one map.
    fn picture(&self, name: String, image: &Image, attention: &Array2<f32>) -> Result<AttentionPicture> {
        let size = (image.height(), image.width());
        let mask = attention_mask(attention.view(), self.mass)?;
        // Inside or outside, also of a smooth outline.
        let coverage =
            self.upsampling.enlarge_mask(mask.view(), size).mapv(|share| f32::from(u8::from(share >= 0.5)));
        let outside = coverage.mapv(|inside| 1. - inside);
        let overlay = TINT.draw(&DIMMED.draw(image, outside.view())?, coverage.view())?;
        let largest = attention.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let relative = self.upsampling.enlarge(attention.mapv(|value| value / largest).view(), size);
        let black = Image::from_pixels(size.0, size.1, 1, vec![0; size.0 * size.1])?;
        Ok(AttentionPicture {
            name,
            heat: blend(image, relative.view(), |value| (heat(value), 1.))?,
            mask: blend(&black, coverage.view(), |inside| ([255; 3], inside))?,
            overlay,
        })
    }
}

/// Image, attention, mask and overlay side by side; a row for the mean and one for every head.
pub fn attention_sheet(image: &Image, pictures: &[AttentionPicture]) -> Result<Image> {
    let side = image.height().max(image.width());
    let cell = |image: &Image| SheetCell::new(image.clone(), side);
    let rows = pictures.iter().map(|picture| {
        let cells = [image, &picture.heat, &picture.mask, &picture.overlay];
        let cells = cells.into_iter().map(cell).collect::<lejepa_data::Result<_>>()?;
        Ok(SheetRow { title: picture.name.clone(), cells })
    });
    Ok(ContactSheet::new(rows.collect::<Result<_>>()?).draw()?)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn image() -> Image {
        Image::from_pixels(8, 16, 3, vec![200; 8 * 16 * 3]).unwrap()
    }

    #[test]
    fn every_head_and_their_mean_are_drawn() {
        let heads = array![[[0.7, 0.1]], [[0.2, 0.6]]];
        let pictures = AttentionPictures { mass: 0.6, upsampling: Upsampling::Nearest };
        let pictures = pictures.of(&image(), heads.view()).unwrap();
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["mean", "head 1", "head 2"]);
        let pixel = |image: &Image, column: usize| image.pixels()[column * 3..][..3].to_vec();
        assert_eq!((pixel(&pictures[1].mask, 0), pixel(&pictures[1].mask, 15)), (vec![255; 3], vec![0; 3]));
        assert_eq!((pixel(&pictures[2].mask, 0), pixel(&pictures[2].mask, 15)), (vec![0; 3], vec![255; 3]));
        assert_eq!(pixel(&pictures[1].heat, 0), heat(1.));
        assert!(pixel(&pictures[1].overlay, 0)[0] > 150 && pixel(&pictures[1].overlay, 15)[0] < 80);
        let sheet = attention_sheet(&image(), &pictures).unwrap();
        assert!(sheet.width() > 4 * 16 && sheet.height() > 3 * 16);
    }

    #[test]
    fn a_head_that_looks_at_no_patch_is_dark() {
        let pictures = AttentionPictures { mass: 0.6, upsampling: Upsampling::Smooth };
        let pictures = pictures.of(&image(), array![[[0., 0.]]].view()).unwrap();
        assert!(pictures[1].mask.pixels().iter().all(|&value| value == 0));
        assert_eq!(pictures[1].heat.pixels()[..3], heat(0.));
    }

    #[test]
    fn masks_have_an_edge_also_if_they_are_smooth() {
        let pictures = AttentionPictures { mass: 0.6, upsampling: Upsampling::Smooth };
        let pictures = pictures.of(&image(), array![[[0.7, 0.1]]].view()).unwrap();
        assert!(pictures[0].mask.pixels().iter().all(|&value| value == 0 || value == 255));
        assert_eq!((pictures[0].mask.pixels()[0], pictures[0].mask.pixels()[15 * 3]), (255, 0));
    }
}
