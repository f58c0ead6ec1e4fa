//! One file per subcommand.

pub(crate) mod attention;
pub(crate) mod cache;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod embed;
pub(crate) mod eval;
#[cfg(feature = "hdf5")]
pub(crate) mod examine_hdf5;
pub(crate) mod export;
pub(crate) mod gauge;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod pca;
pub(crate) mod runs;
pub(crate) mod segment;
pub(crate) mod select;
pub(crate) mod sweep;
pub(crate) mod train;
pub(crate) mod verify;
