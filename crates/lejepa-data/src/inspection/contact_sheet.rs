//! Many images in one picture, row by row, with a title beside each row.
//!
//! ```text
//!   cat  [image] [image] [image]
//!   dog  [image] [image]
//! ```

use rayon::prelude::*;

use super::choose;
use super::title::Title;
use crate::resize::Resizer;
use crate::{BatchSource, Dataset, Image, Result};

/// Rows of images with titles.
#[derive(Debug)]
pub struct ContactSheet {
    rows: Vec<SheetRow>,
}

/// Images side by side.
#[derive(Debug)]
pub struct SheetRow {
    /// What stands to the left; may be empty.
    pub title: String,
    /// The images.
    pub cells: Vec<SheetCell>,
}

/// An image that has been made to fit a square.
#[derive(Debug)]
pub struct SheetCell {
    image: Image,
    side: usize,
}

/// Space around every cell.
const GAP: usize = 4;
/// The widest title.
const MARGIN: usize = 192;
const PAPER: [u8; 3] = [240; 3];
/// Where an image does not fill its cell; neither black nor white images melt into it.
const MOUNT: [u8; 3] = [216; 3];
const INK: [u8; 3] = [48; 3];

impl SheetCell {
    /// Resizes an image so that its longer side is `side`.
    pub fn new(image: Image, side: usize) -> Result<Self> {
        let (height, width) = (image.height(), image.width());
        let scaled = |length: usize| (length * side).div_ceil(height.max(width));
        let size = (scaled(height), scaled(width));
        let mut pixels = Vec::new();
        Resizer::default().crop(&image, image.whole(), size, &mut pixels)?;
        let image = Image::from_pixels(size.0, size.1, image.channels(), pixels)?.with_channels(3);
        Ok(Self { image, side })
    }
}

impl ContactSheet {
    /// Side of a dataset's cells.
    pub const CELL: usize = 96;
    /// The most rows that are drawn of a dataset.
    pub const ROWS: usize = 12;
    /// The most images that are drawn in a row of a dataset.
    pub const COLUMNS: usize = 10;

    /// Of these rows, from top to bottom.
    pub fn new(rows: Vec<SheetRow>) -> Self {
        Self { rows }
    }

    /// A few images of each class, or a plain grid of unlabelled ones; always the same. Unreadable
    /// ones are left out.
    pub fn of(dataset: &dyn Dataset) -> Self {
        let mut members = vec![Vec::new(); dataset.class_names().len()];
        for index in 0..dataset.len() {
            if let Some(class) = dataset.label(index).and_then(|label| members.get_mut(label)) {
                class.push(index);
            }
        }
        let classes: Vec<usize> = (0..members.len()).filter(|&class| !members[class].is_empty()).collect();
        let mut rows: Vec<(String, Vec<usize>)> = spread(&classes, Self::ROWS)
            .into_iter()
            .map(|class| {
                let title = dataset.class_names()[class].clone();
                (title, choose(std::mem::take(&mut members[class]), Self::COLUMNS, class as u64))
            })
            .collect();
        if rows.is_empty() {
            let chosen = choose((0..dataset.len()).collect(), Self::ROWS * Self::COLUMNS, 0);
            let columns = (chosen.len() as f64).sqrt().ceil().clamp(1., Self::COLUMNS as f64) as usize;
            rows = chosen.chunks(columns).map(|row| (String::new(), row.to_vec())).collect();
        }
        let cell = |index| dataset.image(index).and_then(|image| SheetCell::new(image, Self::CELL)).ok();
        let row = |(title, indices): (String, Vec<usize>)| SheetRow {
            title,
            cells: indices.into_par_iter().filter_map(cell).collect(),
        };
        Self::new(rows.into_iter().map(row).filter(|row| !row.cells.is_empty()).collect())
    }

    /// The first batch, a row per sample: the image and its views, at their size.
    pub fn of_views(source: &BatchSource) -> Result<Self> {
        let batch = source.batch(0)?;
        let rows = source.indices(0).into_iter().enumerate().map(|(sample, index)| {
            let mut cells = Vec::new();
            // An image that was replaced has views of another one: its place stays empty.
            if let Ok(image) = source.dataset().image(index) {
                let side = batch.global.size.height.max(batch.global.size.width);
                cells.push(SheetCell::new(image, side)?);
            }
            for views in [&batch.global, &batch.local] {
                for view in 0..views.views {
                    let picture = source.views().picture(views.size, views.view(view, sample))?;
                    cells.push(SheetCell::new(picture, views.size.height.max(views.size.width))?);
                }
            }
            Ok(SheetRow { title: String::new(), cells })
        });
        Ok(Self::new(rows.collect::<Result<_>>()?))
    }

    /// The picture, in colour.
    pub fn draw(&self) -> Result<Image> {
        let longest = self.rows.iter().map(|row| row.title.chars().count()).max().unwrap_or(0);
        let scale = if longest * Title::GLYPH * 2 <= MARGIN { 2 } else { 1 };
        let titles: Vec<Title> = self
            .rows
            .iter()
            .map(|row| Title::new(&row.title, scale, MARGIN / (Title::GLYPH * scale)))
            .collect();
        let margin = titles.iter().map(Title::width).max().filter(|&width| width > 0);
        let margin = GAP + margin.map_or(0, |width| width + 2 * GAP);

        let heights = self.rows.iter().map(SheetRow::height);
        let height = heights.map(|height| height + GAP).sum::<usize>() + GAP;
        let width = self.rows.iter().map(SheetRow::width).max().unwrap_or(0) + margin;
        Image::check_size(height, width)?;
        let mut canvas = Image::from_pixels(height, width, 3, PAPER.repeat(height * width))?;
        let mut top = GAP;
        for (row, title) in self.rows.iter().zip(&titles) {
            let middle = (top + row.height() / 2).saturating_sub(title.height() / 2);
            title.draw(&mut canvas, middle, margin.saturating_sub(title.width() + 2 * GAP), INK);
            row.draw(&mut canvas, top, margin)?;
            top += row.height() + GAP;
        }
        Ok(canvas)
    }
}

impl SheetRow {
    fn height(&self) -> usize {
        self.cells.iter().map(|cell| cell.side).max().unwrap_or(Title::GLYPH)
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.side + GAP).sum()
    }

    fn draw(&self, canvas: &mut Image, top: usize, left: usize) -> Result<()> {
        let mut left = left;
        for SheetCell { image, side } in &self.cells {
            let top = top + (self.height() - side) / 2;
            let mount = Image::from_pixels(*side, *side, 3, MOUNT.repeat(side * side))?;
            paste(canvas, &mount, top, left);
            paste(canvas, image, top + (side - image.height()) / 2, left + (side - image.width()) / 2);
            left += side + GAP;
        }
        Ok(())
    }
}

/// Copies a colour image into another one, which must be large enough.
fn paste(canvas: &mut Image, image: &Image, top: usize, left: usize) {
    let (stride, length) = (canvas.width() * 3, image.width() * 3);
    for (row, pixels) in image.pixels().chunks_exact(length).enumerate() {
        let start = (top + row) * stride + left * 3;
        canvas.pixels_mut()[start..start + length].copy_from_slice(pixels);
    }
}

/// At most `count` of the values, first and last among them, at equal distances.
fn spread(values: &[usize], count: usize) -> Vec<usize> {
    if values.len() <= count {
        return values.to_vec();
    }
    (0..count).map(|step| values[step * (values.len() - 1) / (count - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Split;

    fn grey(height: usize, width: usize, value: u8) -> Image {
        Image::from_pixels(height, width, 1, vec![value; height * width]).unwrap()
    }

    fn pixel(image: &Image, row: usize, column: usize) -> u8 {
        image.pixels()[(row * image.width() + column) * 3]
    }

    #[test]
    fn images_keep_their_shape_and_lie_in_the_middle_of_their_cells() {
        let wide = SheetCell::new(grey(10, 20, 0), 40).unwrap();
        let small = SheetCell::new(grey(3, 3, 100), 20).unwrap();
        let sheet = ContactSheet::new(vec![SheetRow { title: String::new(), cells: vec![wide, small] }]);
        let drawn = sheet.draw().unwrap();
        assert_eq!((drawn.height(), drawn.width(), drawn.channels()), (40 + 8, 40 + 20 + 12, 3));
        assert_eq!(pixel(&drawn, 0, 0), PAPER[0]);
        assert_eq!((pixel(&drawn, 13, 4), pixel(&drawn, 14, 4)), (MOUNT[0], 0));
        assert_eq!((pixel(&drawn, 33, 43), pixel(&drawn, 34, 43)), (0, MOUNT[0]));
        assert_eq!(
            (pixel(&drawn, 13, 48), pixel(&drawn, 14, 48), pixel(&drawn, 33, 67)),
            (PAPER[0], 100, 100)
        );
    }

    #[test]
    fn extreme_shapes_and_empty_sheets_are_drawn_or_refused() {
        let cell = SheetCell::new(grey(1, 3000, 0), 16).unwrap();
        assert_eq!((cell.image.height(), cell.image.width()), (1, 16));
        let row = SheetRow { title: "a title without images".into(), cells: Vec::new() };
        assert_eq!(ContactSheet::new(vec![row]).draw().unwrap().height(), 8 + 8);
        assert!(ContactSheet::new(Vec::new()).draw().is_ok());
    }

    #[test]
    fn titles_make_room_for_themselves() {
        let row = |title: &str| SheetRow {
            title: title.into(),
            cells: vec![SheetCell::new(grey(8, 8, 0), 32).unwrap()],
        };
        let width = |title: &str| ContactSheet::new(vec![row(title)]).draw().unwrap().width();
        assert_eq!(width("cat"), width("") + 3 * 16 + 8);
        assert_eq!(width(&"long ".repeat(20)), width("") + MARGIN + 8);
    }

    #[test]
    fn a_dataset_with_many_classes_is_drawn_in_part() {
        let folder = tempfile::tempdir().unwrap();
        for class in 0..30 {
            let class = folder.path().join(format!("class{class:02}"));
            std::fs::create_dir(&class).unwrap();
            for index in 0..12 {
                ::image::GrayImage::new(4, 4).save(class.join(format!("{index}.bmp"))).unwrap();
            }
            std::fs::write(class.join("broken.bmp"), "no image").unwrap();
        }
        let sheet = ContactSheet::of(crate::open(folder.path(), Split::Train).unwrap().as_ref());
        assert_eq!(sheet.rows.len(), ContactSheet::ROWS);
        assert_eq!((&*sheet.rows[0].title, &*sheet.rows[11].title), ("class00", "class29"));
        assert!(sheet.rows.iter().all(|row| [9, 10].contains(&row.cells.len())));
    }

    #[test]
    fn unlabelled_images_make_a_plain_grid() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..7 {
            ::image::GrayImage::new(4, 4).save(folder.path().join(format!("{index}.bmp"))).unwrap();
        }
        let sheet = ContactSheet::of(crate::open(folder.path(), Split::Train).unwrap().as_ref());
        assert_eq!(sheet.rows.iter().map(|row| row.cells.len()).collect::<Vec<_>>(), [3, 3, 1]);
    }
}
