use super::*;
use crate::VitShape;

fn vit(config: EncoderConfig) -> VitShape {
    match config.resolve().unwrap() {
        EncoderShape::Vit(shape) => shape,
        other => unreachable!("{other:?}"),
    }
}

fn refusal(config: EncoderConfig) -> String {
    config.resolve().unwrap_err().to_string()
}

fn own() -> EncoderConfig {
    EncoderConfig {
        image_size: Some(28.into()),
        channels: 1,
        patch_size: Some(7),
        dim: Some(64),
        depth: Some(2),
        heads: Some(4),
        ..EncoderConfig::named("vit")
    }
}

#[test]
fn a_timm_name_gives_timms_sizes() {
    let shape = vit(EncoderConfig::named("vit_small_patch14_224"));
    assert_eq!((shape.dim, shape.depth, shape.heads, shape.patch_size), (384, 12, 6, 14));
    assert_eq!((shape.grid(), shape.positions()), (ImageSize::from(16), 257));
    let shape = vit(EncoderConfig::named("vit_gigantic_patch14_224"));
    assert_eq!((shape.dim, shape.depth, shape.heads, shape.mlp_hidden), (1664, 48, 16, 8192));
    let shape = vit(EncoderConfig::named("vit_giant_patch14_224"));
    assert_eq!((shape.dim, shape.depth, shape.heads, shape.mlp_hidden), (1408, 40, 16, 6144));
}

#[test]
fn dinov2_has_layer_scale_and_registers_without_positions() {
    let plain = vit(EncoderConfig::named("vit_base_patch14_dinov2"));
    assert_eq!((plain.layer_scale, plain.registers, plain.positions()), (Some(1e-5), 0, 1 + 37 * 37));
    let registers = vit(EncoderConfig::named("vit_base_patch14_reg4_dinov2"));
    assert_eq!((registers.layer_scale, registers.registers), (Some(1e-5), 4));
    assert_eq!((registers.positions(), registers.tokens()), (37 * 37, 5 + 37 * 37));
    let giant = refusal(EncoderConfig::named("vit_giant_patch14_reg4_dinov2"));
    assert!(giant.contains("SwiGLU"), "{giant}");
    let own = vit(EncoderConfig::named("vit_tiny_patch8_reg2_64"));
    assert_eq!((own.registers, own.positions(), own.layer_scale), (2, 64, None));
}

#[test]
fn options_go_with_a_name() {
    let shape = vit(EncoderConfig {
        image_size: Some(ImageSize { height: 32, width: 64 }),
        channels: 1,
        registers: Some(3),
        layer_scale: Some(0.1),
        pool: Some(Pool::Average),
        class_token: Some(false),
        drop_path: Some(0.2),
        ..Default::default()
    });
    assert_eq!((shape.channels, shape.tokens(), shape.positions()), (1, 3 + 8, 3 + 8));
    assert_eq!((shape.layer_scale, shape.pool, shape.drop_path), (Some(0.1), Pool::Average, 0.2));
}

#[test]
fn a_size_that_the_name_fixes_is_refused() {
    let message = refusal(EncoderConfig { dim: Some(64), ..Default::default() });
    let expected = "`encoder.dim` must be absent, because vit_tiny_patch16_224 fixes it \
                    (own sizes: arch = \"vit\"), got: 64";
    assert_eq!(message, expected);
    let registers = EncoderConfig { registers: Some(4), ..EncoderConfig::named("vit_tiny_patch16_reg4_224") };
    assert!(refusal(registers).contains("encoder.registers"));
}

#[test]
fn a_field_of_another_family_is_refused() {
    let message = refusal(EncoderConfig { depths: Some([1; 4]), ..own() });
    assert_eq!(
        message,
        "`encoder.depths` must be absent, because vit encoders do not have it, got: [1, 1, 1, 1]"
    );
    let resnet = EncoderConfig {
        image_size: Some(32.into()),
        depths: Some([1; 4]),
        widths: Some([8; 4]),
        ..EncoderConfig::named("resnet")
    };
    assert!(matches!(resnet.resolve(), Ok(EncoderShape::ResNet(_))));
    assert!(refusal(EncoderConfig { pool: Some(Pool::Average), ..resnet.clone() }).contains("encoder.pool"));
    assert!(refusal(EncoderConfig { widths: None, ..resnet.clone() }).contains("encoder.widths"));
    let convnext = EncoderConfig { arch: "convnextv2".into(), ..resnet };
    assert!(matches!(convnext.resolve(), Ok(EncoderShape::ConvNext(_))));
    assert!(refusal(EncoderConfig { groups: Some(2), ..convnext }).contains("encoder.groups"));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert!(own().resolve().is_ok());
    let named = |field: &str, config: EncoderConfig| {
        let message = refusal(config);
        assert!(message.contains(field), "{message}");
    };
    named("encoder.patch_size", EncoderConfig { patch_size: Some(5), ..own() });
    named("encoder.patch_size", EncoderConfig { patch_size: Some(0), ..own() });
    named("encoder.heads", EncoderConfig { heads: Some(3), ..own() });
    named("encoder.heads", EncoderConfig { heads: Some(0), ..own() });
    named("encoder.depth", EncoderConfig { depth: Some(0), ..own() });
    named("encoder.channels", EncoderConfig { channels: 2, ..own() });
    named("encoder.dim", EncoderConfig { dim: None, ..own() });
    named("encoder.mlp_hidden", EncoderConfig { mlp_hidden: Some(0), ..own() });
    named("encoder.registers", EncoderConfig { registers: Some(100_000), ..own() });
    named("encoder.layer_scale", EncoderConfig { layer_scale: Some(f64::NAN), ..own() });
    named("encoder.drop_path", EncoderConfig { drop_path: Some(1.), ..own() });
    named("encoder.pool", EncoderConfig { class_token: Some(false), ..own() });
    let no_prefix = EncoderConfig { class_token: Some(false), pool: Some(Pool::Average), ..own() };
    named("encoder.embed_prefix", EncoderConfig { embed_prefix: Some(false), ..no_prefix });
    for unknown in ["resnet9000", "vit_+1", "vit_tiny_patch+16_224", "vit_tiny_patch16_reg_224", ""] {
        named("encoder.arch", EncoderConfig::named(unknown));
    }
}
