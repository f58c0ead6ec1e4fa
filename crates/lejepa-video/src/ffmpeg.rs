//! An installed `ffmpeg`, run as a program of its own: frames come from it and go to it through a pipe.
//!
//! It is asked for PPM images: every frame says its own size. Files are named as `file:PATH` and may refer to
//! nothing but other files, so that no name is taken for an option, an address or a device.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use lejepa_data::Image;

use super::{Frame, frame_folder};
use crate::{Error, Result};

/// An installed `ffmpeg`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ffmpeg {
    program: PathBuf,
}

/// The most that is kept of what it says.
const MESSAGE_LIMIT: u64 = 1 << 14;
/// `P6`, width, height and 255 with their line breaks.
const HEADER_LIMIT: u64 = 64;
/// More frames per second than this, or none, are a wrong answer.
const RATES: std::ops::RangeInclusive<f64> = 0.1..=1000.;

impl Ffmpeg {
    /// The program at a path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// The first one in these folders, such as those of the variable `PATH`.
    pub fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let name = format!("ffmpeg{}", std::env::consts::EXE_SUFFIX);
        let found = folders.into_iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
        found.map(Self::at)
    }

    /// A command that waits for no answers and says nothing but errors.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-nostdin", "-hide_banner", "-loglevel", "error"]);
        command
    }

    /// The frames of the first video stream of a file.
    pub(super) fn frames(&self, path: &Path) -> Result<FilmFrames> {
        let duration = self.duration(path)?;
        let mut command = self.command();
        command.args(["-protocol_whitelist", "file,pipe", "-i"]).arg(file_name(path));
        command.args(["-map", "0:v:0", "-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "-"]);
        let mut child = self.start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let frames = child.stdout.take().map(BufReader::new);
        let messages = Messages::of(&mut child);
        let running = Running(child);
        Ok(FilmFrames { path: path.into(), running, frames, messages: Some(messages), duration, number: 0 })
    }

    pub(super) fn start(&self, command: &mut Command) -> Result<Child> {
        let failed = |source| Error::FfmpegStart { program: self.program.clone(), source };
        command.stderr(Stdio::piped()).spawn().map_err(failed)
    }

    /// How long a frame is seen: it is said among what `ffmpeg` tells about a file that it is not asked to
    /// convert (`..., 25 fps, ...`).
    fn duration(&self, path: &Path) -> Result<Duration> {
        let mut command = Command::new(&self.program);
        command.args(["-nostdin", "-hide_banner", "-protocol_whitelist", "file,pipe", "-i"]);
        command.arg(file_name(path)).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = self.start(&mut command)?;
        let messages = Messages::of(&mut child);
        // It fails, since it is given nothing to write.
        let _ = Running(child).0.wait();
        Ok(frame_rate(&messages.join())
            .map_or(frame_folder::DURATION, |rate| Duration::from_secs_f64(1. / rate)))
    }
}

fn frame_rate(said: &str) -> Option<f64> {
    let stream = said.lines().find(|line| line.contains("Video:") && line.contains(" fps"))?;
    let rate = stream.split(',').find_map(|part| part.trim().strip_suffix(" fps"))?.parse().ok()?;
    RATES.contains(&rate).then_some(rate)
}

pub(super) fn file_name(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

/// A process that ends with this value.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process says on its standard error, read beside it: a full pipe would stop it.
pub(super) struct Messages(Option<JoinHandle<String>>);

impl Messages {
    pub(super) fn of(child: &mut Child) -> Self {
        let read = |mut said: std::process::ChildStderr| {
            let mut start = Vec::new();
            let _ = said.by_ref().take(MESSAGE_LIMIT).read_to_end(&mut start);
            let _ = std::io::copy(&mut said, &mut std::io::sink());
            String::from_utf8_lossy(&start).into_owned()
        };
        Self(child.stderr.take().map(|said| std::thread::spawn(move || read(said))))
    }

    pub(super) fn join(self) -> String {
        self.0.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// The last line: the reason why it gave up.
    pub(super) fn reason(self) -> String {
        let said = self.join();
        let reason = said.lines().rfind(|line| !line.trim().is_empty());
        reason.unwrap_or("it gave no reason").trim().into()
    }
}

/// Frames that a process decodes.
pub(super) struct FilmFrames {
    path: PathBuf,
    running: Running,
    frames: Option<BufReader<ChildStdout>>,
    messages: Option<Messages>,
    duration: Duration,
    number: usize,
}

impl Iterator for FilmFrames {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = read_ppm(self.frames.as_mut()?);
        match read {
            Ok(Some(image)) => {
                self.number += 1;
                Some(Ok(Frame::numbered(self.number - 1, image, self.duration)))
            }
            Ok(None) => {
                self.frames = None;
                self.end().err().map(Err)
            }
            Err(error) => {
                self.frames = None;
                let ended = self.end();
                let name = format!("{} [{}]", self.path.display(), self.number);
                Some(Err(ended.err().unwrap_or_else(|| lejepa_data::Error::sample(name, error).into())))
            }
        }
    }
}

impl FilmFrames {
    /// Whether it came to its end of its own accord.
    fn end(&mut self) -> Result<()> {
        let status = self.running.0.wait();
        match (status, self.messages.take()) {
            (Ok(status), _) if status.success() => Ok(()),
            (_, Some(messages)) => Err(Error::Ffmpeg { problem: messages.reason(), path: self.path.clone() }),
            (_, None) => Ok(()),
        }
    }
}

/// The next image of a stream of binary PPM images; nothing at its end.
fn read_ppm(stream: &mut impl BufRead) -> lejepa_data::Result<Option<Image>> {
    let invalid = |problem: &str| {
        lejepa_data::Error::Decode(image::ImageError::IoError(std::io::Error::other(problem.to_string())))
    };
    let failed = |error| lejepa_data::Error::Decode(image::ImageError::IoError(error));
    if stream.fill_buf().map_err(failed)?.is_empty() {
        return Ok(None);
    }
    // Magic number, width, height and the largest value, with a single white space after each.
    let mut header = stream.by_ref().take(HEADER_LIMIT);
    let mut words = Vec::new();
    while words.len() < 4 {
        let mut line = String::new();
        if header.read_line(&mut line).map_err(failed)? == 0 {
            return Err(invalid("a frame ends in its header"));
        }
        words.extend(line.split_ascii_whitespace().map(str::to_string));
    }
    let [magic, width, height, largest] = &*words else { return Err(invalid("a frame has no header")) };
    let (width, height) = match (width.parse(), height.parse()) {
        (Ok(width), Ok(height)) if magic == "P6" && largest == "255" => (width, height),
        _ => return Err(invalid("a frame has no header")),
    };
    Frame::check_size(height, width)?;
    let mut pixels = vec![0; height * width * 3];
    stream.read_exact(&mut pixels).map_err(failed)?;
    Image::from_pixels(height, width, 3, pixels).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_follow_each_other_and_may_change_their_size() {
        let mut stream: &[u8] = b"P6\n2 1\n255\n123456P6\n1 1\n255\n\n\n\n";
        let first = read_ppm(&mut stream).unwrap().unwrap();
        assert_eq!((first.height(), first.width(), first.pixels()), (1, 2, &b"123456"[..]));
        assert_eq!(read_ppm(&mut stream).unwrap().unwrap().pixels(), b"\n\n\n");
        assert!(read_ppm(&mut stream).unwrap().is_none());
    }

    #[test]
    fn streams_that_are_cut_off_or_no_images_are_errors() {
        for stream in [
            &b"P6\n2 1\n255\n123"[..],
            b"P6\n2",
            b"P5\n2 1\n255\n123456",
            b"P6\n99999999 99999999\n255\n",
            b"P6\n0 4\n255\n",
            &[b'x'; 500],
        ] {
            assert!(read_ppm(&mut &*stream).is_err(), "{}", String::from_utf8_lossy(stream));
        }
    }

    #[test]
    fn the_frame_rate_is_found_in_what_ffmpeg_says() {
        let said = "  Duration: 00:00:02.00, start: 0.000000\n  Stream #0:0[0x1](und): Video: h264 (High) \
                    (avc1 / 0x31637661), yuv420p(progressive), 320x240, 14 kb/s, 29.97 fps, 29.97 tbr\n";
        assert_eq!(frame_rate(said), Some(29.97));
        assert_eq!(frame_rate("Stream #0:0: Video: gif, 1000000 fps, 3 tbr"), None);
        assert_eq!(frame_rate("no such file"), None);
    }

    #[test]
    fn it_is_looked_for_in_the_given_folders() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Ffmpeg::find([folder.path().into()]), None);
        let program = folder.path().join(format!("ffmpeg{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&program, "").unwrap();
        assert_eq!(
            Ffmpeg::find([folder.path().join("nowhere"), folder.path().into()]),
            Some(Ffmpeg::at(program))
        );
    }
}
