//! `src/proto.rs` is what `prost-build` makes of `proto/onnx.proto`.
//!
//! After a change of the .proto file: `UPDATE_PROTO=1 cargo test -p lejepa-onnx --test proto`.

#![allow(clippy::unwrap_used)]

use prost_build::{Config, Module};

#[test]
fn the_generated_code_is_current() {
    let crate_root = env!("CARGO_MANIFEST_DIR");
    let files = protox::compile(["onnx.proto"], [format!("{crate_root}/proto")]).unwrap();
    let requests =
        files.file.into_iter().map(|file| (Module::from_protobuf_package_name("onnx"), file)).collect();
    let mut config = Config::new();
    config.disable_comments(["."]);
    let generated = config.generate(requests).unwrap().into_values().next().unwrap();
    let generated = format!("// Generated from proto/onnx.proto: see tests/proto.rs.\n\n{generated}");
    let path = format!("{crate_root}/src/proto.rs");
    if std::env::var_os("UPDATE_PROTO").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), generated, "run with UPDATE_PROTO=1");
}
