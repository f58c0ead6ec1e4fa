//! Damages dataset files at random and reads them: every reader must answer with data or an error,
//! never with a panic, a hang or a claim to all memory. `scripts/fuzz-readers.sh` builds and runs it.
//!
//! ```text
//! fuzz_readers SEEDS NAME WORK FINDINGS FIRST COUNT SECONDS [alone]
//! ```
//!
//! HDF5 files are looked at by another process first, as the program does; with `alone` they are not, which finds
//! files that crash the library.
//!
//! The files of `SEEDS/NAME` are copied to `WORK/data`; then, for each number from `FIRST` on, some of
//! them are damaged as that number says, read and restored. A panic is saved in `FINDINGS`. A hang
//! ends the program, as may a failed allocation or a crash: `WORK` then holds the files and `seed`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lejepa_data::{Format, Hdf5Examiner, ReadOptions, SourceConfig, Split};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

/// Makes this program the one that looks at HDF5 files.
const EXAMINE: &str = "--examine-hdf5";
/// Longer than any reader needs for a few kilobytes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Images that are decoded of each split.
const DECODED: usize = 20;
/// Samples of each split whose names and labels are read.
const LISTED: usize = 1000;

static STARTED: Mutex<Option<Instant>> = Mutex::new(None);
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Something that can be opened, and the files that belong to it.
struct Target {
    path: PathBuf,
    format: Format,
    /// By file ending, so that one table of labels is damaged as often as many images.
    files: BTreeMap<String, Vec<PathBuf>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [EXAMINE, options @ .., path] = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let named =
            |name: &str| options.iter().find_map(|option| option.strip_prefix(name)).map(String::from);
        let options =
            ReadOptions { images: named("--images="), labels: named("--labels="), ..Default::default() };
        std::process::exit(lejepa_data::examine_hdf5(path.as_ref(), &options).into());
    }
    let [seeds, name, work, findings, first, count, seconds, options @ ..] = &arguments[..] else {
        return Err("see scripts/fuzz-readers.sh".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let (work, data) = (Path::new(work), Path::new(work).join("data"));
    let originals = copy(&Path::new(seeds).join(name), &data)?;
    if !options.iter().any(|option| option == "alone") {
        let (program, arguments) = (std::env::current_exe()?, vec![EXAMINE.into()]);
        Hdf5Examiner { program, arguments, memo: None, patience: PATIENCE / 2 }.install();
    }
    let targets = targets(&data, &originals);
    if targets.is_empty() {
        eprintln!("{name}: nothing to fuzz");
        return Ok(());
    }

    std::thread::spawn(watch);
    std::panic::set_hook(Box::new(|panic| *lock(&PANIC) = panic.to_string()));
    let mut known = BTreeSet::new();
    let mut done = 0;
    while done < count && Instant::now() < end {
        let seed = first + done;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        std::fs::write(work.join("seed"), seed.to_string())?;
        let Some(target) = targets.choose(&mut random) else { break };
        let damaged = damage(target, &originals, &mut random)?;
        *lock(&STARTED) = Some(Instant::now());
        let result = std::panic::catch_unwind(|| read(target));
        *lock(&STARTED) = None;
        if result.is_err() && known.insert(place(&lock(&PANIC))) {
            eprintln!("{name}: seed {seed}: {}", lock(&PANIC));
            let folder = Path::new(findings).join(format!("{name}-{seed}"));
            copy(&data, &folder.join("data"))?;
            std::fs::write(folder.join("panic"), &*lock(&PANIC))?;
        }
        for path in damaged {
            std::fs::write(&path, &originals[&path])?;
        }
        done += 1;
    }
    eprintln!("{name}: {done} seeds from {first}, {} panics", known.len());
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The line of code of a panic: one finding for each is enough.
fn place(panic: &str) -> String {
    panic.lines().next().unwrap_or_default().to_string()
}

/// Ends the program when a seed takes too long.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if lock(&STARTED).is_some_and(|started| started.elapsed() > PATIENCE) {
            eprintln!("hang");
            std::process::abort();
        }
    }
}

/// Copies a folder; the files of the copy with their contents.
fn copy(from: &Path, to: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry?;
        let mut path = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&path)?;
        } else {
            let mut bytes = std::fs::read(entry.path())?;
            // STL-10's large files are kept compressed here; its reader wants them as they are.
            if let Some(unpacked) = path.to_str().and_then(|path| path.strip_suffix(".bin.gz")) {
                let mut contents = Vec::new();
                flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut contents)?;
                (path, bytes) = (format!("{unpacked}.bin").into(), contents);
            }
            std::fs::write(&path, &bytes)?;
            files.insert(path, bytes);
        }
    }
    Ok(files)
}

/// Whatever a reader opens in the folder, or the folder as images if nothing else is there.
fn targets(data: &Path, originals: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<Target> {
    let mut targets = Vec::new();
    for entry in walkdir::WalkDir::new(data).sort_by_file_name().into_iter().flatten() {
        let path = entry.into_path();
        let Some(format) = Format::recognise(&path).filter(|&format| format != Format::Folder) else {
            continue;
        };
        targets.push(target(path, format, originals));
    }
    if targets.is_empty() {
        targets.push(target(data.into(), Format::Folder, originals));
    }
    targets.retain(|target| {
        let source = target.source();
        Split::ALL.iter().any(|&split| lejepa_data::open_source(&source, split).is_ok())
    });
    targets
}

fn target(path: PathBuf, format: Format, originals: &BTreeMap<PathBuf, Vec<u8>>) -> Target {
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in originals.keys().filter(|file| file.starts_with(&path)) {
        let ending = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        files.entry(ending).or_default().push(file.clone());
    }
    Target { path, format, files }
}

impl Target {
    fn source(&self) -> SourceConfig {
        SourceConfig { path: self.path.clone(), format: Some(self.format), ..Default::default() }
    }
}

/// Reads all that a command would read. Errors are fine.
fn read(target: &Target) {
    let _ = Format::recognise(&target.path);
    for split in Split::ALL {
        let Ok(dataset) = lejepa_data::open_source(&target.source(), split) else { continue };
        let classes = dataset.class_names().len();
        let _ = (dataset.fingerprint(&mut lejepa_data::Fingerprinter::default()), dataset.notes());
        let last = dataset.len().saturating_sub(1);
        for index in (0..dataset.len().min(LISTED)).chain([last]) {
            let _ = dataset.name(index);
            let label = dataset.label(index);
            assert!(label.is_none_or(|label| label < classes), "label {label:?} of {classes} classes");
        }
        for index in (0..dataset.len().min(DECODED)).chain([last]) {
            let _ = dataset.image(index);
        }
    }
}

/// Damages some files of a target; which ones.
fn damage(
    target: &Target,
    originals: &BTreeMap<PathBuf, Vec<u8>>,
    random: &mut ChaCha8Rng,
) -> std::io::Result<BTreeSet<PathBuf>> {
    let endings: Vec<&Vec<PathBuf>> = target.files.values().collect();
    let mut damaged = BTreeSet::new();
    for _file in 0..random.random_range(1..=2) {
        let Some(path) = endings.choose(random).and_then(|files| files.choose(random)) else { continue };
        let mut bytes = originals[path].clone();
        for _mutation in 0..1 << random.random_range(0..4) {
            mutate(&mut bytes, random);
        }
        std::fs::write(path, bytes)?;
        damaged.insert(path.clone());
    }
    Ok(damaged)
}

fn mutate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        return bytes.push(random.random());
    }
    let place = random.random_range(0..bytes.len());
    // Headers are where damage hurts.
    let place = if random.random_bool(0.3) { place.min(random.random_range(0..64)) } else { place };
    let length = 1 + random.random_range(0..bytes.len() - place).min(1 << random.random_range(0..10));
    match random.random_range(0..8) {
        0 => bytes[place] ^= 1 << random.random_range(0..8),
        1 => bytes[place..place + length].fill(random.random()),
        2 => bytes.truncate(place),
        3 => drop(bytes.drain(place..place + length)),
        4 => {
            let inserted: Vec<u8> = (0..length).map(|_| random.random()).collect();
            bytes.splice(place..place, inserted).for_each(drop);
        }
        5 => {
            let other = random.random_range(0..bytes.len());
            let piece = bytes[other..].iter().copied().take(length).collect::<Vec<_>>();
            bytes.splice(place..place + piece.len().min(bytes.len() - place), piece).for_each(drop);
        }
        6 => bytes[place] = bytes[place].wrapping_add(random.random_range(0..=32)).wrapping_sub(16),
        _ => {
            // Numbers at the edges of their types, in either byte order.
            let edges = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x7fff_ffff, 0x8000_0000, 1 << 40, i64::MAX as u64];
            let value = edges.choose(random).map_or(u64::MAX, |&edge| edge);
            let value = if random.random() { value } else { value.wrapping_neg() };
            let width = 1 << random.random_range(0..4);
            let little = value.to_le_bytes()[..width].to_vec();
            let big = value.to_be_bytes()[8 - width..].to_vec();
            for (byte, edge) in bytes[place..].iter_mut().zip(if random.random() { little } else { big }) {
                *byte = edge;
            }
        }
    }
}
