//! The keys of the `[encoder]` table.

use std::sync::LazyLock;

use crate::family::FAMILIES;

/// A key of some family's settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// `encoder.` and the name.
    pub(super) path: &'static str,
}

/// Keys that every encoder has.
pub(super) const OF_ALL: [&str; 3] = ["arch", "image_size", "channels"];

const PREFIX: &str = "encoder.";

/// Every path of a family's settings once.
static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut paths: Vec<String> = Vec::new();
    for path in FAMILIES.iter().flat_map(|family| family.keys()).map(|key| format!("{PREFIX}{key}")) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
});

/// All keys of the table.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| OF_ALL.into_iter().chain(of_settings().map(|key| key.name)).collect());

/// The keys of every family's settings, in the order in which they are written.
pub(super) fn of_settings() -> impl Iterator<Item = Key> {
    PATHS.iter().map(|path| Key { name: &path[PREFIX.len()..], path })
}

/// The key of a family's settings with this name.
pub(super) fn of_setting(name: &str) -> Option<Key> {
    of_settings().find(|key| key.name == name)
}

/// All keys of the table.
pub(super) fn names() -> &'static [&'static str] {
    &NAMES
}
