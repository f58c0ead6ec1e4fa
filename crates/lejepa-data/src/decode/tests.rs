use std::io::Cursor;
use std::path::{Path, PathBuf};

use tiff::encoder::{TiffEncoder, TiffValue, colortype};
use tiff::tags::{PhotometricInterpretation, SampleFormat, Tag};

use super::*;

/// One small picture in every kind of image file.
fn pictures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/images"));
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    let mut pictures: Vec<_> = paths.map(|path| (name(&path), std::fs::read(path).unwrap())).collect();
    pictures.sort_unstable();
    pictures
}

#[test]
fn a_file_that_is_cut_off_is_an_error_in_every_format() {
    for (name, bytes) in pictures() {
        if name.contains("16_bit") {
            continue;
        }
        Image::decode(&bytes).unwrap();
        for percent in [5, 50, 95] {
            // The second of two pictures is cut.
            if name == "two_frames.gif" && percent == 95 {
                continue;
            }
            let cut = &bytes[..bytes.len() * percent / 100];
            assert!(Image::decode(cut).is_err(), "{name} cut at {percent} %");
        }
    }
}

#[test]
fn a_jpeg_file_is_whole_if_its_end_is_there_whatever_follows() {
    for (name, bytes) in pictures() {
        if !name.ends_with(".jpg") {
            continue;
        }
        for missing in [1, 2, 3, 50] {
            let error = Image::decode(&bytes[..bytes.len() - missing]).unwrap_err();
            assert!(matches!(error, Error::Truncated { .. }), "{name} without {missing} bytes: {error}");
        }
        let more = [&bytes[..], &[0; 100], b"\xff\xd8\xff"].concat();
        assert_eq!(Image::decode(&more).unwrap(), Image::decode(&bytes).unwrap(), "{name}");
    }
}

#[test]
fn scans_restarts_thumbnails_and_filling_bytes_are_walked_over() {
    let start: &[u8] = b"\xff\xd8";
    // Its content looks like the end of an image.
    let thumbnail: &[u8] = b"\xff\xe1\x00\x06\xff\xd8\xff\xd9";
    let scan: &[u8] = b"\xff\xda\x00\x04\xff\xd9\x01\xff\x00\x02\xff\xd3\x03";
    let table: &[u8] = b"\xff\xff\xff\xc4\x00\x03\x07";
    let end: &[u8] = b"\xff\xd9";
    let whole = [start, thumbnail, scan, table, b"rest", scan, end].concat();
    assert!(jpeg_end::check(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(jpeg_end::check(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn deep_pictures_are_refused_with_what_to_do() {
    let mut deep = 0;
    for (name, bytes) in pictures().into_iter().filter(|(name, _)| name.contains("16_bit")) {
        let message = Image::decode(&bytes).unwrap_err().to_string();
        assert!(message.contains("got 16 bits per value: convert it with a stretch"), "{name}: {message}");
        deep += 1;
    }
    assert_eq!(deep, 3);
}

#[test]
fn transparency_and_frames_are_seen() {
    for (name, bytes) in pictures() {
        let expected = left_out::LeftOut {
            transparency: name.contains("alpha") || name.contains("transparent"),
            frames: name == "two_frames.gif",
            end: false,
        };
        assert_eq!(left_out::LeftOut::of(&bytes), expected, "{name}");
    }
}

fn tiff(write: impl FnOnce(&mut TiffEncoder<&mut Cursor<Vec<u8>>>)) -> String {
    let mut bytes = Cursor::new(Vec::new());
    write(&mut TiffEncoder::new(&mut bytes).unwrap());
    Image::decode(bytes.get_ref()).map_or_else(|error| error.to_string(), |_| String::new())
}

/// Values that TIFF files may have, each one in a picture of 2 x 2.
fn one<C: colortype::ColorType>(values: &[C::Inner]) -> String
where
    [C::Inner]: TiffValue,
{
    tiff(|file| file.write_image::<C>(2, 2, values).unwrap())
}

struct Bands<const COUNT: usize>;

impl<const COUNT: usize> colortype::ColorType for Bands<COUNT> {
    type Inner = u8;
    const TIFF_VALUE: PhotometricInterpretation = PhotometricInterpretation::RGB;
    const BITS_PER_SAMPLE: &'static [u16] = &[8; COUNT];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[SampleFormat::Uint; COUNT];

    fn horizontal_predict(_row: &[u8], _result: &mut Vec<u8>) {}
}

#[test]
fn tiff_files_with_more_than_8_bits_of_grey_or_colour_are_refused_with_what_was_found() {
    assert_eq!(one::<colortype::Gray8>(&[1; 4]), "");
    assert_eq!(one::<colortype::RGB8>(&[1; 12]), "");
    let refused = [
        (one::<colortype::Gray16>(&[1; 4]), "16 bits per value", "stretch"),
        (one::<colortype::RGB16>(&[1; 12]), "16 bits per value", "stretch"),
        (one::<colortype::Gray32>(&[1; 4]), "32 bits per value", "stretch"),
        (one::<colortype::GrayI8>(&[1; 4]), "signed values of 8 bits", "stretch"),
        (one::<colortype::Gray32Float>(&[1.; 4]), "floating-point values of 32 bits", "stretch"),
        (one::<colortype::RGB32Float>(&[1.; 12]), "floating-point values of 32 bits", "stretch"),
        (one::<Bands<5>>(&[1; 20]), "5 bands", "gdal_translate"),
        (one::<Bands<4>>(&[1; 16]), "4 bands", "gdal_translate"),
    ];
    for (message, found, advice) in refused {
        assert!(message.contains(&format!("got {found}: ")) && message.contains(advice), "{message}");
    }
    let with_alpha = tiff(|file| {
        let mut image = file.new_image::<Bands<4>>(2, 2).unwrap();
        image.encoder().write_tag(Tag::ExtraSamples, &[2u16][..]).unwrap();
        image.write_data(&[1; 16]).unwrap();
    });
    assert_eq!(with_alpha, "");
}

#[test]
fn pages_are_not_dropped_but_thumbnails_are() {
    let pages =
        tiff(|file| (0..5).for_each(|_| file.write_image::<colortype::Gray8>(2, 2, &[1; 4]).unwrap()));
    assert!(pages.contains("got 5 pages: write one file per page"), "{pages}");
    let thumbnail = tiff(|file| {
        file.write_image::<colortype::Gray8>(2, 2, &[1; 4]).unwrap();
        let mut image = file.new_image::<colortype::Gray8>(1, 1).unwrap();
        image.encoder().write_tag(Tag::NewSubfileType, 1u32).unwrap();
        image.write_data(&[1]).unwrap();
    });
    assert_eq!(thumbnail, "");
}
