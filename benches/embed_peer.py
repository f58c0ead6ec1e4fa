"""Pillow with timm and with Python's ONNX Runtime: the peers of `crates/lejepa-embed/benches/embed.rs`.

    python embed_peer.py weights WEIGHTS             writes weights of a ViT-tiny/16 with timm's initialisation
    python embed_peer.py rates PHOTOS SECONDS WEIGHTS ENCODER

JPEG files to vectors, two threads: short side 224 (bicubic), centre 224, normalised, in batches of the size that
serves each best. ENCODER computes the embedding alone. Prints one JSON object.
"""

import json
import pathlib
import sys
import time

import numpy
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

NAME = "vit_tiny_patch16_224"
BATCHES = (1, 8, 16, 32)
MEAN = numpy.array((0.485, 0.456, 0.406), numpy.float32)
STD = numpy.array((0.229, 0.224, 0.225), numpy.float32)


def prepare(path):
    image = Image.open(path).convert("RGB")
    scale = 224 / min(image.size)
    width, height = (round(side * scale) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - 224) // 2, (height - 224) // 2
    pixels = numpy.asarray(image.crop((left, top, left + 224, top + 224)), numpy.float32)
    return ((pixels / 255 - MEAN) / STD).transpose(2, 0, 1)


def best_rate(paths, seconds, embed):
    best = 0.0
    for batch in BATCHES:
        start, images = None, 0
        while start is None or time.perf_counter() - start < seconds / len(BATCHES):
            chosen = [paths[(images + index) % len(paths)] for index in range(batch)]
            embed(numpy.stack([prepare(path) for path in chosen]))
            if start is None:  # the first one warms up
                start = time.perf_counter()
            else:
                images += batch
        best = max(best, images / (time.perf_counter() - start))
    return best


def main():
    torch.set_num_threads(2)
    if sys.argv[1] == "weights":
        torch.manual_seed(0)
        save_file(timm.create_model(NAME, num_classes=0).state_dict(), sys.argv[2])
        return
    photos, seconds, weights, encoder = sys.argv[2:]
    paths = sorted(pathlib.Path(photos).iterdir())
    model = timm.create_model(NAME, num_classes=0).eval()
    model.load_state_dict(load_file(weights))

    def eager(pixels):
        with torch.inference_mode():
            return model(torch.from_numpy(pixels)).numpy()

    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(encoder, options, providers=["CPUExecutionProvider"])

    def runtime(pixels):
        return session.run(["embedding"], {"pixels": pixels})[0]

    pixels = numpy.stack([prepare(path) for path in paths[:2]])
    difference = float(numpy.abs(eager(pixels) - runtime(pixels)).max())
    assert difference < 1e-4, difference
    rates = {"timm": best_rate(paths, float(seconds), eager), "onnxruntime": best_rate(paths, float(seconds), runtime)}
    print(json.dumps(rates))


main()
