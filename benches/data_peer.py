"""torchvision and Pillow on one core: the peers of `crates/lejepa-data/benches/pipeline.rs`.

    python data_peer.py PHOTOS [SECONDS]

2 views of 224 and 6 of 96 pixels with all augmentations of the paper, from JPEG bytes in memory to normalised
tensors; and the evaluation transform (short side 256, centre 224, bicubic), from a decoded image. Prints one JSON
object.
"""

import io
import json
import pathlib
import sys
import time

import numpy
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import InterpolationMode, v2

torch.set_num_threads(1)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
photos = pathlib.Path(sys.argv[1])
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
files = [path.read_bytes() for path in sorted(photos.iterdir())]


def view(size, scale):
    return v2.Compose(
        [
            v2.RandomResizedCrop(size, scale=scale, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(7, (0.1, 2.0))], 0.5),
            v2.RandomSolarize(128, 0.2),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )


transforms = [view(224, (0.3, 1.0))] * 2 + [view(96, (0.05, 0.3))] * 6


def views_of_pillow(data):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return [transform(image) for transform in transforms]


def views_of_tensor(data):
    encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    image = decode_jpeg(encoded, mode=ImageReadMode.RGB)
    return [transform(image) for transform in transforms]


evaluation = v2.Compose(
    [
        v2.Resize(256, InterpolationMode.BICUBIC, antialias=True),
        v2.CenterCrop(224),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)
mean, std = (numpy.array(values, numpy.float32) for values in (MEAN, STD))


def evaluation_of_pillow(image):
    """The same with Pillow and NumPy alone."""
    scale = 256 / min(image.size)
    width, height = (int(side * scale + 1e-6) for side in image.size)
    left, top = round((width - 224) / 2), round((height - 224) / 2)
    image = image.resize((width, height), Image.BICUBIC).crop((left, top, left + 224, top + 224))
    pixels = (numpy.asarray(image, numpy.float32) / 255 - mean) / std
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1))


def rate(function, inputs):
    """Calls per second."""
    function(inputs[0])
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        function(inputs[calls % len(inputs)])
        calls += 1
    return round(calls / (time.perf_counter() - start), 1)


images = [Image.open(io.BytesIO(data)).convert("RGB") for data in files]
print(
    json.dumps(
        {
            "views_pillow": rate(views_of_pillow, files),
            "views_tensor": rate(views_of_tensor, files),
            "decode_pillow": rate(lambda data: Image.open(io.BytesIO(data)).convert("RGB"), files),
            "transform_pillow": rate(evaluation_of_pillow, images),
            "transform_torchvision": rate(evaluation, images),
        }
    )
)
