//! The sets of an evaluation: the one that is named, or those of the suite that lie in a folder.

use std::path::Path;

use anyhow::{Context, Result, bail};
use lejepa_data::{Format, SourceConfig};
use lejepa_eval::report::MissingDataset;
use lejepa_eval::sets::KnownDataset;
use lejepa_eval::{LabelledSet, Suite};

use super::Arguments;
use crate::output::say;

/// Sets that are there, and those of the suite that are not.
pub(super) fn open(arguments: &Arguments, suite: &Suite) -> Result<(Vec<LabelledSet>, Vec<MissingDataset>)> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    if let Some(path) = &arguments.data {
        let config = arguments.options.config(path);
        if config.recognise().is_ok_and(|format| format == Format::Folder) {
            refuse_sets_side_by_side(path)?;
        }
        found.push(LabelledSet::open(&name(path), &config, suite)?);
    } else if let Some(root) = &arguments.data_root {
        if suite.datasets.is_empty() {
            bail!("the suite {} names no sets: use --data PATH", suite.name);
        }
        if !root.is_dir() {
            bail!("no such folder: {}", root.display());
        }
        for name in &suite.datasets {
            match find(name, root) {
                Ok(source) => {
                    let opened = LabelledSet::open(name, &source, suite);
                    found.push(opened.with_context(|| format!("cannot use {name}"))?);
                }
                Err(absent) => missing.push(absent),
            }
        }
        missing.iter().for_each(|absent| say!("note: {}", describe(absent)));
        if found.is_empty() {
            bail!("no set of the suite {} is in the folder: {}", suite.name, root.display());
        }
    }
    for set in &found {
        set.notes().iter().for_each(|note| say!("note: {}: {note}", set.name()));
    }
    Ok((found, missing))
}

/// Published sets in one folder would pass for its classes.
fn refuse_sets_side_by_side(folder: &Path) -> Result<()> {
    let sets: Vec<&str> = KnownDataset::within(folder).map(|known| known.name).collect();
    if sets.is_empty() {
        return Ok(());
    }
    bail!(
        "a folder of sets ({}) and not one labelled set, use --data-root FOLDER for all of them or --data FOLDER/SET \
         for one: {}",
        sets.join(", "),
        folder.display()
    )
}

/// What a set at a path is called.
pub(super) fn name(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.into());
    let name = if absolute.is_dir() { absolute.file_name() } else { absolute.file_stem() };
    name.map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned())
}

/// Where a set of the suite lies. A name that is not known is that of a folder.
fn find(name: &str, root: &Path) -> Result<SourceConfig, MissingDataset> {
    let known = KnownDataset::named(name);
    let path = match known {
        Some(known) => known.find(root),
        None => Some(root.join(name)).filter(|path| path.exists()),
    };
    let format = known.map(|known| known.format);
    path.map(|path| SourceConfig { path, format, ..Default::default() }).ok_or_else(|| {
        let folders = known
            .map_or(vec![name.into()], |known| known.folders.iter().map(|name| (*name).into()).collect());
        let source = known.map_or("a folder of your own", |known| known.source).into();
        MissingDataset { name: name.into(), folders, source }
    })
}

fn describe(absent: &MissingDataset) -> String {
    let MissingDataset { name, folders, source } = absent;
    format!("{name} is missing, looked for {}: {source}", folders.join(", "))
}
