"""Writes the fixtures of the CIFAR, Parquet and WebDataset readers, each with the tool that people use.

    python tests/formats/make_archives.py

Needs numpy, pyarrow and pillow. Every run writes the same bytes, apart from what a newer version of a tool
changes.
"""

import io
import json
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

HERE = Path(__file__).parent


def write(path, content):
    path = HERE / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# CIFAR


def planes(first, count):
    """Images whose value at channel c, place p is (50 i + 100 c + p) mod 251."""
    image, channel, place = np.ogrid[first : first + count, :3, :1024]
    return ((50 * image + 100 * channel + place) % 251).astype(np.uint8).reshape(count, 3072)


def python2_pickle(value):
    """What Python 2's cPickle writes with protocol 2, as the official archives hold: strings without
    encoding (U, T), no framing, `numpy.core`, and numpy's `_reconstruct` with its state set by BUILD."""
    memo = 0

    def put():
        nonlocal memo
        memo += 1
        return b"q" + bytes([memo]) if memo < 256 else b"r" + struct.pack("<I", memo)

    def string(text):
        short = len(text) < 256
        return (b"U" + bytes([len(text)]) if short else b"T" + struct.pack("<i", len(text))) + text + put()

    def number(value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        return b"M" + struct.pack("<H", value) if 0 <= value < 65536 else b"J" + struct.pack("<i", value)

    def dump(value):
        if isinstance(value, str):
            return string(value.encode())
        if isinstance(value, int):
            return number(value)
        if isinstance(value, list):
            return b"]" + put() + b"(" + b"".join(map(dump, value)) + b"e"
        if isinstance(value, dict):
            items = b"".join(dump(key) + dump(item) for key, item in value.items())
            return b"}" + put() + b"(" + items + b"u"
        if isinstance(value, np.ndarray):
            head = b"cnumpy.core.multiarray\n_reconstruct\n" + put() + b"cnumpy\nndarray\n" + put()
            head += number(0) + b"\x85" + put() + string(b"b") + b"\x87" + put() + b"R" + put()
            shape = b"".join(map(number, value.shape)) + b"\x86" + put()
            kind = b"cnumpy\ndtype\n" + put() + string(b"u1") + number(0) + number(1) + b"\x87" + put() + b"R" + put()
            kind += b"(" + number(3) + string(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"t" + put() + b"b"
            state = b"(" + number(1) + shape + kind + b"\x89" + string(value.tobytes()) + b"t" + put()
            return head + state + b"b"
        raise TypeError(type(value))

    return b"\x80\x02" + dump(value) + b"."


def cifar():
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    folder = "cifar/cifar-10-batches-py"
    for batch in (1, 2):
        content = {
            "batch_label": f"training batch {batch} of 5",
            "labels": [batch, 9],
            "data": planes(2 * batch - 2, 2),
            "filenames": ["a.png", "b.png"],
        }
        write(f"{folder}/data_batch_{batch}", python2_pickle(content))
    write(f"{folder}/test_batch", python2_pickle({"labels": [6], "data": planes(7, 1)}))
    meta = {"num_cases_per_batch": 10000, "label_names": names, "num_vis": 3072}
    write(f"{folder}/batches.meta", python2_pickle(meta))

    # Rewritten with Python 3: bytes as keys, or text.
    for protocol in (2, 3, 4, 5):
        content = {b"labels": [protocol], b"data": planes(protocol, 1), b"weight": 0.5}
        write(f"cifar/python3/data_batch_{protocol}", pickle.dumps(content, protocol))
    write("cifar/python3/batches.meta", pickle.dumps({"label_names": names}, 4))

    folder = "cifar/cifar-100-python"
    content = {"fine_labels": [99, 0], "coarse_labels": [1, 2], "data": planes(0, 2)}
    write(f"{folder}/train", python2_pickle(content))
    write(f"{folder}/meta", python2_pickle({"fine_label_names": [f"class {number}" for number in range(100)]}))


if __name__ == "__main__":
    cifar()
