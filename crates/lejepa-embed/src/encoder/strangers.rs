//! Files that were made to do harm.

use std::time::Duration;

use lejepa_data::{Precision, SelfTest};

use crate::onnx_file::append;
use crate::onnx_file::sample::{description, endless_loop, integers, model_with, node, truth};
use crate::{Encoder, Error, FileLimits, Result};

/// More rounds than the age of the universe has nanoseconds.
const ENDLESS: i64 = 1 << 62;

fn open(file: &[u8], limits: FileLimits) -> Result<Encoder> {
    Encoder::builder().foreign(description("embedding")).limits(limits).open_bytes("stranger.onnx", file)
}

fn refused(file: &[u8]) -> String {
    open(file, FileLimits::default()).unwrap_err().to_string()
}

#[test]
fn a_loop_is_refused_before_it_runs() {
    let file = model_with(&[endless_loop("rounds")], &[integers("rounds", &[], &[ENDLESS]), truth("yes")]);
    let said = "refused unless the file is trusted, it has a loop (Loop): stranger.onnx";
    assert_eq!(refused(&file), said);
    // One with an end is computed for those who trust it.
    let file = model_with(&[endless_loop("rounds")], &[integers("rounds", &[], &[3]), truth("yes")]);
    assert!(open(&file, FileLimits::default()).is_err());
    assert!(open(&file, FileLimits::none()).is_ok());
}

#[test]
fn a_loop_without_end_ends_with_the_time_for_it() {
    let limits = FileLimits { time: Duration::from_millis(300), ..FileLimits::none() };
    let file = model_with(&[endless_loop("rounds")], &[integers("rounds", &[], &[ENDLESS]), truth("yes")]);
    let error = open(&file, limits).unwrap_err();
    assert!(matches!(error, Error::TimeLimit { .. }), "{error}");

    // One that waits for the picture of the self-test: brightness times 2^60.
    let nodes = [
        node("ReduceSum", &["flat", "axes"], "brightness"),
        integer_cast("brightness", "whole"),
        node("Squeeze", &["whole"], "one"),
        node("Mul", &["one", "many"], "rounds"),
        endless_loop("rounds"),
    ];
    let constants = [integers("axes", &[1], &[1]), integers("many", &[], &[1 << 60]), truth("yes")];
    let mut encoder = open(&model_with(&nodes, &constants), limits).unwrap();
    let picture = lejepa_data::Image::from_pixels(2, 2, 1, vec![255; 4]).unwrap();
    encoder.self_test = Some(SelfTest::new(&picture, vec![1.; 3], Precision::F32));
    let error = encoder.self_test().unwrap_err();
    assert!(matches!(error, Error::TimeLimit { .. }), "{error}");
    // Its worker is free again for others.
    let black = lejepa_data::Image::from_pixels(2, 2, 1, vec![0; 4]).unwrap();
    assert!(encoder.embed(&[black]).is_ok());
}

/// To whole numbers.
fn integer_cast(value: &str, output: &str) -> Vec<u8> {
    let mut attribute = Vec::new();
    append(&mut attribute, 1, b"to");
    // The number 7 (of whole numbers) as field 3, and the kind of the attribute.
    attribute.extend([3 << 3, 7, 0xa0, 0x01, 2]);
    let mut node = node("Cast", &[value], output);
    append(&mut node, 5, &attribute);
    node
}

#[test]
fn a_graph_of_very_many_nodes_is_refused() {
    let names: Vec<String> = (0..60_000).map(|index| format!("value{index}")).collect();
    let mut nodes = vec![node("Identity", &["flat"], &names[0])];
    nodes.extend(names.windows(2).map(|pair| node("Identity", &[&pair[0]], &pair[1])));
    nodes.push(node("Identity", &[&names[names.len() - 1]], "made"));
    let said = "refused unless the file is trusted, it has 60003 nodes, more than 50000: stranger.onnx";
    assert_eq!(refused(&model_with(&nodes, &[])), said);
}

#[test]
fn functions_that_double_each_other_are_counted_written_out() {
    let mut file = model_with(&[node("f0", &["flat"], "made")], &[]);
    for level in 0..30 {
        let mut function = Vec::new();
        append(&mut function, 1, format!("f{level}").as_bytes());
        for output in ["a", "b"] {
            append(&mut function, 7, &node(&format!("f{}", level + 1), &["x"], output));
        }
        append(&mut file, 25, &function);
    }
    assert!(refused(&file).contains("nodes, more than 50000"), "{}", refused(&file));
    // One that calls itself is damage.
    let mut file = model_with(&[node("f", &["flat"], "made")], &[]);
    let mut function = Vec::new();
    append(&mut function, 1, b"f");
    append(&mut function, 7, &node("f", &["x"], "y"));
    append(&mut file, 25, &function);
    assert!(matches!(open(&file, FileLimits::default()), Err(Error::Damaged { .. })));
}

/// A function of the file, in the domain of its own functions or the usual one.
fn function((domain, name): (&[u8], &[u8]), overload: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut function = Vec::new();
    append(&mut function, 1, name);
    append(&mut function, 10, domain);
    append(&mut function, 13, overload.as_bytes());
    nodes.iter().for_each(|node| append(&mut function, 7, node));
    function
}

/// A file whose pixels go through the function `f`, and has these.
fn with_functions(call: &[u8], functions: &[Vec<u8>]) -> Vec<u8> {
    let mut call_node = node("", &["flat"], "made");
    append(&mut call_node, 4, call);
    let mut file = model_with(&[call_node], &[]);
    functions.iter().for_each(|function| append(&mut file, 25, function));
    file
}

#[test]
fn a_loop_in_a_function_is_refused_whichever_function_is_meant() {
    let (plain, endless) = ([node("Identity", &["x"], "y")], [endless_loop("rounds")]);
    let said = "refused unless the file is trusted, it has a loop (Loop): stranger.onnx";
    for (what, first, second) in [
        ("overloads", (&b""[..], &b"f"[..], "a"), (&b""[..], &b"f"[..], "b")),
        ("no UTF-8", (b"", b"f\xff", ""), (b"", b"f\xfe", "")),
        ("another name of the domain", (b"ai.onnx", b"f", ""), (b"", b"g", "")),
        ("never used", (b"", b"g", ""), (b"", b"h", "")),
    ] {
        let function = |(domain, name, overload), nodes| function((domain, name), overload, nodes);
        let functions = [function(first, &endless[..]), function(second, &plain[..])];
        assert_eq!(refused(&with_functions(b"f", &functions)), said, "{what}");
    }
    // Searches and others of ONNX Runtime's own that hold a graph repeat it too.
    let mut search = endless_loop("rounds");
    append(&mut search, 4, b"BeamSearch");
    assert!(refused(&model_with(&[search], &[])).contains("a loop (BeamSearch)"));
}

#[test]
fn a_long_chain_of_functions_is_damage_however_it_is_counted_first() {
    let name = |level: usize| format!("f{level}");
    let functions: Vec<_> = (0..60)
        .map(|level| function((b"", name(level).as_bytes()), "", &[node(&name(level + 1), &["x"], "y")]))
        .collect();
    // The ends of the chain first: each is short by itself.
    let mut nodes: Vec<_> = [50, 25].map(|level| node(&name(level), &["flat"], "unused")).into();
    nodes.push(node("f0", &["flat"], "made"));
    let mut file = model_with(&nodes, &[]);
    functions.iter().for_each(|function| append(&mut file, 25, function));
    assert!(matches!(open(&file, FileLimits::default()), Err(Error::Damaged { .. })));
    // Nobody has to use it.
    let unused = with_functions(b"Identity", &functions);
    assert!(matches!(open(&unused, FileLimits::default()), Err(Error::Damaged { .. })));
}

/// Memory that is asked for by a number computed from others.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_limited_where_that_is_asked_for() {
    let file = |values: i64| {
        let nodes = [
            node("Mul", &["half", "two"], "shape"),
            node("ConstantOfShape", &["shape"], "zeros"),
            node("ReduceMax", &["zeros"], "zero"),
            node("Add", &["flat", "zero"], "made"),
        ];
        model_with(&nodes, &[integers("half", &[1], &[values / 2]), integers("two", &[1], &[2])])
    };
    let limits = FileLimits { memory: Some(1 << 30), ..FileLimits::default() };
    assert!(open(&file(1 << 20), limits).is_ok());
    let error = open(&file(1 << 32), limits).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { .. }), "{error}: {:?}", std::error::Error::source(&error));
    assert!(open(&file(1 << 20), limits).is_ok());
}

#[test]
fn a_card_may_not_ask_for_everything() {
    let limits = FileLimits::default();
    let asked = |height, width| limits.check_size("x.onnx", lejepa_data::InputSize { height, width });
    assert!(asked(1024, 4096).is_ok());
    let said =
        "refused unless the file is trusted, it has images of 4096x4096, more than 4194304 pixels: x.onnx";
    assert_eq!(asked(4096, 4096).unwrap_err().to_string(), said);
}
