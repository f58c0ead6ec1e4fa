"""Writes idx/: a training and a test split in the format of MNIST, the test split gzipped.

Run with numpy: python tests/formats/make_idx.py
"""

import gzip
import struct
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "idx"


def idx(values):
    header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.tobytes()


FOLDER.mkdir(exist_ok=True)
for split, count in [("train", 8), ("t10k", 4)]:
    images = (np.arange(count * 5 * 7) * 37 % 256).astype(np.uint8).reshape(count, 5, 7)
    labels = (np.arange(count) % 3).astype(np.uint8)
    for kind, values in [("images-idx3", images), ("labels-idx1", labels)]:
        path = FOLDER / f"{split}-{kind}-ubyte"
        if split == "train":
            path.write_bytes(idx(values))
        else:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(idx(values), mtime=0))
