//! t-SNE (van der Maaten, 2014): near images stay near, distances between groups mean little.
//!
//! Features are projected onto their first 50 principal components, and the map begins at the first two
//! (as scikit-learn's does), so that nothing is left to chance.

use bhtsne::tSNE;
use lejepa_picture::Directions;
use ndarray::ArrayView2;

use super::{EmbeddingMap, MapMethod, rounded};
use crate::{Error, Result};

/// Components that distances are measured in.
const COMPONENTS: usize = 50;
/// The usual number of neighbours, where there are enough images.
const PERPLEXITY: f64 = 30.;
/// Fewer neighbours say nothing of groups.
const LEAST_PERPLEXITY: f64 = 3.;
/// Deviation of the first places along the first component.
const START: f64 = 1e-4;
/// How coarsely distant groups are summed up.
const THETA: f64 = 0.5;

/// Places by t-SNE; none for so few images that neighbours mean nothing, or for features that do not vary.
///
/// # Shapes
/// - `features`: `(samples, dim)`
pub(crate) fn neighbour_map(features: ArrayView2<'_, f32>) -> Result<Option<EmbeddingMap>> {
    let samples = features.nrows();
    let perplexity = (samples.saturating_sub(1) as f64 / 3.).floor().min(PERPLEXITY);
    let directions = Directions::of(features, COMPONENTS)?.signed();
    if perplexity < LEAST_PERPLEXITY || directions.count() == 0 {
        return Ok(None);
    }
    let components = directions.project(features);
    let rows: Vec<Vec<f64>> = components.rows().into_iter().map(|row| row.to_vec()).collect();
    let first = components.column(0).mapv(|value| value * value).sum() / samples as f64;
    let scale = START / first.sqrt();
    let start: Vec<f64> = rows
        .iter()
        .flat_map(|row| [row[0] * scale, row.get(1).map_or(0., |second| second * scale)])
        .collect();
    // Sums over threads come out differently each time; those of one thread do not.
    let thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(Error::Threads)?;
    let places = thread.install(|| {
        let mut map: tSNE<'_, f64, Vec<f64>, 2> = tSNE::new(&rows);
        map.perplexity(perplexity).initial_embedding(start).barnes_hut(THETA, |one, other| {
            let squares = one.iter().zip(other).map(|(one, other)| (one - other).powi(2));
            squares.sum::<f64>().sqrt()
        });
        map.embedding()
    });
    let places = places.as_chunks::<2>().0.iter().map(|place| place.map(rounded)).collect();
    Ok(Some(EmbeddingMap { method: MapMethod::Tsne { perplexity }, places }))
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// Three groups in ten dimensions, in turn.
    fn groups(samples: usize) -> Array2<f32> {
        Array2::from_shape_fn((samples, 10), |(row, column)| {
            let noise = ((row * 10 + column) as f32 * 12.9898).sin() * 0.5;
            if column % 3 == row % 3 { 4. + noise } else { noise }
        })
    }

    #[test]
    fn neighbours_on_the_map_are_of_the_same_group() {
        let map = neighbour_map(groups(90).view()).unwrap().unwrap();
        assert_eq!(map.method, MapMethod::Tsne { perplexity: 29. });
        let distance = |one: usize, other: usize| {
            let [one, other] = [map.places[one], map.places[other]];
            (one[0] - other[0]).powi(2) + (one[1] - other[1]).powi(2)
        };
        for point in 0..90 {
            let others = (0..90).filter(|&other| other != point);
            let nearest =
                others.min_by(|&one, &other| distance(point, one).total_cmp(&distance(point, other)));
            assert_eq!(nearest.unwrap() % 3, point % 3, "{point}");
        }
    }

    #[test]
    fn a_map_is_the_same_every_time() {
        let maps = [(); 3].map(|()| neighbour_map(groups(60).view()).unwrap().unwrap());
        assert_eq!(maps[0], maps[1]);
        assert_eq!(maps[0], maps[2]);
    }

    #[test]
    fn few_or_equal_images_have_no_map() {
        assert_eq!(neighbour_map(groups(9).view()).unwrap(), None);
        assert_eq!(neighbour_map(groups(0).view()).unwrap(), None);
        assert!(neighbour_map(groups(10).view()).unwrap().is_some());
        assert_eq!(neighbour_map(Array2::from_elem((30, 4), 1.).view()).unwrap(), None);
    }

    #[test]
    fn features_along_one_direction_have_a_map() {
        let line = Array2::from_shape_fn((30, 3), |(row, _)| row as f32);
        let map = neighbour_map(line.view()).unwrap().unwrap();
        assert!(map.places.iter().flatten().all(|value| value.is_finite()));
    }
}
