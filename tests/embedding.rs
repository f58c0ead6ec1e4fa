//! Exported encoders in a service: many callers, other outputs and sizes, other projects' files, and files
//! that are something else.

#![allow(clippy::unwrap_used)]

mod fixture;
mod small_encoders;

use std::time::Duration;

use lejepa_data::{EncoderCard, Image, InputSize, Output};
use lejepa_embed::{Encoder, EncoderBuilder, Error, FileInfo, ForeignEncoder, Provider, SelfTest};
use lejepa_model::{EncoderShape, ImageSize};
use lejepa_onnx::{Export, available_outputs, with_checksum, with_self_test};
use small_encoders::{card, families, used_encoder};

/// A file with everything that an encoder of this shape can compute.
fn file_of(shape: &EncoderShape, change: impl FnOnce(&mut EncoderCard)) -> Vec<u8> {
    let (encoder, parameters) = used_encoder(shape);
    let mut card = EncoderCard { embedding_dim: encoder.dim(), ..card(shape.image_size()) };
    change(&mut card);
    let outputs = available_outputs(shape);
    let export = Export {
        encoder: &encoder,
        parameters: &parameters,
        projector: None,
        outputs: &outputs,
        card: &card,
    };
    export.encode().unwrap()
}

fn vit() -> EncoderShape {
    EncoderShape::Vit(small_encoders::vit(32.into()))
}

fn file() -> Vec<u8> {
    file_of(&vit(), |_| ())
}

fn open_with(builder: EncoderBuilder, bytes: &[u8]) -> lejepa_embed::Result<Encoder> {
    builder.open_bytes("test.onnx", bytes)
}

fn open(bytes: &[u8]) -> lejepa_embed::Result<Encoder> {
    open_with(Encoder::builder(), bytes)
}

fn message(result: lejepa_embed::Result<Encoder>) -> String {
    let error = result.err().unwrap();
    let cause = std::error::Error::source(&error).map(|cause| cause.to_string());
    format!("{error}: {}", cause.unwrap_or_default())
}

/// Pictures that differ.
fn picture(seed: usize) -> Image {
    let pixels = (0..40 * 50 * 3).map(|value| (value * (seed + 3) / 7 + seed * 31) as u8).collect();
    Image::from_pixels(40, 50, 3, pixels).unwrap()
}

fn pictures(count: usize) -> Vec<Image> {
    (0..count).map(picture).collect()
}

/// Batches of different sizes sum in different orders.
const ROUNDING: f32 = 1e-5;

#[test]
fn callers_at_the_same_time_share_inferences_and_get_their_own_answers() {
    let bytes = file();
    let expected = open(&bytes).unwrap().embed(&pictures(24)).unwrap();
    let shared = Encoder::builder().sessions(2).threads(1).batch(8).latency(Duration::from_millis(200));
    let shared = open_with(shared, &bytes).unwrap();
    std::thread::scope(|scope| {
        for (index, row) in expected.rows().into_iter().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                let embedding = shared.embed(&[picture(index)]).unwrap();
                let difference =
                    (&embedding.row(0) - &row).iter().fold(0f32, |most, next| most.max(next.abs()));
                assert!(difference < ROUNDING, "{index}: {difference:e}");
            });
        }
    });
    let statistics = shared.statistics();
    assert_eq!(statistics.images, 24);
    assert!(statistics.runs < 24, "{statistics:?}");
}

#[test]
fn more_images_than_a_batch_come_back_in_their_order() {
    let bytes = file();
    let images = pictures(11);
    let expected = open(&bytes).unwrap().embed(&images).unwrap();
    for batch in [1, 3, 11] {
        let encoder = open_with(Encoder::builder().batch(batch), &bytes).unwrap();
        let embeddings = encoder.embed(&images).unwrap();
        assert!((&embeddings - &expected).iter().all(|difference| difference.abs() < ROUNDING), "{batch}");
        assert_eq!(encoder.statistics().runs, 11usize.div_ceil(batch) as u64);
    }
}

#[test]
fn files_and_bytes_give_what_their_images_give_and_broken_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let encoder = open(&file()).unwrap();
    let images = pictures(3);
    let paths: Vec<_> = (0..3).map(|index| folder.path().join(format!("{index}.png"))).collect();
    for (image, path) in images.iter().zip(&paths) {
        image.write_png(path).unwrap();
    }
    let expected = encoder.embed(&images).unwrap();
    assert_eq!(encoder.embed_paths(&paths).unwrap(), expected);
    let mut bytes: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(encoder.embed_bytes(&bytes).unwrap(), expected);

    bytes[1].truncate(40);
    assert!(encoder.embed_bytes(&bytes).unwrap_err().to_string().contains("image 1"));
    let missing = folder.path().join("missing.png");
    assert!(encoder.embed_paths(&[missing]).unwrap_err().to_string().contains("missing.png"));
    assert_eq!(encoder.embed_bytes(&[] as &[&[u8]]).unwrap().dim(), (0, 48));
}

#[test]
fn normalised_vectors_have_length_one_and_the_same_direction() {
    let bytes = file();
    let (plain, unit) = (open(&bytes).unwrap(), open_with(Encoder::builder().normalised(), &bytes).unwrap());
    let (plain, unit) = (plain.embed(&pictures(2)).unwrap(), unit.embed(&pictures(2)).unwrap());
    for (plain, unit) in plain.rows().into_iter().zip(unit.rows()) {
        assert!((unit.dot(&unit) - 1.).abs() < 1e-5);
        assert!((plain.dot(&unit) - plain.dot(&plain).sqrt()).abs() < 1e-4);
    }
}

#[test]
fn every_family_has_patch_tokens_and_transformers_have_attention() {
    let size = ImageSize { height: 64, width: 96 };
    for shape in families(size) {
        let encoder = open(&file_of(&shape, |_| ())).unwrap();
        let grid = (64 / shape.stride(), 96 / shape.stride());
        let tokens = encoder.patch_tokens(&pictures(2)).unwrap();
        assert_eq!(tokens.dim(), (2, grid.0, grid.1, shape.dim()));
        match &shape {
            EncoderShape::Vit(vit) => {
                let attention = encoder.attention(&pictures(2)).unwrap();
                assert_eq!(attention.dim(), (2, vit.heads, grid.0, grid.1));
                // What is left of one after the class token's look at itself.
                assert!(
                    attention
                        .sum_axis(ndarray::Axis(3))
                        .sum_axis(ndarray::Axis(2))
                        .iter()
                        .all(|&sum| sum < 1.)
                );
                let last2 = encoder.compute(Output::ClsLast2, &pictures(2)).unwrap();
                assert_eq!(last2.shape(), [2, 2 * vit.dim]);
            }
            _ => {
                let message = encoder.attention(&pictures(1)).unwrap_err().to_string();
                assert_eq!(message, "no output cls_attention, only embedding, patch_tokens: test.onnx");
            }
        }
    }
}

#[test]
fn a_file_of_several_sizes_opens_with_one_of_them() {
    let sizes = [(32, 32), (48, 64)].map(|(height, width)| InputSize { height, width });
    let bytes = file_of(&vit(), |card| card.sizes = sizes.to_vec());
    let large = open_with(Encoder::builder().size(48, 64), &bytes).unwrap();
    assert_eq!(large.patch_tokens(&pictures(1)).unwrap().dim(), (1, 6, 8, 48));
    assert_eq!(open(&bytes).unwrap().patch_tokens(&pictures(1)).unwrap().dim(), (1, 4, 4, 48));
    let message = message(open_with(Encoder::builder().size(64, 48), &bytes));
    assert!(
        message.starts_with("exported for images of 32x32, 48x64, not for 64x48: test.onnx"),
        "{message}"
    );
}

#[test]
fn an_encoder_of_another_project_opens_with_a_description() {
    let bytes = file();
    let own = open(&bytes).unwrap();
    let describe = |output: Option<&str>| {
        let preprocess = own.preprocess().clone();
        Encoder::builder().foreign(ForeignEncoder { preprocess, output: output.map(String::from) })
    };
    let foreign = open_with(describe(Some("embedding")), &bytes).unwrap();
    assert_eq!(foreign.embed(&pictures(3)).unwrap(), own.embed(&pictures(3)).unwrap());
    assert_eq!((foreign.dim(), foreign.feature()), (48, "embedding"));
    assert!(foreign.card().is_none());

    let sized = message(open_with(describe(Some("embedding")).size(32, 32), &bytes));
    assert!(sized.contains("its size is that of its description's crop"), "{sized}");
    let all = "embedding, cls_last2, patch_tokens, cls_attention";
    let several = message(open_with(describe(None), &bytes));
    assert!(several.contains(&format!("which output is the embedding: {all}")), "{several}");
    let wrong = message(open_with(describe(Some("pooler")), &bytes));
    assert!(wrong.contains(&format!("no output pooler, only {all}")), "{wrong}");
    let maps = message(open_with(describe(Some("patch_tokens")), &bytes));
    assert!(maps.contains("output patch_tokens has the shape [4, 4, 48] for one image"), "{maps}");
}

#[test]
fn a_graphics_card_that_is_not_there_is_an_error() {
    let error = open_with(Encoder::builder().provider(Provider::Cuda { device: 0 }), &file()).err().unwrap();
    assert!(matches!(error, Error::Provider { provider: Provider::Cuda { device: 0 }, .. }), "{error}");
}

#[test]
fn settings_of_nothing_are_refused() {
    let bytes = file();
    for builder in
        [Encoder::builder().threads(0), Encoder::builder().sessions(0), Encoder::builder().batch(0)]
    {
        assert!(message(open_with(builder, &bytes)).contains("must be between 1 and 4096, got: 0"));
    }
}

#[test]
fn a_self_test_passes_where_the_numbers_are_right_and_fails_where_they_are_not() {
    let bytes = file();
    let encoder = open(&bytes).unwrap();
    assert!(matches!(encoder.self_test(), Err(Error::NoSelfTest { .. })));
    let picture = SelfTest::picture(3).unwrap();
    let embedding: Vec<f32> = encoder.embed(std::slice::from_ref(&picture)).unwrap().into_iter().collect();
    let test = SelfTest::new(&picture, embedding, lejepa_data::Precision::F32);
    let good = open(&with_self_test(bytes.clone(), &test).unwrap()).unwrap().self_test().unwrap();
    assert!(good.passed(), "{good:?}");

    let mut drifted = test;
    drifted.embedding[3] += 0.1;
    let bad = open(&with_self_test(bytes, &drifted).unwrap()).unwrap().self_test().unwrap();
    assert!(!bad.passed(), "{bad:?}");
}

#[test]
fn what_a_file_says_is_read_without_running_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encoder.onnx");
    std::fs::write(&path, file()).unwrap();
    let info = FileInfo::read(&path).unwrap();
    assert_eq!(info.card.embedding_dim, 48);
    let outputs: Vec<String> = info
        .outputs
        .iter()
        .map(|output| {
            let shape: Vec<String> = output.shape.iter().map(|dimension| dimension.to_string()).collect();
            format!("{} {}", output.name, shape.join(","))
        })
        .collect();
    let expected = [
        "embedding batch,48",
        "cls_last2 batch,96",
        "patch_tokens batch,4,4,48",
        "cls_attention batch,3,4,4",
    ];
    assert_eq!(outputs, expected);
}

#[test]
fn an_opened_file_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encoder.onnx");
    std::fs::write(&path, file()).unwrap();
    let encoder = Encoder::open(&path).unwrap();
    std::fs::rename(&path, folder.path().join("old.onnx")).unwrap();
    std::fs::write(&path, b"something else").unwrap();
    // The session for this output is made only now.
    assert!(encoder.patch_tokens(&pictures(1)).is_ok());
}

#[test]
fn files_that_are_no_encoders_give_clear_errors() {
    let bytes = file();
    for broken in [b"not an ONNX file".as_slice(), b"", b"\x08\x08"] {
        let message = message(open(broken));
        assert!(message.contains("not a readable ONNX file"), "{message}");
        assert!(message.contains("test.onnx"), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nowhere.onnx");
    assert!(matches!(Encoder::open(missing), Err(Error::NotFound { .. })));
    assert!(matches!(Encoder::open(folder.path()), Err(Error::NotAFile { .. })));

    let enormous = folder.path().join("enormous.onnx");
    std::fs::File::create(&enormous).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(Encoder::open(enormous), Err(Error::TooLarge { .. })));

    let contradiction = file_of(&vit(), |_| ());
    let text = String::from_utf8_lossy(&contradiction).into_owned();
    assert!(text.contains("\"embedding_dim\":48"));
    let other = replace(&contradiction, b"\"embedding_dim\":48", b"\"embedding_dim\":47");
    assert!(message(open(&other)).contains("output embedding has not the card's 47 dimensions"));
    let nameless = replace(&contradiction, b"lejepa.card", b"lejepa.dart");
    assert!(message(open(&nameless)).contains("no metadata entry lejepa.card"));
    let future = replace(&contradiction, b"{\"format\":2", b"{\"format\":9");
    assert!(message(open(&future)).contains("card format 9 is not known, expected 2"));
    let unusable = replace(&contradiction, b"\"std\":[0.229", b"\"std\":[0.000");
    assert!(message(open(&unusable)).contains("`std` must be one positive number per channel"));
    let renamed = replace(&contradiction, b"pixels", b"pixies");
    assert!(message(open(&renamed)).contains("no input named pixels"));

    // The version of the operator set: field 2 of an entry with an empty domain.
    let opset = replace(&bytes, &[0x0a, 0x00, 0x10, 17], &[0x0a, 0x00, 0x10, 99]);
    let message = message(open(&opset));
    assert!(message.contains("not a readable ONNX file: test.onnx"), "{message}");
    assert!(message.to_lowercase().contains("opset"), "{message}");
}

/// Every place where `from` stands gets `to`, which is as long; the checksum is that of the result.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let mut places = 0;
    for start in 0..bytes.len() - from.len() {
        if &bytes[start..start + from.len()] == from {
            changed[start..start + from.len()].copy_from_slice(to);
            places += 1;
        }
    }
    assert!(places > 0);
    with_checksum(changed)
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    let bytes = file();
    for cut in (1..bytes.len() - 1).step_by(bytes.len() / 50) {
        assert!(open(&bytes[..cut]).is_err(), "{cut} of {}", bytes.len());
    }
}

#[test]
fn every_changed_byte_is_found() {
    let bytes = file();
    let encoder = open(&bytes).unwrap();
    let picture = SelfTest::picture(3).unwrap();
    let embedding = encoder.embed(std::slice::from_ref(&picture)).unwrap().into_iter().collect();
    let test = SelfTest::new(&picture, embedding, lejepa_data::Precision::F32);
    let whole = with_self_test(bytes, &test).unwrap();
    assert!(open(&whole).unwrap().is_checked());
    // All over the weights, and every byte of the last fields.
    let last = whole.len() - 400..whole.len();
    for place in (0..whole.len()).step_by(whole.len() / 400).chain(last) {
        for bit in [0, 3, 7] {
            let mut changed = whole.clone();
            changed[place] ^= 1 << bit;
            assert!(open(&changed).is_err(), "bit {bit} of byte {place} of {}", whole.len());
        }
    }
    let mut weights = whole.clone();
    weights[whole.len() / 3] ^= 1;
    let error = open(&weights).unwrap_err();
    assert!(matches!(error, Error::Altered { .. }), "{error}");
    assert!(error.to_string().starts_with("the file is damaged"), "{error}");
}

#[test]
fn a_file_without_a_checksum_opens_and_is_known_to_have_none() {
    let bytes = file();
    let flag = b"\"checksum\":true";
    assert!(bytes.windows(flag.len()).any(|window| window == flag));
    let old = replace(&bytes, flag, b"\"chackzum\":true");
    // The last field, which `replace` has written anew.
    let field = old.len() - (1 + 1 + 2 + "lejepa.blake3".len() + 2 + 64);
    let encoder = open(&old[..field]).unwrap();
    assert!(!encoder.is_checked());
    assert!(open(&old).unwrap().is_checked());
}
