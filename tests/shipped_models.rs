//! Every recipe under `models/` is valid, and the encoder beside it is what the recipe made.

#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;

use std::path::PathBuf;

use lejepa_data::Image;
use lejepa_embed::Encoder;
use lejepa_train::TrainConfig;

/// The folders of `models/`.
fn folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture::repository().join("models")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn recipes_and_encoders_belong_together() {
    let mut encoders = 0;
    for folder in folders() {
        let file = folder.join("encoder.onnx");
        if !file.exists() {
            continue;
        }
        let mut recipe = TrainConfig::load(Some(&folder.join("train.toml")), &[]).unwrap();
        let encoder = Encoder::open(file).unwrap();
        let card = encoder.card().unwrap();
        let mut made_with: TrainConfig = serde_json::from_value(card.config.clone()).unwrap();
        // Versions that did not spell it out had none.
        for config in [&mut made_with, &mut recipe] {
            config.encoder.set_drop_path(Some(config.encoder.drop_path().unwrap_or(0.)));
        }
        assert_eq!(made_with, recipe, "{}", folder.display());
        assert_eq!(card.preprocess, recipe.preprocess().unwrap());

        let images: Vec<Image> =
            [10, 200].map(|grey| Image::from_pixels(30, 50, 1, vec![grey; 1500]).unwrap()).to_vec();
        let embeddings = encoder.embed(&images).unwrap();
        assert_eq!(embeddings.dim(), (2, card.embedding_dim));
        assert!(embeddings.iter().all(|value| value.is_finite()));
        assert_ne!(embeddings.row(0), embeddings.row(1));
        encoders += 1;
    }
    assert!(encoders > 0);
}

#[test]
fn every_folder_has_a_card_and_valid_recipes() {
    for folder in folders() {
        assert!(folder.join("README.md").exists(), "{}", folder.display());
        let mut recipes = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_grid = path.file_name().is_some_and(|name| name == "sweep.toml");
            if path.extension().is_some_and(|end| end == "toml") && !is_grid {
                TrainConfig::load(Some(&path), &[]).unwrap_or_else(|error| panic!("{error}"));
                recipes += 1;
            }
        }
        assert!(recipes > 0, "{}", folder.display());
    }
}

#[test]
fn one_configuration_trains_three_families() {
    let folder = fixture::repository().join("models/imagenette-64");
    let recipe = |name: &str| TrainConfig::load(Some(&folder.join(name)), &[]).unwrap();
    let vit = recipe("vit.toml");
    for name in ["resnet.toml", "convnextv2.toml"] {
        let mut other = recipe(name);
        assert_ne!(other.encoder, vit.encoder);
        other.encoder = vit.encoder.clone();
        assert_eq!(other, vit, "{name}");
    }
}
