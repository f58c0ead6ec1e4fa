//! How many photographs per second one core turns into training views and evaluation inputs.
//!
//! ```text
//! cargo bench --workspace --bench pipeline -- PHOTOS [SECONDS]
//! ```
//!
//! Prints one JSON object. `benches/data.sh` runs it beside torchvision and Pillow on the same files.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::{Duration, Instant};

use lejepa_data::{Image, Preprocess, Purpose, Stored, ViewSize, Views, ViewsConfig, Workbench, generator};

fn main() {
    // cargo passes `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(photos) = arguments.next() else { return println!("usage: -- PHOTOS [SECONDS]") };
    let seconds = arguments.next().map_or(5., |seconds| seconds.parse().unwrap());
    let files = read(Path::new(&photos));
    let images: Vec<Image> = files.iter().map(|bytes| Image::decode(bytes).unwrap()).collect();
    let preprocess = Preprocess::new(256, (224, 224), 3);

    let size = ViewSize { height: 96, width: 96 };
    let views = Views::new(&ViewsConfig::default(), &Preprocess::new(224, (224, 224), 3), size).unwrap();
    let mut workbench = Workbench::default();
    let mut pixels = vec![0.; 3 * (2 * 224 * 224 + 6 * 96 * 96)];
    let mut sample = 0;
    let views = rate(seconds, || {
        let (global, local) = pixels.split_at_mut(2 * 3 * 224 * 224);
        let mut places: Vec<&mut [f32]> =
            global.chunks_exact_mut(3 * 224 * 224).chain(local.chunks_exact_mut(3 * 96 * 96)).collect();
        let stored = Stored::File(files[sample % files.len()].clone());
        let mut generator = generator(0, Purpose::Views, sample as u64, 0);
        views.make(stored, &mut generator, &mut workbench, &mut places).unwrap();
        sample += 1;
    });

    let mut pixels = vec![0.; preprocess.pixel_count()];
    let mut sample = 0;
    let decode = rate(seconds, || {
        Image::decode(&files[sample % files.len()]).unwrap();
        sample += 1;
    });
    let transform = rate(seconds, || {
        preprocess.apply_into(&images[sample % images.len()], &mut pixels).unwrap();
        sample += 1;
    });
    println!(
        "{{\"views_per_second\": {views:.1}, \"decode_per_second\": {decode:.1}, \"transform_per_second\": {transform:.1}}}"
    );
}

fn read(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Calls per second, over at least so many seconds.
fn rate(seconds: f64, mut call: impl FnMut()) -> f64 {
    call();
    let (clock, mut calls) = (Instant::now(), 0);
    while clock.elapsed() < Duration::from_secs_f64(seconds) {
        call();
        calls += 1;
    }
    f64::from(calls) / clock.elapsed().as_secs_f64()
}
