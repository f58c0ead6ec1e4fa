//! A fitted probe: scores, rankings and predictions from one pass over the queries.

use crate::learnt::Columns;
use crate::rows::Rows;
use crate::watch::{Watch, unwatched};
use crate::{Ranking, Result, Scores};

/// Takes the scores of queries, one entry per column, in the order of the queries.
pub type Take<'a> = dyn FnMut(&[f64]) + 'a;

/// A fitted probe that answers queries.
pub trait Solution {
    /// The score of a class without training samples.
    const ABSENT: f64 = 0.;

    /// The columns of its scores.
    fn columns(&self) -> &Columns;

    /// Gives `take` the scores of every query. Returns how many queries had no sample near enough and took what
    /// their nearest says; most probes know no such queries.
    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize>;

    /// The score of every class, or the predicted values; [`ABSENT`](Self::ABSENT) for a class without training
    /// samples.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, outputs)`
    fn scores<'q>(&self, queries: impl Into<Rows<'q>>) -> Result<Scores> {
        let queries = queries.into();
        dense((self.columns(), Self::ABSENT), queries.len(), |take| {
            unwatched(|watch| self.visit(queries, watch, take)).map(|_alone| ())
        })
    }

    /// The first `count` classes of every query.
    fn ranking<'q>(
        &self,
        queries: impl Into<Rows<'q>>,
        count: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Ranking> {
        let columns = self.columns();
        let (mut ranking, known) = (Ranking::new(columns, count)?, columns.known()?);
        ranking.alone = self.visit(queries.into(), watch, &mut |row| ranking.push(row, known))?;
        Ok(ranking)
    }
}

/// The scores of all outputs: `absent` for classes without samples.
pub(crate) fn dense(
    (columns, absent): (&Columns, f64),
    queries: usize,
    visit: impl FnOnce(&mut Take<'_>) -> Result<()>,
) -> Result<Scores> {
    let mut scores = Scores::from_elem((queries, columns.outputs()), absent);
    let mut rows = scores.outer_iter_mut();
    visit(&mut |row| {
        if let Some(to) = rows.next() {
            columns.spread(row, to);
        }
    })?;
    Ok(scores)
}
