use std::sync::mpsc;

use lejepa_data::{Image, Output};

use crate::onnx_file::sample::{DIM, PIXELS, Weights, description, model};
use crate::{Encoder, Error, Flaw};

/// An encoder whose embedding is infinite for bright images and zero for black ones.
fn encoder(normalised: bool) -> Encoder {
    let weights = [f32::MAX; PIXELS * DIM];
    let file = model(&Weights::Inside(&weights), &Weights::Inside(&weights));
    let builder = Encoder::builder().foreign(description("embedding")).batch(2);
    let builder = if normalised { builder.normalised() } else { builder };
    builder.open_bytes("steep.onnx", &file).unwrap()
}

fn grey(value: u8) -> Image {
    Image::from_pixels(2, 2, 1, vec![value; 4]).unwrap()
}

#[test]
fn what_is_not_finite_is_an_error_that_names_the_image() {
    let encoder = encoder(false);
    assert!(encoder.embed(&[grey(0), grey(1)]).is_ok());
    let images: Vec<Image> = [0, 0, 0, 255, 0].map(grey).into();
    let error = encoder.embed(&images).unwrap_err();
    assert!(matches!(error, Error::Flawed { flaw: Flaw::NotFinite, .. }), "{error}");
    let said = "the embedding of image 3 is not finite (NaN or infinity): steep.onnx";
    assert_eq!(error.to_string(), said);

    let rows = encoder.compute_each(Output::Embedding, 5, |index, pixels| {
        encoder.preprocess().apply_into(&images[index], pixels)
    });
    assert_eq!(rows.unwrap().flawed, [(3, Flaw::NotFinite)]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bright.png");
    grey(255).write_png(&path).unwrap();
    assert!(encoder.embed_paths(&[path]).unwrap_err().to_string().contains("bright.png is not finite"));
    let pixels = vec![f32::NAN; PIXELS];
    assert!(matches!(encoder.embed_pixels(1, &pixels), Err(Error::Flawed { .. })));
    let (sender, answer) = mpsc::channel();
    encoder.embed_pixels_then(pixels, move |answer| sender.send(answer).unwrap());
    assert!(matches!(answer.recv().unwrap(), Err(Error::Flawed { .. })));
}

#[test]
fn zero_has_no_direction() {
    let error = encoder(true).embed(&[grey(0)]).unwrap_err();
    assert!(matches!(error, Error::Flawed { flaw: Flaw::Zero, .. }), "{error}");
    let unit = encoder(true).embed(&[grey(1)]).unwrap();
    assert!((unit.row(0).dot(&unit.row(0)) - 1.).abs() < 1e-5, "{unit}");
}

#[test]
fn every_choice_that_decides_a_number_is_part_of_what_computed_it() {
    let weights = [1.; PIXELS * DIM];
    let file = model(&Weights::Inside(&weights), &Weights::Inside(&weights));
    let builder = |output: &str| Encoder::builder().foreign(description(output));
    let computed = |builder: crate::EncoderBuilder| {
        let encoder = builder.open_bytes("encoder.onnx", &file).unwrap();
        serde_json::to_string(&encoder.computation(Output::Embedding).unwrap()).unwrap()
    };
    let plain = computed(builder("embedding"));
    assert_eq!(computed(builder("embedding")), plain);
    assert_eq!(computed(builder("embedding").threads(1).sessions(2)), plain);
    let others = [builder("other"), builder("embedding").normalised(), builder("embedding").batch(3)];
    for other in others {
        assert_ne!(computed(other), plain);
    }
    for part in ["runtime", "decoding", "provider", "preprocess"] {
        assert!(plain.contains(&format!("\"{part}\"")), "{plain}");
    }
}

#[test]
fn a_panic_in_a_callback_is_nobody_elses() {
    let encoder = encoder(false);
    for _ in 0..3 {
        encoder.embed_pixels_then(vec![0.; PIXELS], |_| panic!("a callback that panics, as it should here"));
    }
    assert!(encoder.embed(&[grey(0)]).is_ok());
    // Those who share a run with it get their answers too.
    let patient = Encoder::builder().foreign(description("embedding")).batch(2);
    let weights = [1.; PIXELS * DIM];
    let file = model(&Weights::Inside(&weights), &Weights::Inside(&weights));
    let patient =
        patient.latency(std::time::Duration::from_secs(3600)).open_bytes("sample.onnx", &file).unwrap();
    let (sender, answer) = mpsc::channel();
    patient.embed_pixels_then(vec![0.; PIXELS], |_| panic!("a callback that panics, as it should here"));
    patient.embed_pixels_then(vec![0.; PIXELS], move |answer| sender.send(answer).unwrap());
    assert!(answer.recv().unwrap().is_ok());
    let condition = encoder.condition();
    assert_eq!((condition.sessions, condition.alive), (1, 1));
}
