//! Short texts in a picture, in a font of 8x8 pixels.

use font8x8::legacy::{BASIC_LEGACY, LATIN_LEGACY};

use crate::Image;

/// One line of text.
#[derive(Debug)]
pub(crate) struct Title {
    glyphs: Vec<[u8; Title::GLYPH]>,
    scale: usize,
}

impl Title {
    /// Side of a character at scale 1.
    pub(crate) const GLYPH: usize = 8;

    /// Each pixel of the font is drawn as `scale` x `scale` pixels. A longer text than `most`
    /// characters ends in dots.
    pub(crate) fn new(text: &str, scale: usize, most: usize) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        if characters.len() > most {
            characters.truncate(most.saturating_sub(3));
            characters.extend("...".chars());
        }
        Self { glyphs: characters.into_iter().map(glyph).collect(), scale }
    }

    /// Rows.
    pub(crate) fn height(&self) -> usize {
        Self::GLYPH * self.scale
    }

    /// Columns.
    pub(crate) fn width(&self) -> usize {
        Self::GLYPH * self.scale * self.glyphs.len()
    }

    /// Draws the text into a colour image; what lies outside is left out.
    pub(crate) fn draw(&self, canvas: &mut Image, top: usize, left: usize, colour: [u8; 3]) {
        let (rows, columns) = (canvas.height(), canvas.width());
        for row in 0..self.height() {
            for column in 0..self.width() {
                let (line, across) = (row / self.scale, column / self.scale);
                let bits = self.glyphs[across / Self::GLYPH][line];
                let is_set = bits >> (across % Self::GLYPH) & 1 == 1;
                if is_set && top + row < rows && left + column < columns {
                    let start = ((top + row) * columns + left + column) * 3;
                    canvas.pixels_mut()[start..start + 3].copy_from_slice(&colour);
                }
            }
        }
    }
}

/// Rows of a character from the top, the leftmost pixel in the lowest bit.
fn glyph(character: char) -> [u8; Title::GLYPH] {
    let code = character as usize;
    let unknown = BASIC_LEGACY[usize::from(b'?')];
    match code {
        0x20..0x7f => BASIC_LEGACY[code],
        0xa0..0x100 => LATIN_LEGACY[code - 0xa0],
        _ => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_upright_and_unmirrored() {
        let mut canvas = Image::from_pixels(8, 8, 3, vec![0; 8 * 8 * 3]).unwrap();
        Title::new("L", 1, 10).draw(&mut canvas, 0, 0, [1; 3]);
        let rows: Vec<usize> = canvas
            .pixels()
            .chunks(24)
            .map(|row| row.iter().step_by(3).filter(|&&p| p == 1).count())
            .collect();
        let bottom = rows.iter().rposition(|&count| count > 0).unwrap();
        assert!(rows[bottom] > rows[0], "the foot of an L is its widest part: {rows:?}");
        let left: u32 = canvas.pixels().chunks(24).map(|row| u32::from(row[..12].contains(&1))).sum();
        let right: u32 = canvas.pixels().chunks(24).map(|row| u32::from(row[12..].contains(&1))).sum();
        assert!(left > right, "its stem is on the left");
    }

    #[test]
    fn long_and_foreign_texts_are_drawn_too() {
        let title = Title::new("a very long name", 2, 8);
        assert_eq!((title.height(), title.width()), (16, 8 * 16));
        assert_eq!(title.glyphs[7], glyph('.'));
        assert_eq!(Title::new("中é\n", 1, 8).glyphs, [glyph('?'), LATIN_LEGACY[0x49], glyph('?')]);
        let mut small = Image::from_pixels(3, 3, 3, vec![0; 27]).unwrap();
        title.draw(&mut small, 1, 1, [9; 3]);
    }
}
