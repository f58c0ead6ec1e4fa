"""Writes small datasets in the official layouts of well-known sets, and MATLAB files, beside this script.

Every JPEG is 8x8 with one grey value of its own, so that a test knows which file it got. What torchvision reads
from the same folders goes to `torchvision.json`: class names and [label, grey value] of every sample of a split.
Needs numpy, scipy, pillow and torchvision; writes the same bytes every time.
"""

import gzip
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat
from torchvision import datasets

HERE = Path(__file__).parent


def folder(name):
    shutil.rmtree(HERE / name, ignore_errors=True)
    return HERE / name


def image(path, greys=itertools.cycle(range(5, 250, 5))):
    """The next grey value; at this quality JPEG keeps it exactly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8), next(greys)).save(path, quality=95)


def lines(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")


def mat(path, variables, do_compression=True):
    """scipy writes the time into the header, which is text: it is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables, do_compression=do_compression)
    content = path.read_bytes()
    path.write_bytes(b"MATLAB 5.0 MAT-file, written by scipy.io.savemat".ljust(116) + content[116:])


def structs(fields, rows):
    """A 1xN array of structs, as the devkit of Stanford cars has it."""
    array = np.zeros((1, len(rows)), dtype=[(field, object) for field in fields])
    for column, row in enumerate(rows):
        array[0, column] = row
    return array


def as_torchvision(splits):
    return {
        split: {
            "classes": data.classes,
            "samples": [[label, int(np.asarray(sample)[0, 0].max())] for sample, label in data],
        }
        for split, data in splits.items()
    }


def dtd():
    root = folder("dtd")
    classes = ["banded", "blotchy", "zigzagged"]
    names = [[f"{name}/{name}_{number:04}.jpg" for number in (2, 5, 8)] for name in classes]
    for name in sum(names, []):
        image(root / "dtd/dtd/images" / name)
    for fold in (1, 2):
        for shift, split in enumerate(["train", "val", "test"]):
            lines(root / f"dtd/dtd/labels/{split}{fold}.txt", [name[(shift + fold - 1) % 3] for name in names])
    splits = {"training": ("train", 1), "validation": ("val", 1), "test": ("test", 1), "fold 2": ("train", 2)}
    return as_torchvision({key: datasets.DTD(root, *split) for key, split in splits.items()})


def flowers102():
    root = folder("flowers102")
    base = root / "flowers-102"
    for number in range(1, 8):
        image(base / f"jpg/image_{number:05}.jpg")
    # The storage of the real files: uint16 numbers, uint8 labels.
    ids = {"trnid": [3, 1], "valid": [2, 4], "tstid": [7, 5, 6]}
    mat(base / "setid.mat", {name: np.array([numbers], np.uint16) for name, numbers in ids.items()})
    mat(base / "imagelabels.mat", {"labels": np.array([[77, 1, 102, 77, 2, 3, 50]], np.uint8)})
    datasets.Flowers102._check_integrity = lambda self: True
    splits = {"training": "train", "validation": "val", "test": "test"}
    return as_torchvision({key: datasets.Flowers102(root, split) for key, split in splits.items()})


def food101():
    root = folder("food101")
    base = root / "food-101"
    lists = {
        "train": ["apple_pie/1005649", "waffles/1000", "waffles/22"],
        "test": ["apple_pie/1011328", "baby_back_ribs/7"],
    }
    classes = ["apple_pie", "baby_back_ribs", "waffles"]
    for split, names in lists.items():
        for name in names:
            image(base / f"images/{name}.jpg")
        lines(base / f"meta/{split}.txt", names)
        by_class = {name: [line for line in names if line.startswith(name + "/")] for name in classes}
        (base / f"meta/{split}.json").write_text(json.dumps(by_class))
    lines(base / "meta/classes.txt", classes)
    return as_torchvision({"training": datasets.Food101(root, "train"), "test": datasets.Food101(root, "test")})


def pets():
    root = folder("pets")
    base = root / "oxford-iiit-pet"
    lists = {
        "trainval": ["Abyssinian_100 1 1 1", "american_bulldog_10 2 2 1", "Bengal_7 3 1 2"],
        "test": ["Abyssinian_2 1 1 1", "american_bulldog_3 2 2 1", "Bengal_9 3 1 2", "Bengal_11 3 1 2"],
    }
    for split, names in lists.items():
        for name in names:
            image(base / f"images/{name.split()[0]}.jpg")
        lines(base / f"annotations/{split}.txt", names)
    splits = {"training": "trainval", "test": "test"}
    return as_torchvision({key: datasets.OxfordIIITPet(root, split) for key, split in splits.items()})


CARS = ["AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Ram C/V Cargo Van Minivan 2012"]


def cars():
    root = folder("cars")
    base = root / "stanford_cars"
    fields = ["bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname"]
    files = {"train": base / "devkit/cars_train_annos.mat", "test": base / "cars_test_annos_withlabels.mat"}
    for split, classes in {"train": [3, 1, 2, 3], "test": [2, 1]}.items():
        rows = []
        for number, label in enumerate(classes, 1):
            image(base / f"cars_{split}" / f"{number:05}.jpg")
            box = [np.uint8(39), np.uint8(116), np.uint16(569), np.uint16(375)]
            rows.append((*box, np.uint8(label), f"{number:05}.jpg"))
        mat(files[split], {"annotations": structs(fields, rows)})
    mat(base / "devkit/cars_meta.mat", {"class_names": np.array([CARS], object)})
    splits = {"training": "train", "test": "test"}
    return as_torchvision({key: datasets.StanfordCars(root, split) for key, split in splits.items()})


def cars_single():
    root = folder("cars_single")
    rows = []
    for number, (label, test) in enumerate([(1, 0), (3, 1), (2, 0)], 1):
        image(root / f"car_ims/{number:06}.jpg")
        rows.append((f"car_ims/{number:06}.jpg", 112.0, 7.0, 853.0, 717.0, np.uint8(label), np.uint8(test)))
    fields = ["relative_im_path", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test"]
    variables = {"annotations": structs(fields, rows), "class_names": np.array([CARS], object)}
    mat(root / "cars_annos.mat", variables, do_compression=False)


def aircraft():
    root = folder("aircraft")
    base = root / "fgvc-aircraft-2013b/data"
    lines(base / "variants.txt", ["707-320", "Boeing 717", "F/A-18"])
    lists = {
        "train": ["1025794 707-320", "0056978 F/A-18"],
        "val": ["1340192 Boeing 717", "0034309 707-320"],
        "test": ["1514522 Boeing 717", "0062765 F/A-18", "0747625 707-320"],
    }
    for split, names in lists.items():
        for name in names:
            image(base / f"images/{name.split()[0]}.jpg")
        lines(base / f"images_variant_{split}.txt", names)
    splits = {"training": "train", "validation": "val", "test": "test"}
    return as_torchvision({key: datasets.FGVCAircraft(root, split) for key, split in splits.items()})


def stl10():
    """Packed, since every image has 27,648 bytes; pixels are 60 image + 20 channel + row + 2 column."""
    root = folder("stl10")
    base = root / "stl10_binary"
    base.mkdir(parents=True)
    row, column, channel = np.ogrid[:96, :96, :3]
    for split, first, count in [("train", 0, 2), ("test", 2, 1), ("unlabeled", 3, 1)]:
        number = np.arange(first, first + count)[:, None, None, None]
        images = (60 * number + 20 * channel + row + 2 * column).astype(np.uint8)
        planes = images.transpose(0, 3, 2, 1)  # image, channel, column, row
        (base / f"{split}_X.bin").write_bytes(planes.tobytes())
        if split != "unlabeled":
            (base / f"{split}_y.bin").write_bytes(bytes([10, 1][:count]))
    names = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]
    lines(base / "class_names.txt", names)
    # torchvision turns what it reads back into the images that were written.
    datasets.STL10._check_integrity = lambda self: True
    sample, label = datasets.STL10(root, "train")[1]
    assert (np.asarray(sample) == (60 + 20 * channel + row + 2 * column).astype(np.uint8)).all() and label == 0
    for path in base.glob("*_X.bin"):
        path.with_suffix(".bin.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def matlab():
    """Everything that the reader of MATLAB files knows, plain and packed."""
    root = folder("mat")
    kinds = [np.float64, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
    variables = {np.dtype(kind).name: np.array([[1, 2, 100]], kind) for kind in kinds}
    variables |= {
        "negative": np.array([[-1, 3]], np.int16),
        "fraction": np.array([[0.5]]),
        "matrix": np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
        "empty": np.zeros((0, 0)),
        "text": "hello",
        "rows": np.array(["ab", "cd"]),
        "names": np.array([["a", "Citroën", "日本"]], object),
        "mixed": np.array([["a", 1.0]], object),
        "structs": structs(["label", "name"], [(np.uint8(5), "x"), (np.int32(70000), "longer text")]),
        "complex": np.array([[1 + 2j]]),
        "deep": "x",
    }
    for _level in range(10):
        cell = np.empty((1, 1), object)
        cell[0, 0] = variables["deep"]
        variables["deep"] = cell
    mat(root / "plain.mat", variables, do_compression=False)
    mat(root / "packed.mat", variables)


if __name__ == "__main__":
    read = {make.__name__: make() for make in [dtd, flowers102, food101, pets, cars, aircraft]}
    for make in [cars_single, stl10, matlab]:
        make()
    (HERE / "torchvision.json").write_text(json.dumps(read) + "\n")
