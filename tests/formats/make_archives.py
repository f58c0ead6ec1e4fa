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


# Images for the sets below


def png(number):
    """A grey image of two rows and three columns, whose value at place p is (40 i + p) mod 256."""
    values = (40 * number + np.arange(6)) % 256
    file = io.BytesIO()
    Image.fromarray(values.astype(np.uint8).reshape(2, 3)).save(file, "png")
    return file.getvalue()


def bmp(number):
    """150 rows of 200 grey columns without compression, with 10 i + row / 10 in every place of a row."""
    rows = 10 * number + np.arange(150) // 10
    file = io.BytesIO()
    Image.fromarray(np.repeat(rows[:, None], 200, axis=1).astype(np.uint8)).convert("RGB").save(file, "bmp")
    return file.getvalue()


# Parquet


def table(images, labels, names=None, image="image", label="label", kind=pa.int64()):
    """As `datasets` writes it: a structure of bytes and path, with the names of the classes in JSON."""
    structures = [None if bytes is None else {"bytes": bytes, "path": None} for bytes in images]
    structure = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {image: pa.array(structures, structure), "note": pa.array(["x"] * len(images))}
    if labels is not None:
        columns[label] = pa.array(labels, kind)
    result = pa.table(columns)
    if names:
        features = {image: {"_type": "Image"}, label: {"names": names, "_type": "ClassLabel"}}
        result = result.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    return result


def parquet(name, content, **options):
    path = HERE / "parquet" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path, **options)


def parquets():
    names = ["cat", "dog", "fox"]
    # The hub's layout, pyarrow's defaults: snappy, dictionary.
    parquet("hub/data/train-00000-of-00002.parquet", table([png(i) for i in range(5)], [0, 1, 2, 0, 1], names))
    parquet("hub/data/train-00001-of-00002.parquet", table([png(i) for i in range(5, 8)], [2, 0, 1], names))
    parquet("hub/data/test-00000-of-00001.parquet", table([png(8), png(9)], [-1, 1], names))

    # One image per page and two row groups, in all the forms that a column can take.
    images, labels = [png(i) for i in range(8)], list(range(8))
    small = {"data_page_size": 1, "write_batch_size": 1, "row_group_size": 5}
    parquet("plain.parquet", table(images, labels), use_dictionary=False, compression="none", **small)
    parquet("zstd.parquet", table(images, labels), compression="zstd", **small)
    parquet("version2.parquet", table(images, labels), data_page_version="2.0", **small)
    parquet("indexed.parquet", table(images, labels), write_page_index=True, **small)
    parquet("checksums.parquet", table(images, labels), write_page_checksum=True, **small)
    parquet("absurd.parquet", table(images[:2], [0, 5_000_000_000]))
    # The dictionary is full after a few images: the other pages are plain.
    parquet("full.parquet", table(images, labels), dictionary_pagesize_limit=200, **small)
    # Pages of several Snappy blocks.
    large = [bmp(number) for number in (1, 2)]
    parquet("large.parquet", table(large, [0, 1]))
    parquet("large-plain.parquet", table(large, [0, 1]), use_dictionary=False)
    parquet("nulls.parquet", table([png(0), None, png(2)], [0, None, 2]))
    parquet("gzip.parquet", table(images, labels), compression="gzip")
    # CIFAR-100 on the hub, and required columns without structure.
    fine = table(images, labels, image="img", label="fine_label", kind=pa.int32())
    parquet("names.parquet", fine)
    flat = pa.schema([pa.field("picture", pa.binary(), nullable=False), pa.field("class", pa.int64(), nullable=False)])
    parquet("flat.parquet", pa.table({"picture": images, "class": labels}, schema=flat))


# WebDataset


def tar(name, files, format=tarfile.GNU_FORMAT):
    path = HERE / "webdataset" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as archive:
        for member, content in files:
            info = tarfile.TarInfo(member)
            if content is None:
                info.type, info.linkname = tarfile.LNKTYPE, files[0][0]
            elif content == "folder":
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    # Tar files are padded to 10 KB; two empty blocks are enough.
    content = path.read_bytes().rstrip(b"\0")
    path.write_bytes(content + b"\0" * (-len(content) % 512 + 1024))


def webdatasets():
    def labelled(numbers):
        for i in numbers:
            yield f"{i:04}.png", png(i)
            yield f"{i:04}.cls", b"%d\n" % (i % 3)

    tar("shards/train-000000.tar", list(labelled([0, 1])))
    tar("shards/train-000001.tar", [("./", "folder"), ("0002.cls", b"2"), ("0002.PNG", png(2))])
    tar("shards/val-000000.tar", [("a/b.c/7.json", b'{"label": 1, "text": "x"}'), ("a/b.c/7.png", png(7))])
    (HERE / "webdataset/shards/classes.txt").write_text("cat\ndog\nfox\n")
    # A link, a sample without an image, hidden files, a second image, a sample without a label.
    files = [("3.png", png(3)), ("3.seg.png", png(4)), ("3.cls", b"4"), ("link.png", None), ("5.txt", b"words")]
    tar("mixed.tar", files + [("._3.png", b"x"), ("README", b"x"), ("6.jpg", png(6))])
    for format, name in [(tarfile.GNU_FORMAT, "gnu"), (tarfile.PAX_FORMAT, "pax")]:
        tar(f"long-{name}.tar", [(f"{'folder/' * 30}{'x' * 120}.png", png(1)), ("é.png", png(2))], format)


if __name__ == "__main__":
    cifar()
    parquets()
    webdatasets()
