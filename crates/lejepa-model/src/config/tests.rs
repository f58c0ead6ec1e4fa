use super::*;
use crate::{Pool, VitSettings, VitShape};

/// The table with further lines.
fn table(lines: &str) -> EncoderConfig {
    toml::from_str(lines).unwrap()
}

fn vit(config: EncoderConfig) -> VitShape {
    match config.resolve().unwrap() {
        EncoderShape::Vit(shape) => shape,
        other => unreachable!("{other:?}"),
    }
}

fn refusal(config: EncoderConfig) -> String {
    config.resolve().unwrap_err().to_string()
}

fn own_settings() -> VitSettings {
    VitSettings { patch_size: Some(7), dim: Some(64), depth: Some(2), heads: Some(4), ..Default::default() }
}

fn own_with(settings: &VitSettings) -> EncoderConfig {
    let settings = FamilySettings::of(settings).unwrap();
    EncoderConfig { image_size: Some(28.into()), channels: 1, settings, ..EncoderConfig::named("vit") }
}

fn own() -> EncoderConfig {
    own_with(&own_settings())
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
    let settings = VitSettings {
        registers: Some(3),
        layer_scale: Some(0.1),
        pool: Some(Pool::Average),
        class_token: Some(false),
        drop_path: Some(0.2),
        ..Default::default()
    };
    let shape = vit(EncoderConfig {
        image_size: Some(ImageSize { height: 32, width: 64 }),
        channels: 1,
        settings: FamilySettings::of(&settings).unwrap(),
        ..Default::default()
    });
    assert_eq!((shape.channels, shape.tokens(), shape.positions()), (1, 3 + 8, 3 + 8));
    assert_eq!((shape.layer_scale, shape.pool, shape.drop_path), (Some(0.1), Pool::Average, 0.2));
}

#[test]
fn a_size_that_the_name_fixes_is_refused() {
    let message = refusal(table("dim = 64"));
    let expected = "`encoder.dim` must be absent, because vit_tiny_patch16_224 fixes it \
                    (own sizes: arch = \"vit\"), got: 64";
    assert_eq!(message, expected);
    let registers = "arch = 'vit_tiny_patch16_reg4_224'\nregisters = 4";
    assert!(refusal(table(registers)).contains("encoder.registers"));
}

#[test]
fn a_field_of_another_family_is_refused() {
    let written = toml::to_string(&own()).unwrap();
    let message = refusal(table(&format!("{written}\ndepths = [1, 1, 1, 1]")));
    assert_eq!(
        message,
        "`encoder.depths` must be absent, because vit encoders do not have it, got: [1, 1, 1, 1]"
    );
    let (resnet, convnext) = ("arch = 'resnet'\n", "arch = 'convnextv2'\n");
    let (size, depths, widths) = ("image_size = 32\n", "depths = [1, 1, 1, 1]\n", "widths = [8, 8, 8, 8]\n");
    let sizes = [size, depths, widths].concat();
    assert!(matches!(table(&format!("{resnet}{sizes}")).resolve(), Ok(EncoderShape::ResNet(_))));
    let pool = format!("{resnet}{sizes}pool = 'average'");
    assert_eq!(
        refusal(table(&pool)),
        "`encoder.pool` must be absent, because resnet encoders do not have it, got: average"
    );
    assert!(refusal(table(&format!("{resnet}{size}{depths}"))).contains("encoder.widths"));
    assert!(matches!(table(&format!("{convnext}{sizes}")).resolve(), Ok(EncoderShape::ConvNext(_))));
    assert!(refusal(table(&format!("{convnext}{sizes}groups = 2"))).contains("encoder.groups"));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert!(own().resolve().is_ok());
    let named = |field: &str, config: EncoderConfig| {
        let message = refusal(config);
        assert!(message.contains(field), "{message}");
    };
    named("encoder.patch_size", own_with(&VitSettings { patch_size: Some(5), ..own_settings() }));
    named("encoder.patch_size", own_with(&VitSettings { patch_size: Some(0), ..own_settings() }));
    named("encoder.heads", own_with(&VitSettings { heads: Some(3), ..own_settings() }));
    named("encoder.heads", own_with(&VitSettings { heads: Some(0), ..own_settings() }));
    named("encoder.depth", own_with(&VitSettings { depth: Some(0), ..own_settings() }));
    named("encoder.channels", EncoderConfig { channels: 2, ..own() });
    named("encoder.dim", own_with(&VitSettings { dim: None, ..own_settings() }));
    named("encoder.mlp_hidden", own_with(&VitSettings { mlp_hidden: Some(0), ..own_settings() }));
    named("encoder.registers", own_with(&VitSettings { registers: Some(100_000), ..own_settings() }));
    named("encoder.layer_scale", own_with(&VitSettings { layer_scale: Some(f64::NAN), ..own_settings() }));
    named("encoder.drop_path", own_with(&VitSettings { drop_path: Some(1.), ..own_settings() }));
    named("encoder.pool", own_with(&VitSettings { class_token: Some(false), ..own_settings() }));
    let no_prefix = VitSettings { class_token: Some(false), pool: Some(Pool::Average), ..own_settings() };
    named("encoder.embed_prefix", own_with(&VitSettings { embed_prefix: Some(false), ..no_prefix }));
    for unknown in ["resnet9000", "vit_+1", "vit_tiny_patch+16_224", "vit_tiny_patch16_reg_224", ""] {
        named("encoder.arch", EncoderConfig::named(unknown));
    }
}

#[test]
fn a_table_is_written_in_the_order_of_its_keys_whatever_that_of_the_recipe_was() {
    let recipe = "drop_path = 1\ndim = 64\narch = 'vit'\npatch_size = 7\nchannels = 1\nimage_size = 28\npool = 'class'";
    let written = "arch = \"vit\"\nimage_size = 28\nchannels = 1\npatch_size = 7\ndim = 64\npool = \"class\"\n\
                   drop_path = 1.0\n";
    assert_eq!(toml::to_string(&table(recipe)).unwrap(), written);
    assert_eq!(table(written), table(recipe));
    let residual =
        "arch = \"resnet\"\nchannels = 3\ndrop_path = 0.5\ndepths = [1, 2, 3, 4]\nblock = \"bottleneck\"\n";
    assert_eq!(toml::to_string(&table(residual)).unwrap(), residual);
    assert_eq!(
        toml::to_string(&EncoderConfig::default()).unwrap(),
        "arch = \"vit_tiny_patch16_224\"\nchannels = 3\n"
    );
}

#[test]
fn a_mistake_in_a_table_is_found_where_it_stands() {
    let message = |text: &str| toml::from_str::<EncoderConfig>(text).unwrap_err().to_string();
    let unknown = message("channels = 3\ndimm = 64");
    assert!(unknown.contains("line 2, column 1"), "{unknown}");
    assert!(
        unknown
            .contains("unknown field `dimm`, expected one of `arch`, `image_size`, `channels`, `patch_size`")
    );
    let text = message("dim = \"64\"");
    assert!(text.contains("line 1, column 7"), "{text}");
    assert!(text.contains("invalid type: string \"64\", expected usize"), "{text}");
    let pool = message("pool = \"some\"");
    assert!(pool.contains("unknown variant `some`, expected `class` or `average`"), "{pool}");
    assert!(message("depths = [1, 2]").contains("invalid length 2"), "{}", message("depths = [1, 2]"));
}

#[test]
fn stochastic_depth_is_read_and_changed() {
    let mut config = table("drop_path = 0");
    assert_eq!(config.drop_path(), Some(0.));
    config.set_drop_path(Some(0.25));
    assert_eq!(vit(config.clone()).drop_path, 0.25);
    config.set_drop_path(None);
    assert_eq!(config, EncoderConfig::default());
}

#[test]
fn keys_keep_their_order_in_files() {
    let keys: Vec<_> = EncoderConfig::architecture_fields().collect();
    let expected = [
        "image_size",
        "patch_size",
        "dim",
        "depth",
        "heads",
        "mlp_hidden",
        "registers",
        "layer_scale",
        "pool",
        "class_token",
        "embed_prefix",
        "drop_path",
        "depths",
        "widths",
        "block",
        "groups",
        "group_width",
    ];
    let expected = expected.map(|key| format!("encoder.{key}"));
    assert_eq!(keys[..expected.len()], expected, "those of a new family come last");
}
