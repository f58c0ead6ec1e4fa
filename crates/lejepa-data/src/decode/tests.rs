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
        if name.contains("16_bit") || name == "two_frames.gif" {
            continue;
        }
        Image::decode(&bytes).unwrap();
        for percent in [5, 50, 95] {
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

/// JPEG files with and without restart markers, of one scan and of many.
fn jpegs() -> Vec<(String, Vec<u8>)> {
    pictures().into_iter().filter(|(name, _)| name.ends_with(".jpg")).collect()
}

#[test]
fn a_jpeg_file_that_goes_on_with_another_one_is_an_error() {
    let jpegs = jpegs();
    for (name, bytes) in &jpegs {
        let data = bytes.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 14;
        for (other, whole) in &jpegs {
            for percent in [0, 1, 10, 30, 60, 90, 99] {
                let spliced = [&bytes[..data + (bytes.len() - 2 - data) * percent / 100], whole].concat();
                assert!(Image::decode(&spliced).is_err(), "{percent} % of {name}, then {other}");
            }
        }
    }
}

#[test]
fn a_jpeg_file_whose_data_ends_early_is_an_error_even_with_an_end() {
    for (name, bytes) in jpegs() {
        let data = bytes.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
        for share in [10, 30, 50, 70, 90] {
            let mut cut = bytes[..data + (bytes.len() - data) * share / 100].to_vec();
            while cut.last() == Some(&0xff) {
                cut.pop();
            }
            cut.extend([0xff, 0xd9]);
            let error = Image::decode(&cut).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("damaged") || error.contains("cut off"), "{share} % of {name}: {error}");
            assert!(is_cut_jpeg(&cut), "{share} % of {name} could be accepted");
        }
    }
}

#[test]
fn garbage_in_the_data_of_a_jpeg_file_is_an_error() {
    for (name, bytes) in jpegs() {
        let data = bytes.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
        let middle = (data + bytes.len()) / 2;
        let text = b"<html><body>504 Gateway Time-out</body></html>".repeat(3);
        for (how, damaged) in [
            ("text", [&bytes[..middle], &text, &bytes[middle..]].concat()),
            ("zeros", [&bytes[..middle], &[0; 64], &bytes[middle..]].concat()),
            ("a gap", [&bytes[..middle - 20], &bytes[middle + 20..]].concat()),
        ] {
            assert!(Image::decode(&damaged).is_err(), "{name} with {how}");
        }
    }
}

#[test]
fn a_jpeg_file_of_very_many_scans_is_refused_before_it_is_walked_through() {
    let (_, whole) = jpegs().into_iter().find(|(name, _)| name == "progressive.jpg").unwrap();
    let scans: Vec<usize> = (0..whole.len() - 1).filter(|&at| whole[at..at + 2] == [0xff, 0xda]).collect();
    let first = scans[0]..scans[1];
    let bomb = [&whole[..first.start], &whole[first.clone()].repeat(200), &whole[first.end..]].concat();
    let message = Image::decode(&bomb).unwrap_err().to_string();
    assert!(message.starts_with("image must have at most 100 scans, "), "{message}");
    assert!(Image::size_within(&bomb, Image::PIXEL_LIMIT).is_err(), "its header alone says so");
    assert!(shrunk_jpeg::decode(&bomb, 8, Orientation::NoTransforms).is_err());
    // Whoever takes damaged files does not take these.
    assert!(!is_cut_jpeg(&bomb) && !is_cut_jpeg(&bomb[..bomb.len() - 10]));
    assert!(Image::decode_cut(&bomb).is_err() && Image::decode_cut(&bomb[..bomb.len() - 10]).is_err());
    let within = |scans| Image::decode_within(&whole, DecodeLimits { scans, ..Default::default() });
    assert!(within(5).is_err());
    assert_eq!(within(20).unwrap(), Image::decode(&whole).unwrap());
}

#[test]
fn a_thumbnail_and_filling_bytes_do_not_end_a_jpeg_file() {
    let (_, whole) = jpegs().remove(0);
    // Its content looks like the end of an image.
    let thumbnail: &[u8] = b"\xff\xe5\x00\x06\xff\xd8\xff\xd9";
    let filled = [&whole[..2], thumbnail, b"\xff\xff", &whole[2..], b"and more"].concat();
    assert_eq!(Image::decode(&filled).unwrap(), Image::decode(&whole).unwrap());
    let garbage = [&whole[..20], b"something else", &whole[20..]].concat();
    let error = Image::decode(&garbage).unwrap_err().to_string();
    assert!(error.contains("something else between two of its parts"), "{error}");
}

#[test]
fn a_jpeg_file_with_restart_markers_is_walked_through() {
    let (_, whole) = jpegs().into_iter().find(|(name, _)| name == "restarts.jpg").unwrap();
    let marker = whole.windows(2).position(|pair| pair == [0xff, 0xd1]).unwrap();
    let mut other = whole.clone();
    other[marker + 1] = 0xd5;
    assert!(Image::decode(&other).is_err(), "a stretch of the image is missing");
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
fn transparency_and_further_pictures_are_seen() {
    for (name, bytes) in pictures() {
        let expected = left_out::LeftOut {
            transparency: name.contains("alpha") || name.contains("transparent"),
            pictures: false,
            end: false,
        };
        assert_eq!(left_out::LeftOut::of(&bytes), expected, "{name}");
    }
    // What a phone or a camera with two lenses writes: a note before the data, another picture behind it.
    let (_, whole) = jpegs().remove(0);
    let several = [&whole[..2], b"\xff\xe2\x00\x08MPF\0II", &whole[2..], &whole].concat();
    assert!(left_out::LeftOut::of(&several).pictures);
    assert_eq!(Image::decode(&several).unwrap(), Image::decode(&whole).unwrap());
}

#[test]
fn animations_are_refused_with_what_to_do() {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = png::Encoder::new(&mut bytes, 2, 2);
    writer.set_animated(3, 0).unwrap();
    let mut writer = writer.write_header().unwrap();
    (0..3).for_each(|_| writer.write_image_data(&[1; 4]).unwrap());
    writer.finish().unwrap();
    let mut still = Cursor::new(Vec::new());
    let mut writer = png::Encoder::new(&mut still, 2, 2);
    writer.set_animated(1, 0).unwrap();
    writer.write_header().unwrap().write_image_data(&[1; 4]).unwrap();
    assert!(Image::decode(still.get_ref()).is_ok(), "one frame is a picture");

    let (_, webp) = pictures().into_iter().find(|(name, _)| name == "lossless.webp").unwrap();
    let chunk = |kind: &[u8], content: &[u8]| {
        let mut chunk = [kind, &(content.len() as u32).to_le_bytes(), content].concat();
        chunk.resize(chunk.len().next_multiple_of(2), 0);
        chunk
    };
    let (height, width) = (Image::decode(&webp).unwrap().height(), Image::decode(&webp).unwrap().width());
    let sides = [width as u32 - 1, height as u32 - 1].map(|side| side.to_le_bytes()[..3].to_vec()).concat();
    let frame = chunk(b"ANMF", &[&[0; 6][..], &sides, &[9, 0, 0, 0], &webp[12..]].concat());
    let extended = chunk(b"VP8X", &[&[2, 0, 0, 0][..], &sides].concat());
    let body = [&b"WEBP"[..], &extended, &chunk(b"ANIM", &[0; 6]), &frame, &frame].concat();
    let webp = chunk(b"RIFF", &body);

    let (_, gif) = pictures().into_iter().find(|(name, _)| name == "two_frames.gif").unwrap();
    for (bytes, frames) in [(bytes.get_ref(), 3), (&webp, 2), (&gif, 2)] {
        let message = Image::decode(bytes).unwrap_err().to_string();
        assert!(message.contains(&format!("got an animation of {frames} frames: write one")), "{message}");
    }
}

#[test]
fn one_wrong_byte_in_the_pixels_of_a_png_file_is_an_error() {
    for (name, bytes) in pictures() {
        if !name.ends_with(".png") || name.contains("16_bit") {
            continue;
        }
        let start = bytes.windows(4).position(|kind| kind == b"IDAT").unwrap();
        let length = u32::from_be_bytes(*bytes[start - 4..].first_chunk().unwrap()) as usize;
        // The checksum is behind the content.
        for place in start + 4..start + 4 + length + 4 {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1;
            assert!(Image::decode(&wrong).is_err(), "{name} with another byte at {place}");
        }
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
fn big_tiff_is_named() {
    for little in [true, false] {
        let mut bytes = Cursor::new(Vec::new());
        let mut file = TiffEncoder::new_big(&mut bytes).unwrap();
        file.write_image::<colortype::Gray8>(2, 2, &[1; 4]).unwrap();
        let mut bytes = bytes.into_inner();
        assert_eq!(bytes[..4], if cfg!(target_endian = "little") { *b"II\x2b\0" } else { *b"MM\0\x2b" });
        bytes[..4].copy_from_slice(if little { b"II\x2b\0" } else { b"MM\0\x2b" });
        let message = Image::decode(&bytes).unwrap_err().to_string();
        assert!(message.contains("got BigTIFF, which is not read: convert it"), "{message}");
    }
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

#[test]
fn slices_without_a_page_of_their_own_are_not_dropped() {
    let volume = tiff(|file| {
        let mut image = file.new_image::<colortype::Gray8>(2, 2).unwrap();
        image.encoder().write_tag(Tag::Unknown(32997), 7u32).unwrap();
        image.write_data(&[1; 4]).unwrap();
    });
    assert!(volume.contains("got 7 slices: write one file per slice"), "{volume}");
    let described = |text: &str| {
        tiff(|file| {
            let mut image = file.new_image::<colortype::Gray8>(2, 2).unwrap();
            image.encoder().write_tag(Tag::ImageDescription, text).unwrap();
            image.write_data(&[1; 4]).unwrap();
        })
    };
    let stack = described("ImageJ=1.53t\nimages=12\nslices=12\nloop=false\n");
    assert!(stack.contains("got 12 slices: "), "{stack}");
    assert_eq!(described("ImageJ=1.53t\nmin=0\n"), "");
    assert_eq!(described("images=12"), "");
    let stack = described("{\"shape\": [3, 2, 2], \"truncated\": true}");
    assert!(stack.contains("got 3 slices: "), "{stack}");
    for one in ["{\"shape\": [2, 2]}", "{\"shape\": [1, 2, 2, 1]}", "{\"shape\": []}", "{\"shape\": 7}"] {
        assert_eq!(described(one), "", "{one}");
    }
}

#[test]
fn a_preview_is_not_taken_for_the_picture() {
    let preview = tiff(|file| {
        let mut image = file.new_image::<colortype::Gray8>(1, 1).unwrap();
        image.encoder().write_tag(Tag::NewSubfileType, 1u32).unwrap();
        image.write_data(&[1]).unwrap();
    });
    assert!(preview.contains("got a preview in front of the picture"), "{preview}");
}
