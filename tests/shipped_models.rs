//! Every recipe under `models/` is valid, and the encoder beside it is what the recipe made.

#![allow(clippy::unwrap_used)]

mod fixture;

use lejepa_data::Image;
use lejepa_embed::Encoder;
use lejepa_train::TrainConfig;

#[test]
fn recipes_and_encoders_belong_together() {
    let mut models = 0;
    for entry in std::fs::read_dir(fixture::repository().join("models")).unwrap() {
        let folder = entry.unwrap().path();
        let recipe = TrainConfig::load(Some(&folder.join("train.toml")), &[]).unwrap();
        let encoder = Encoder::open(folder.join("encoder.onnx")).unwrap();
        let card = encoder.card();
        let made_with: TrainConfig = serde_json::from_value(card.config.clone()).unwrap();
        assert_eq!(made_with, recipe, "{}", folder.display());
        assert_eq!(card.preprocess, recipe.preprocess().unwrap());

        let images: Vec<Image> =
            [10, 200].map(|grey| Image::from_pixels(30, 50, 1, vec![grey; 1500]).unwrap()).to_vec();
        let embeddings = encoder.embed(&images).unwrap();
        assert_eq!(embeddings.dim(), (2, card.embedding_dim));
        assert!(embeddings.iter().all(|value| value.is_finite()));
        assert_ne!(embeddings.row(0), embeddings.row(1));
        models += 1;
    }
    assert!(models > 0);
}
