//! The first two principal components.

use lejepa_picture::Directions;
use ndarray::ArrayView2;

use super::{EmbeddingMap, MapMethod, rounded};
use crate::Result;

/// Places by the two directions along which features vary most, with the same sign in every run.
///
/// # Shapes
/// - `features`: `(samples, dim)`
pub(crate) fn principal_map(features: ArrayView2<'_, f32>) -> Result<EmbeddingMap> {
    let directions = Directions::of(features, 2)?.signed();
    let coordinates = directions.project(features);
    let explained: f64 = coordinates.iter().map(|value| value * value).sum();
    let total: f64 = features
        .indexed_iter()
        .map(|((_, column), value)| (f64::from(*value) - directions.mean[column]).powi(2))
        .sum();
    let at = |row: usize, column: usize| coordinates.get((row, column)).copied().map_or(0., rounded);
    Ok(EmbeddingMap {
        method: MapMethod::Pca { variance: if total > 0. { explained / total } else { 1. } },
        places: (0..features.nrows()).map(|row| [at(row, 0), at(row, 1)]).collect(),
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    #[test]
    fn places_are_coordinates_along_the_widest_directions() {
        let features = array![[3., 0., 1.], [-3., 0., 1.], [0., 1., 1.], [0., -1., 1.]];
        let map = principal_map(features.view()).unwrap();
        assert_eq!(map.places, [[3., 0.], [-3., 0.], [0., 1.], [0., -1.]]);
        assert_eq!(map.method, MapMethod::Pca { variance: 1. });
    }

    #[test]
    fn equal_features_lie_in_one_place() {
        let map = principal_map(Array2::from_elem((3, 4), 2.).view()).unwrap();
        assert_eq!(map.places, [[0., 0.]; 3]);
    }
}
