//! Frames written as an animation: a GIF always, an MP4 where there is an `ffmpeg`. Both are written frame by
//! frame, and are at their place when they are whole.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use lejepa_data::{AtomicFile, Image, Preprocess, ResizeRule};

use super::Ffmpeg;
use super::ffmpeg::{Messages, Running, file_name};
use crate::{Error, Result};

/// The names of films.
pub(super) const FILMS: [&str; 2] = [GIF, MP4];
const GIF: &str = "overlay.gif";
const MP4: &str = "overlay.mp4";

/// The longer side of a GIF: they get large.
const GIF_SIDE: usize = 480;
/// From 1, the best palettes, to 30.
const PALETTE_SPEED: i32 = 15;
/// Viewers show shorter ones longer, in hundredths of a second.
const SHORTEST_DELAY: u128 = 2;

/// An animation that is being written. All frames get the size of the first one.
pub(super) struct Film {
    gif: Gif,
    mp4: Option<Mp4>,
}

impl Film {
    /// Starts `overlay.gif` and `overlay.mp4` in a folder, for frames like this one.
    pub(super) fn create(
        folder: &Path,
        first: &Image,
        duration: Duration,
        ffmpeg: Option<&Ffmpeg>,
    ) -> Result<Self> {
        let gif = Gif::create(&folder.join(GIF), (first.height(), first.width()))?;
        let mp4 = |ffmpeg| Mp4::create(ffmpeg, &folder.join(MP4), first, duration);
        Ok(Self { gif, mp4: ffmpeg.map(mp4).transpose()? })
    }

    pub(super) fn add(&mut self, frame: &Image, duration: Duration) -> Result<()> {
        self.gif.add(frame, duration)?;
        self.mp4.as_mut().map_or(Ok(()), |mp4| mp4.add(frame))
    }

    /// `put` puts both into their places.
    pub(super) fn finish(self, put: &dyn Fn(AtomicFile) -> Result<()>) -> Result<()> {
        put(self.gif.finish()?)?;
        self.mp4.map_or(Ok(()), |mp4| put(mp4.finish()?))
    }
}

/// The whole image at another size, in colour.
fn resized(image: &Image, height: usize, width: usize) -> Result<Image> {
    if (image.height(), image.width(), image.channels()) == (height, width, 3) {
        return Ok(image.clone());
    }
    let size = Preprocess { resize: ResizeRule::Squash, ..Preprocess::new(height, (height, width), 3) };
    Ok(size.resized(image)?)
}

struct Gif {
    encoder: gif::Encoder<AtomicFile>,
    path: PathBuf,
    height: u16,
    width: u16,
}

impl Gif {
    fn create(path: &Path, (height, width): (usize, usize)) -> Result<Self> {
        let scale = (GIF_SIDE as f64 / height.max(width) as f64).min(1.);
        let side = |pixels: usize| ((pixels as f64 * scale).round() as u16).max(1);
        let (height, width) = (side(height), side(width));
        let failed = |error| failed(path, error);
        let mut encoder = gif::Encoder::new(AtomicFile::create(path)?, width, height, &[]).map_err(failed)?;
        encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
        Ok(Self { encoder, path: path.into(), height, width })
    }

    fn add(&mut self, frame: &Image, duration: Duration) -> Result<()> {
        let frame = resized(frame, self.height.into(), self.width.into())?;
        let mut frame = gif::Frame::from_rgb_speed(self.width, self.height, frame.pixels(), PALETTE_SPEED);
        let hundredths = (duration.as_millis() + 5) / 10;
        frame.delay = u16::try_from(hundredths.max(SHORTEST_DELAY)).unwrap_or(u16::MAX);
        self.encoder.write_frame(&frame).map_err(|error| failed(&self.path, error))
    }

    fn finish(self) -> Result<AtomicFile> {
        self.encoder.into_inner().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: gif::EncodingError) -> Error {
    let source = match error {
        gif::EncodingError::Io(error) => error,
        other => std::io::Error::other(other),
    };
    lejepa_data::Error::Io { action: "write", path: path.into(), source }.into()
}

struct Mp4 {
    running: Running,
    frames: Option<ChildStdin>,
    messages: Option<Messages>,
    /// Written by the other program, under its temporary name.
    file: AtomicFile,
    height: usize,
    width: usize,
}

impl Mp4 {
    fn create(ffmpeg: &Ffmpeg, path: &Path, first: &Image, duration: Duration) -> Result<Self> {
        let (height, width) = (first.height(), first.width());
        let file = AtomicFile::create(path)?;
        let mut command = ffmpeg.command();
        let rate = 1. / duration.as_secs_f64().max(1e-3);
        command.args(["-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]);
        command.args(["-video_size", &format!("{width}x{height}"), "-framerate", &format!("{rate:.3}")]);
        // Players want even sides and colours at half the size.
        command.args(["-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]);
        command.args(["-movflags", "+faststart", "-f", "mp4"]).arg(file_name(file.temporary()));
        let mut child = ffmpeg.start(command.stdin(Stdio::piped()).stdout(Stdio::null()))?;
        let (frames, messages) = (child.stdin.take(), Some(Messages::of(&mut child)));
        Ok(Self { running: Running(child), frames, messages, file, height, width })
    }

    fn add(&mut self, frame: &Image) -> Result<()> {
        let frame = resized(frame, self.height, self.width)?;
        let written = self.frames.as_mut().map_or(Ok(()), |frames| frames.write_all(frame.pixels()));
        written.map_err(|_| self.problem())
    }

    fn finish(mut self) -> Result<AtomicFile> {
        // The end of its input ends it.
        self.frames = None;
        match self.running.0.wait() {
            Ok(status) if status.success() => Ok(self.file),
            _ => Err(self.problem()),
        }
    }

    /// It has stopped, and said why.
    fn problem(&mut self) -> Error {
        self.frames = None;
        let _ = self.running.0.wait();
        let problem = self.messages.take().map(Messages::reason).unwrap_or_default();
        Error::Ffmpeg { problem, path: self.file.path().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gif_is_small_keeps_its_shape_and_shows_every_frame() {
        let folder = tempfile::tempdir().unwrap();
        let duration = Duration::from_millis(42);
        let wide = Image::from_pixels(300, 600, 3, vec![120; 300 * 600 * 3]).unwrap();
        let mut film = Film::create(folder.path(), &wide, duration, None).unwrap();
        film.add(&wide, duration).unwrap();
        // Another size, and grey.
        film.add(&Image::from_pixels(1, 1, 1, vec![30]).unwrap(), duration).unwrap();
        assert!(!folder.path().join("overlay.gif").exists());
        film.finish(&|file| Ok(file.commit()?)).unwrap();
        let frames: Vec<_> =
            super::super::FrameSource::open(&folder.path().join("overlay.gif"), None).unwrap().collect();
        let seen: Vec<_> = frames
            .iter()
            .map(|frame| frame.as_ref().unwrap())
            .map(|frame| (frame.image.height(), frame.image.width(), frame.image.pixels()[0]))
            .collect();
        assert_eq!(seen, [(240, 480, 120), (240, 480, 30)]);
        assert_eq!(frames[0].as_ref().unwrap().duration, Duration::from_millis(40));
    }

    #[test]
    fn a_film_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let image = Image::from_pixels(2, 2, 3, vec![0; 12]).unwrap();
        let mut film = Film::create(folder.path(), &image, Duration::ZERO, None).unwrap();
        film.add(&image, Duration::ZERO).unwrap();
        drop(film);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
