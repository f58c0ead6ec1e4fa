//! `lejepa segment` as a user types it.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;
use std::process::{Command, Output};

use fixture::{LEJEPA, lejepa, lejepa_succeeds, repository, workspace};
use lejepa_data::Image;
use lejepa_video::{Ffmpeg, FrameSource, LabelMap};
use ndarray::Array2;

const SIDE: usize = 56;
/// Means of equal numbers in f64.
const ROUNDING: f64 = 1e-12;

/// The encoder that comes with the repository: 28x28 pixels, patches of 7, four heads.
fn encoder() -> String {
    repository().join("models/fashion-mnist-vit/encoder.onnx").display().to_string()
}

/// A bright square on a dark, uneven ground.
fn picture(height: usize, width: usize, square: &Array2<bool>) -> Image {
    let pixel = |index: usize| {
        let (row, column) = (index / width, index % width);
        let inside = square[(row * SIDE / height, column * SIDE / width)];
        (if inside { 220 } else { 20 }) + (row * 7 % 11 + column * 5 % 13) as u8
    };
    Image::from_pixels(height, width, 1, (0..height * width).map(pixel).collect()).unwrap()
}

/// A square of three by three patches, in the upper left corner or one patch farther.
fn square(start: usize) -> Array2<bool> {
    let inside = |place: usize| (start..start + 3 * SIDE / 4).contains(&place);
    Array2::from_shape_fn((SIDE, SIDE), |(row, column)| inside(row) && inside(column))
}

/// Frames that show the square, and its masks.
fn write_clip(frames: &Path, masks: &Path, count: usize) {
    for number in 0..count {
        picture(SIDE, SIDE, &square(0)).write_png(&frames.join(format!("{number:05}.png"))).unwrap();
        LabelMap::of_mask(&square(0)).write(&masks.join(format!("{number:05}.png"))).unwrap();
    }
}

fn segment(folder: &Path, arguments: &[&str]) -> Output {
    lejepa_succeeds(folder, &[&["segment", &encoder()], arguments].concat())
}

fn report(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap()
}

fn scores(report: &serde_json::Value, name: &str) -> serde_json::Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap().clone()
}

#[test]
fn frames_of_several_sizes_have_masks_of_their_own_size_and_a_broken_one_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames");
    for (name, height, width) in [("0", 60, 80), ("2", 80, 60), ("10", 1, 1)] {
        picture(height, width, &square(0)).write_png(&frames.join(format!("{name}.png"))).unwrap();
    }
    std::fs::write(frames.join("1.jpg"), "no image").unwrap();
    let output = segment(folder.path(), &["frames", "--out", "out"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("note: left out: cannot use image: frames/1.jpg"), "{stderr}");
    let out = folder.path().join("out");
    for (name, size) in [("0", (60, 80)), ("2", (80, 60)), ("10", (1, 1))] {
        let mask = LabelMap::read(&out.join(format!("masks/{name}.png"))).unwrap();
        assert_eq!(mask.labels.dim(), size);
    }
    assert!(!out.join("masks/1.png").exists());
    let shown: Vec<_> = FrameSource::open(&out.join("overlay.gif"), None)
        .unwrap()
        .map(|frame| frame.unwrap().image)
        .collect();
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().all(|image| (image.height(), image.width()) == (60, 80)));
    let report = report(&out);
    assert_eq!(report["clips"][0]["frames"], 3);
    assert_eq!(report["clips"][0]["left_out"], 1);
    assert_eq!(report["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn true_masks_are_compared_with_heads_an_untrained_encoder_and_a_box() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_clip(&path.join("frames"), &path.join("true"), 10);
    let arguments = ["frames", "--masks", "true", "--out", "out", "--mass", "0.5", "--smooth", "0.3"];
    let output = segment(path, &arguments);
    let table = String::from_utf8_lossy(&output.stdout);
    let report = report(&path.join("out"));
    let names: Vec<&str> =
        report["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    let expected = [
        "encoder, mean over heads",
        "encoder, best head",
        "encoder, best head of every frame",
        "same encoder, untrained, mean over heads",
        "same encoder, untrained, best head",
        "same encoder, untrained, best head of every frame",
        "centred box",
    ];
    assert_eq!(names, expected);
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    assert!(
        table.contains("1 object of 1 clip, 10 true masks; attention:mass0.5:smoothing0.3:28x28."),
        "{table}"
    );
    // The box of 28x28 in the middle of 56x56 lies in the square of 42x42 in the corner.
    let of_box = scores(&report, "centred box")["score"]["jaccard"].as_f64().unwrap();
    assert!((of_box - (28. * 28.) / (42. * 42.)).abs() < ROUNDING);
    let jaccard = |name: &str| scores(&report, name)["score"]["jaccard"].as_f64().unwrap();
    assert!(jaccard("encoder, best head") >= 0. && jaccard("encoder, best head") <= 1.);
    // All frames are the same, so that the best head is, too.
    let apart = jaccard("encoder, best head") - jaccard("encoder, best head of every frame");
    assert!(apart.abs() < ROUNDING);
    let head = report["clips"][0]["rows"][1]["objects"][0]["head"].as_u64().unwrap();
    let head = head.to_string();
    segment(path, &["frames", "--masks", "true", "--out", "head", "--mass", "0.5", "--head", &head]);
    let mask = LabelMap::read(&path.join("head/masks/00000.png")).unwrap().object(1);
    let found = lejepa_video::jaccard(mask.view(), square(0).view());
    assert!((found - jaccard("encoder, best head")).abs() < ROUNDING);
    let json = segment(path, &["frames", "--out", "json", "--frames", "3", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["clips"][0]["frames"], 3);
    assert!(std::fs::read_to_string(path.join("out/report.md")).unwrap().contains("| centred box"));
    let page = std::fs::read_to_string(path.join("out/report.html")).unwrap();
    // Ten frames: every other, found and true.
    assert_eq!(page.matches("<img src=\"data:image/jpeg;base64,").count(), 2 * 5);
    assert!(page.contains(">centred box</th>"), "{page}");
}

#[test]
fn masks_replace_those_of_the_same_clip_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let frame = path.join("frames/0.png");
    picture(SIDE, SIDE, &square(0)).write_png(&frame).unwrap();
    let command = ["frames", "--out", "out"];
    segment(path, &command);
    segment(path, &command);
    let refuses = |place: &str| {
        let encoder = encoder();
        let output = lejepa(path, &[&["segment", &encoder][..], &command].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("replaced only with --overwrite: out/{place}")), "{said}");
    };
    for theirs in ["report.md", "overlay.gif", "masks/0.png"] {
        let made = std::fs::read(path.join("out").join(theirs)).unwrap();
        std::fs::write(path.join("out").join(theirs), "mine").unwrap();
        refuses(theirs);
        assert_eq!(std::fs::read_to_string(path.join("out").join(theirs)).unwrap(), "mine");
        std::fs::write(path.join("out").join(theirs), made).unwrap();
    }
    segment(path, &command);
    picture(SIDE, SIDE, &square(7)).write_png(&frame).unwrap();
    refuses("report.json");
}

#[test]
fn an_evaluation_segments_clips_too() {
    let folder = workspace();
    let path = folder.path();
    write_clip(&path.join("clips/square"), &path.join("true/square"), 3);
    picture(SIDE, SIDE, &square(7)).write_png(&path.join("clips/other/0.png")).unwrap();
    let encoder = encoder();
    let eval = [
        &["eval", &encoder, "--suite", "knn", "--data", "data", "--cache", "cache"][..],
        &["--video", "clips", "--masks", "true", "--video-size", "28", "--out", "out"],
    ]
    .concat();
    let table = String::from_utf8(lejepa_succeeds(path, &eval).stdout).unwrap();
    assert!(table.contains("**Video: attention**") && table.contains("**Video: propagation**"), "{table}");
    let found = report(&path.join("out"));
    let names = |video: usize| -> Vec<String> {
        let clips = found["videos"][video]["clips"].as_array().unwrap();
        clips.iter().map(|clip| clip["name"].as_str().unwrap().to_owned()).collect()
    };
    // What has no true mask cannot be followed.
    assert_eq!((names(0), names(1)), (vec!["other".to_owned(), "square".into()], vec!["square".to_owned()]));
    let of_box = scores(&found["videos"][0], "centred box")["score"]["jaccard"].as_f64().unwrap();
    assert!((of_box - (28. * 28.) / (42. * 42.)).abs() < ROUNDING);
    scores(&found["videos"][1], "same encoder, untrained");
    let page = std::fs::read_to_string(path.join("out/report.html")).unwrap();
    for part in ["<h2>Video: attention</h2>", "<h2>Video: propagation</h2>", "href=\"#video-1\""] {
        assert!(page.contains(part), "{part}");
    }
    let mask = path.join("out/video/attention/square/masks/00002.png");
    assert_eq!(LabelMap::read(&mask).unwrap().labels.dim(), (SIDE, SIDE));

    // The same command again makes no mask anew, unless one is lost.
    let (whole, modified) = (std::fs::read(&mask).unwrap(), || mask.metadata().unwrap().modified().unwrap());
    let first = modified();
    lejepa_succeeds(path, &eval);
    assert_eq!(modified(), first);
    std::fs::remove_file(&mask).unwrap();
    lejepa_succeeds(path, &eval);
    assert!(std::fs::read(&mask).unwrap() == whole);
    // What is damaged may be what somebody has drawn.
    std::fs::write(path.join("out/video/attention/square/notes.txt"), "mine").unwrap();
    for theirs in [&whole[..whole.len() / 2], b"mine"] {
        std::fs::write(&mask, theirs).unwrap();
        let refused = String::from_utf8(lejepa(path, &eval).stderr).unwrap();
        let said = "replaced only with --overwrite: out/video/attention/square/masks/00002.png";
        assert!(refused.contains(said), "{refused}");
        assert!(std::fs::read(&mask).unwrap() == theirs);
        lejepa_succeeds(path, &[&eval[..], &["--overwrite"]].concat());
        assert!(std::fs::read(&mask).unwrap() == whole);
    }
    assert!(path.join("out/video/attention/square/notes.txt").exists());
    let again = report(&path.join("out"));
    assert_eq!(again["videos"][0]["clips"][1]["stills"], found["videos"][0]["clips"][1]["stills"]);
    for (video, name) in [(0, "encoder, best head"), (1, "encoder")] {
        let [first, second] = [&found, &again].map(|report| scores(&report["videos"][video], name));
        let apart = first["mean"].as_f64().unwrap() - second["mean"].as_f64().unwrap();
        assert!(apart.abs() < ROUNDING, "{name}");
    }
    // Other frames are other clips.
    picture(SIDE, SIDE, &square(0)).write_png(&path.join("clips/square/00003.png")).unwrap();
    let refused = String::from_utf8(lejepa(path, &eval).stderr).unwrap();
    assert!(
        refused.contains("the folder holds masks of another clip square: use another --out"),
        "{refused}"
    );
    lejepa_succeeds(path, &[&eval[..], &["--overwrite"]].concat());
    assert!(mask.exists());

    let without = ["eval", &encoder, "--suite", "knn", "--data", "data", "--masks", "true"];
    assert_eq!(lejepa(path, &without).status.code(), Some(2));
    let other =
        ["eval", &encoder, "--suite", "knn", "--data", "data", "--video", "clips", "--video-size", "32"];
    let stderr = String::from_utf8(lejepa(path, &other).stderr).unwrap();
    assert!(stderr.starts_with("error: exported for images of 28x28, not for 32x32: "), "{stderr}");
}

#[test]
fn a_mask_is_followed_through_the_clips_of_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let davis = folder.path().join("DAVIS");
    for name in ["cat", "dog"] {
        let (frames, masks) =
            (davis.join("JPEGImages/480p").join(name), davis.join("Annotations/480p").join(name));
        write_clip(&frames, &masks, 4);
    }
    let output = segment(folder.path(), &["DAVIS", "--method", "propagate", "--out", "out"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("J of cat") && table.contains("2 objects of 2 clips"), "{table}");
    let out = folder.path().join("out");
    let report = report(&out);
    // Nothing moves.
    assert_eq!(scores(&report, "first mask, kept")["mean"], 1.);
    let followed = scores(&report, "encoder")["score"]["jaccard"].as_f64().unwrap();
    assert!(followed > 0.8, "{followed}");
    for file in ["cat/masks/00003.png", "dog/overlay.gif", "report.md", "report.html"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert_eq!(LabelMap::read(&out.join("cat/masks/00000.png")).unwrap().object(1), square(0));
    // The same without true masks, from a mask of any size.
    LabelMap::of_mask(&square(0)).resized((8, 8)).write(&folder.path().join("first.png")).unwrap();
    segment(folder.path(), &["DAVIS/JPEGImages/480p/dog", "--first-mask", "first.png", "--out", "one"]);
    assert!(folder.path().join("one/masks/00003.png").is_file());
}

/// A sequence of a made-up DAVIS whose second mask shows an object that the first does not, and whose second object is
/// of a few pixels.
fn write_sequence(davis: &Path, name: &str) {
    for number in 0..3 {
        let file = format!("480p/{name}/{number:05}.png");
        picture(SIDE, SIDE, &square(0)).write_png(&davis.join("JPEGImages").join(&file)).unwrap();
        let mut labels = square(0).mapv(u8::from);
        labels[(SIDE - 2, SIDE - 2)] = 2;
        if number > 0 {
            labels.slice_mut(ndarray::s![44.., ..20]).fill(7);
        }
        LabelMap::new(labels).write(&davis.join("Annotations").join(&file)).unwrap();
    }
}

#[test]
fn the_validation_split_of_davis_is_segmented_and_its_objects_are_those_of_the_first_frame() {
    let folder = workspace();
    let path = folder.path();
    let davis = path.join("DAVIS");
    ["bear", "cow", "dog"].iter().for_each(|name| write_sequence(&davis, name));
    std::fs::create_dir_all(davis.join("ImageSets/2017")).unwrap();
    std::fs::write(davis.join("ImageSets/2017/val.txt"), "cow\ndog\nyak\n").unwrap();
    for (method, protocol) in
        [("attention", "attention:mass0.6:smoothing0"), ("propagate", "propagation:context1+7")]
    {
        let output = segment(path, &["DAVIS", "--method", method, "--out", method]);
        let (table, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(stderr.contains("note: clips of the list 2017/val that are not there: yak\n"), "{stderr}");
        assert!(table.contains("4 objects of 2 clips, 6 true masks; "), "{table}");
        assert!(table.contains(":28x28:clips2017/val(2of3).") && table.contains(protocol), "{table}");
        let report = report(&path.join(method));
        let names: Vec<_> =
            report["clips"].as_array().unwrap().iter().map(|clip| clip["name"].clone()).collect();
        assert_eq!(names, ["cow", "dog"]);
        let remarks = [
            "objects that appear after the first mask and are not judged: 7",
            "object 2 is smaller than a cell of the 4x4 patches, in pixels: 1 of 196",
        ];
        assert_eq!(report["clips"][0]["remarks"], serde_json::json!(remarks));
        for file in ["report.md", "report.html"] {
            let text = std::fs::read_to_string(path.join(method).join(file)).unwrap();
            assert!(remarks.iter().all(|remark| text.contains(&format!("dog: {remark}"))), "{file}");
            assert!(text.contains("that are not there: yak"), "{file}");
        }
        assert!(remarks.iter().all(|remark| table.contains(&format!("- cow: {remark}"))), "{table}");
    }
    let protocol = |arguments: &[&str]| {
        let output =
            segment(path, &[&["DAVIS", "--out", "out", "--json", "--overwrite"], arguments].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["protocol"].as_str().unwrap().to_owned(), report["clips"].as_array().unwrap().len())
    };
    let start = "attention:mass0.6:smoothing0:28x28:clips";
    assert_eq!(protocol(&["--clips", "all"]), (format!("{start}all"), 3));
    assert_eq!(protocol(&["--clips", "bear,dog", "--frames", "2"]), (format!("{start}bear+dog:frames2"), 2));
    let refused = lejepa(path, &["segment", &encoder(), "DAVIS", "--out", "no", "--clips", "bear,yak"]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("error: no such clips (yak) in: DAVIS\n"), "{stderr}");

    let eval = ["eval", &encoder(), "--suite", "knn", "--data", "data", "--out", "eval", "--video", "DAVIS"];
    lejepa_succeeds(path, &eval);
    let found = report(&path.join("eval"));
    assert_eq!(found["videos"][1]["clips"].as_array().unwrap().len(), 2);
    assert!(found["videos"][1]["protocol"].as_str().unwrap().ends_with(":28x28:clips2017/val(2of3)"));
    lejepa_succeeds(path, &[&eval[..], &["--clips", "all"]].concat());
    assert_eq!(report(&path.join("eval"))["videos"][1]["clips"].as_array().unwrap().len(), 3);
}

#[test]
fn a_clip_whose_first_mask_is_empty_is_judged_with_a_remark_and_not_followed() {
    let folder = workspace();
    let path = folder.path();
    let davis = path.join("DAVIS");
    ["cow", "dog"].iter().for_each(|name| write_sequence(&davis, name));
    let empty = LabelMap::new(Array2::zeros((SIDE, SIDE)));
    empty.write(&davis.join("Annotations/480p/dog/00000.png")).unwrap();
    segment(path, &["DAVIS", "--method", "attention", "--out", "attention"]);
    let remark = "the first masks are empty: objects are those of the first that has any, frame: 00001";
    let found = report(&path.join("attention"));
    assert_eq!(found["clips"][1]["remarks"][0], remark);
    assert!(!found["clips"][0].to_string().contains("the first masks are empty"), "{found}");

    let output = segment(path, &["DAVIS", "--method", "propagate", "--out", "followed"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let message = "the first frame of dog has no mask with an object";
    assert!(stderr.contains(&format!("note: left out: {message}")), "{stderr}");
    let found = report(&path.join("followed"));
    assert_eq!(found["clips"].as_array().unwrap().len(), 1);
    assert!(found["notes"].to_string().contains(message), "{}", found["notes"]);
    let eval = ["eval", &encoder(), "--suite", "knn", "--data", "data", "--out", "eval", "--video", "DAVIS"];
    lejepa_succeeds(path, &eval);
    let found = report(&path.join("eval"));
    assert!(found["videos"][1]["notes"].to_string().contains(message), "{}", found["videos"][1]["notes"]);
}

#[test]
fn the_twin_of_an_encoder_that_began_elsewhere_is_not_called_its_beginning() {
    let folder = workspace();
    let path = folder.path();
    write_clip(&path.join("frames"), &path.join("true"), 2);
    let train = ["train", "--config", "train.toml", "--epochs", "0.2", "--out"];
    lejepa_succeeds(path, &[&train[..], &["first"]].concat());
    lejepa_succeeds(path, &[&train[..], &["second", "--init", "first"]].concat());
    for (run, name) in [("first", "same encoder, untrained"), ("second", "same architecture, random weights")]
    {
        let file = format!("{run}/encoder.onnx");
        lejepa_succeeds(path, &["export", run, "--out", &file]);
        let eval = ["eval", &file, "--suite", "knn", "--data", "data", "--out", &format!("{run}/eval")];
        let table = String::from_utf8(lejepa_succeeds(path, &eval).stdout).unwrap();
        assert!(table.contains(&format!("| {name} ")), "{table}");
        let out = format!("{run}/segment");
        lejepa_succeeds(path, &["segment", &file, "frames", "--masks", "true", "--out", &out]);
        scores(&report(&path.join(&out)), &format!("{name}, mean over heads"));
    }
}

#[test]
fn a_convolutional_network_has_no_attention_but_follows_masks() {
    let folder = workspace();
    let path = folder.path();
    let recipe = std::fs::read_to_string(path.join("train.toml")).unwrap();
    let network = "arch = \"resnet\"\nimage_size = 16\nchannels = 1\ndepths = [1, 1, 1, 1]\n\
                   widths = [4, 4, 8, 8]\nblock = \"basic\"\n";
    let (start, end) = (recipe.find("arch").unwrap(), recipe.find("[projector]").unwrap());
    std::fs::write(path.join("train.toml"), format!("{}{network}{}", &recipe[..start], &recipe[end..]))
        .unwrap();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &["export", "run", "--size", "64"]);
    write_clip(&path.join("frames"), &path.join("true"), 3);
    let output = lejepa(path, &["segment", "encoder.onnx", "frames", "--out", "out"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.starts_with("error: no output cls_attention"), "{stderr}");
    assert!(stderr.contains("hint: ") && stderr.contains("--method propagate"), "{stderr}");
    let follow =
        ["segment", "encoder.onnx", "frames", "--masks", "true", "--method", "propagate", "--out", "out"];
    let table = String::from_utf8(lejepa_succeeds(path, &follow).stdout).unwrap();
    assert!(table.contains("first mask, kept"), "{table}");
    let eval = ["eval", "encoder.onnx", "--suite", "knn", "--data", "data", "--video", "frames"];
    let stderr = String::from_utf8(lejepa(path, &eval).stderr).unwrap();
    assert!(stderr.starts_with("error: nothing to segment: no encoder has attention"), "{stderr}");
}

/// A program that takes the place of ffmpeg: frames without end of a film, and a copy of what it is given.
#[cfg(unix)]
fn write_ffmpeg(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn films_go_through_ffmpeg_frame_by_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("film.mp4"), "a film").unwrap();
    let endless = r#"
for last; do :; done
case "$*" in
*image2pipe*) while printf 'P6\n4 3\n255\nabcdefghijklmnopqrstuvwxyz0123456789'; do :; done ;;
*rawvideo*) cat >"${last#file:}" ;;
*) echo 'Stream #0:0: Video: h264, yuv420p, 4x3, 50 fps, 50 tbr' >&2; exit 1 ;;
esac
"#;
    write_ffmpeg(&path.join("ffmpeg"), endless);
    segment(path, &["film.mp4", "--ffmpeg", "./ffmpeg", "--frames", "20", "--out", "out"]);
    assert_eq!(std::fs::read_dir(path.join("out/masks")).unwrap().count(), 20);
    assert_eq!(std::fs::metadata(path.join("out/overlay.mp4")).unwrap().len(), 20 * 4 * 3 * 3);
    let ffmpeg = Ffmpeg::at(path.join("ffmpeg"));
    let first = FrameSource::open(&path.join("film.mp4"), Some(&ffmpeg)).unwrap().next().unwrap().unwrap();
    assert_eq!((first.name.as_str(), first.duration.as_millis()), ("00000", 20));

    write_ffmpeg(&path.join("ffmpeg"), "echo 'moov atom not found' >&2; exit 1\n");
    let broken = lejepa(path, &["segment", &encoder(), "film.mp4", "--ffmpeg", "./ffmpeg", "--out", "none"]);
    let stderr = String::from_utf8_lossy(&broken.stderr);
    assert_eq!(broken.status.code(), Some(1));
    assert!(stderr.contains("ffmpeg failed (moov atom not found): film.mp4"), "{stderr}");
    assert!(stderr.contains("error: no frame can be read of: film.mp4"), "{stderr}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_clip(&path.join("frames"), &path.join("true"), 2);
    write_clip(&path.join("others"), &path.join("others-true"), 2);
    std::fs::rename(path.join("others-true/00000.png"), path.join("others-true/x.png")).unwrap();
    std::fs::remove_file(path.join("others-true/00001.png")).unwrap();
    std::fs::create_dir(path.join("empty")).unwrap();
    LabelMap::of_mask(&square(0)).write(&path.join("out/masks/00000.png")).unwrap();
    std::fs::write(path.join("film.mp4"), "a film").unwrap();
    picture(9, 9, &square(0)).write_png(&path.join("small/00000.png")).unwrap();
    let masks = "the mask of frame 00012.jpg is 00012.png; frames of films are called 00000, 00001, ...";
    for (arguments, code, message) in [
        (&["nowhere"][..], 2, "error: no such file or folder: nowhere"),
        (&["empty"], 1, "error: no images (jpeg, png, webp, bmp, tiff, gif) in: empty"),
        (
            &["frames", "--mass", "0"],
            2,
            "error: the share of attention to keep must be above 0 and at most 1, got: 0",
        ),
        (&["frames", "--smooth", "1"], 2, "error: the smoothing must be at least 0 and below 1, got: 1"),
        (&["frames", "--head", "5"], 2, "error: the encoder has heads 1 to 4, got: 5"),
        (&["frames", "--method", "propagate", "--mass", "0.5"], 1, "error: --mass is for --method attention"),
        (
            &["frames", "--method", "attention", "--first-mask", "x.png"],
            1,
            "error: --first-mask is for --method propagate",
        ),
        (
            &["frames", "--method", "propagate"],
            1,
            "error: the first frame of frames has no mask with an object\nhint: name a mask with --first-mask \
             FILE, or a folder with the first frame's with --masks FOLDER",
        ),
        (
            &["frames", "--masks", "others-true"],
            1,
            &format!("error: no mask has the name of a frame in: others-true\nhint: {masks}"),
        ),
        (
            &["small", "--masks", "true"],
            1,
            "error: cannot use mask (56x56 pixels, the frame has 9x9): true/00000.png",
        ),
        (
            &["film.mp4"],
            1,
            "error: ffmpeg is needed to read it and was not found: film.mp4\nhint: install it (`apt install \
             ffmpeg`) or name it with --ffmpeg FILE; a folder of frames, a GIF and an animated PNG or WebP are \
             read without it",
        ),
        (&["frames", "--masks", "out/masks"], 1, "error: would write masks over what it reads: out/masks"),
        (&["frames", "--frames", "0"], 2, "error: invalid value '0' for '--frames <FRAMES>'"),
        (&["frames", "--size", "32"], 2, "error: exported for images of 28x28, not for 32x32: "),
    ] {
        let output = Command::new(LEJEPA)
            .current_dir(path)
            .env("PATH", "")
            // Masks of somebody lie there.
            .args(["segment", &encoder(), "--out", "out", "--overwrite"])
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.trim_start_matches("note: no overlay.mp4, since ffmpeg was not found\n");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with(message), "{arguments:?}: {stderr}\nexpected: {message}");
    }
}
