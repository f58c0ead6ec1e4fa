"""Writes images/, one small picture in every kind of image file, and images.safetensors, what they show.

What a file shows is uint8 (height, width, 3): Pillow's pixels, turned upright, without alpha. Pillow
clips 16-bit grey, so that is scaled from 65535 to 255 and rounded here.
Run with numpy, Pillow and safetensors: python tests/formats/make_images.py
"""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import save_file

FOLDER = Path(__file__).parent / "images"
HEIGHT, WIDTH = 18, 29  # neither square nor a multiple of a JPEG block

rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
red, green, blue = rows * 12 + 20, columns * 8 + 10, 230 - rows * 5 - columns * 4
RGB = np.stack([red, green, blue], axis=-1).astype(np.uint8)
RGB[3:7, 4:12] = (250, 240, 30)  # a corner that tells every orientation from the others
ALPHA = (columns * 8).astype(np.uint8)
DEEP_GREY = (rows * 3000 + columns * 400 + 77).astype(np.uint16)
DEEP_RGB = np.stack([DEEP_GREY, DEEP_GREY[::-1], 65535 - DEEP_GREY], axis=-1)


def to_eight_bits(deep):
    return ((deep.astype(np.uint32) + 128) // 257).astype(np.uint8)


def save(name, image, **options):
    image.save(FOLDER / name, **options)
    with Image.open(FOLDER / name) as image:
        shown[name] = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def orientation(number):
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


def write_deep_png(name, values):
    """A 16-bit colour PNG, which Pillow does not write."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, 2, 0, 0, 0)
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in values)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")]
    (FOLDER / name).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


FOLDER.mkdir(exist_ok=True)
shown = {}
colour = Image.fromarray(RGB)
grey = colour.convert("L")
with_alpha = Image.merge("RGBA", [*colour.split(), Image.fromarray(ALPHA)])
palette = colour.quantize(32)

save("baseline.jpg", colour, quality=90)
save("unsubsampled.jpg", colour, quality=90, subsampling=0)
save("progressive.jpg", colour, quality=90, progressive=True)
save("restarts.jpg", colour, quality=90, restart_marker_blocks=1)
save("progressive_restarts.jpg", colour, quality=90, progressive=True, restart_marker_blocks=3)
save("grey.jpg", grey, quality=90)
save("cmyk.jpg", colour.convert("CMYK"), quality=90)
for number in range(2, 9):
    save(f"orientation_{number}.jpg", colour, quality=90, exif=orientation(number))

save("colour.png", colour)
save("alpha.png", with_alpha)
save("grey.png", grey)
save("grey_alpha.png", Image.merge("LA", [grey, Image.fromarray(ALPHA)]))
save("palette.png", palette)
save("palette_transparent.png", palette, transparency=3)
save("two_tone.png", grey.point(lambda value: 255 * (value > 128)).convert("1"))
save("orientation_6.png", colour, exif=orientation(6))
Image.fromarray(DEEP_GREY).save(FOLDER / "grey_16_bit.png")
shown["grey_16_bit.png"] = np.repeat(to_eight_bits(DEEP_GREY)[..., None], 3, axis=-1)
write_deep_png("colour_16_bit.png", DEEP_RGB)
shown["colour_16_bit.png"] = to_eight_bits(DEEP_RGB)

save("lossy.webp", colour, quality=90)
save("lossless.webp", colour, lossless=True)
save("lossless_alpha.webp", with_alpha, lossless=True, exact=True)
save("orientation_6.webp", colour, lossless=True, exif=orientation(6))

save("colour.bmp", colour)
save("grey.bmp", grey)
save("palette.bmp", palette)

save("colour.tiff", colour)
save("lzw.tiff", colour, compression="tiff_lzw")
save("deflate_alpha.tiff", with_alpha, compression="tiff_adobe_deflate")
save("grey.tiff", grey)
save("orientation_6.tiff", colour, exif=orientation(6))
Image.fromarray(DEEP_GREY).save(FOLDER / "grey_16_bit.tiff")
shown["grey_16_bit.tiff"] = shown["grey_16_bit.png"]

save("palette.gif", palette)
save("two_frames.gif", palette, save_all=True, append_images=[palette.transpose(Image.Transpose.ROTATE_180)])

save_file(shown, FOLDER.with_suffix(".safetensors"))
