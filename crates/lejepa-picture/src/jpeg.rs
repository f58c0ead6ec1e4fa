//! Pictures inside a text file.

use lejepa_data::Image;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A JPEG file as a data URI, which a page can show without loading anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Jpeg(String);

const HEAD: &str = "data:image/jpeg;base64,";
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Jpeg {
    /// An image; `quality` is between 1 and 100.
    pub fn of(image: &Image, quality: u8) -> Result<Self> {
        Ok(Self(format!("{HEAD}{}", base64(&image.to_jpeg(quality)?))))
    }

    /// The data URI; nothing if it was tampered with, so that it can stand in a page as it is.
    pub fn uri(&self) -> Option<&str> {
        let digits = self.0.strip_prefix(HEAD)?.trim_end_matches('=');
        digits.bytes().all(|digit| DIGITS.contains(&digit)).then_some(&*self.0)
    }

    /// The file; nothing if it was tampered with.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let digits = self.uri()?.strip_prefix(HEAD)?.trim_end_matches('=');
        let mut bytes = Vec::new();
        let (mut word, mut bits) = (0u32, 0);
        for digit in digits.bytes() {
            word = word << 6 | DIGITS.iter().position(|&known| known == digit)? as u32;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((word >> bits) as u8);
            }
        }
        Some(bytes)
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let value = (word >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_the_standard_says() {
        let examples = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(examples.map(|text| base64(text.as_bytes())), expected);
        assert_eq!(base64(&[255, 254, 253]), "//79");
    }

    #[test]
    fn a_picture_comes_back_and_anything_else_does_not_reach_a_page() {
        let image = Image::from_pixels(3, 5, 3, vec![7; 45]).unwrap();
        let jpeg = Jpeg::of(&image, 80).unwrap();
        assert_eq!(jpeg.bytes().unwrap(), image.to_jpeg(80).unwrap());
        assert_eq!(Jpeg("data:image/jpeg;base64,AA);x:url(".into()).uri(), None);
        assert_eq!(Jpeg("https://example.org/a.jpg".into()).uri(), None);
    }
}
