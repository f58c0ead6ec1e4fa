"""Writes the fixtures of the readers of arrays: hdf5/, galaxy10/, npy/ and npz/ beside this file.

python make_arrays.py            (numpy 2.4, h5py 3.16)

Every pixel is `pixel(image, row, column, channel)`, which the tests compute as well.
"""

from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent


def images(count, height, width, channels=3, first=0):
    image, row, column, channel = np.ogrid[first : first + count, :height, :width, :channels]
    return (image * 50 + row * 20 + column * 3 + channel * 7).astype(np.uint8)


def folder(name):
    path = HERE / name
    path.mkdir(parents=True, exist_ok=True)
    return path


COLOUR = images(5, 4, 6)
GREY = images(5, 4, 6, 1)
PLANAR = np.ascontiguousarray(COLOUR.transpose(0, 3, 1, 2))
LABELS = np.array([0, 2, 1, 2, 0])


def hdf5():
    here = folder("hdf5")
    with h5py.File(here / "contiguous.h5", "w") as file:
        file["images"] = COLOUR
        file["labels"] = LABELS.astype("<i8")
    with h5py.File(here / "chunked.h5", "w") as file:
        file.create_dataset("image", data=GREY[..., 0], chunks=(2, 3, 4), maxshape=(None, 4, 6))
        file["label"] = LABELS.astype("u1")[:, None]
    with h5py.File(here / "gzip.h5", "w", libver="earliest") as file:
        file.create_dataset("x", data=PLANAR, chunks=(1, 3, 4, 6), compression="gzip", shuffle=True)
        file.create_dataset("y", data=LABELS.astype(">i2"), compression="gzip")
    with h5py.File(here / "unlabelled.h5", "w") as file:
        file["data"] = GREY
    with h5py.File(here / "together.h5", "w") as file:
        flat = np.broadcast_to(np.arange(9, dtype="u1")[:, None, None], (9, 1024, 1024))
        file.create_dataset("images", data=flat, chunks=flat.shape, compression=9)
    with h5py.File(here / "odd.h5", "w") as file:
        file["train/images"] = GREY
        file["train/labels"] = LABELS
        file["float"] = COLOUR.astype("f4")
        file["wide"] = COLOUR.astype("u2")
        file["flat"] = COLOUR.reshape(5, -1)
        file["rgba"] = images(2, 4, 6, 4)
        file.create_dataset("promised", shape=(1 << 40, 4, 6), dtype="u1", chunks=(1, 4, 6))
        file.create_dataset("outside", GREY.shape, "u1", external=[("another_file", 0, GREY.size)])
        space = h5py.h5s.create_simple(GREY.shape)
        virtual = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        virtual.set_obj_track_times(False)
        virtual.set_virtual(space, b"unlabelled.h5", b"data", space)
        h5py.h5d.create(file.id, b"virtual", h5py.h5t.STD_U8LE, space, virtual)
        labels = file.create_group("labels")
        labels["short"] = LABELS[:4]
        labels["several"] = np.zeros((5, 14), "u1")
        labels["negative"] = -LABELS
        labels["enormous"] = np.full(5, np.iinfo("u8").max)
        labels["float"] = LABELS.astype("f8")
        labels["names"] = ["cat", "dog", "cat", "dog", "cat"]
        labels["loop"] = labels


def galaxy10():
    here = folder("galaxy10")
    sets = [("decals", 8, 256, 10), ("sdss", 8, 69, 10), ("small", 20, 5, 10), ("lookalike", 24, 69, 3)]
    for name, count, size, classes in sets:
        with h5py.File(here / f"{name}.h5", "w") as file:
            shape = (1, size, size, 3)
            flat = np.broadcast_to(np.arange(count, dtype="u1")[:, None, None, None], (count, *shape[1:]))
            file.create_dataset("images", data=flat, chunks=shape, compression="gzip")
            file["ans"] = (np.arange(count) % classes).astype("u1")


def npy():
    here = folder("npy/pair")
    np.save(here / "images.npy", COLOUR)
    np.save(here / "labels.npy", LABELS.astype(">i8"))
    here = folder("npy/splits")
    np.save(here / "train_images.npy", GREY[..., 0])
    np.save(here / "train_labels.npy", LABELS.astype("<u2")[:, None])
    np.save(here / "val_images.npy", images(2, 4, 6, 1, first=5))
    np.save(here / "test_images.npy", images(3, 4, 6, 1, first=7))
    np.save(here / "test_labels.npy", np.array([1, 1, 2], "i1"))
    here = folder("npy/keras")
    for split, first in [("train", 0), ("test", 2)]:
        np.save(here / f"x_{split}.npy", images(2, 4, 6, first=first))
        np.save(here / f"y_{split}.npy", LABELS[first : first + 2].astype("i4"))
    here = folder("npy/single")
    np.save(here / "planar.npy", PLANAR)
    np.save(here / "planar-labels.npy", LABELS)
    for version in [(2, 0), (3, 0)]:
        with open(here / f"version{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, COLOUR, version)
    here = folder("npy/refused")
    np.save(here / "fortran.npy", np.asfortranarray(COLOUR))
    np.save(here / "float.npy", COLOUR.astype("f4"))
    np.save(here / "object.npy", np.array([None, "a"], object), allow_pickle=True)
    np.save(here / "records.npy", np.zeros(5, [("a", "u1"), ("b", "u1")]))
    np.save(here / "flat.npy", COLOUR.reshape(5, -1))


def npz():
    here = folder("npz")
    np.savez_compressed(
        here / "medmnist.npz",
        train_images=COLOUR,
        train_labels=LABELS.astype("u1")[:, None],
        val_images=images(2, 4, 6, first=5),
        val_labels=np.array([[1], [1]], "u1"),
        test_images=images(3, 4, 6, first=7),
        test_labels=np.array([[2], [0], [1]], "u1"),
    )
    test = images(2, 4, 6, 1, first=5)[..., 0]
    np.savez(here / "keras.npz", x_train=GREY[..., 0], y_train=LABELS, x_test=test, y_test=LABELS[:2])
    np.savez(here / "positional.npz", PLANAR, LABELS)
    np.savez_compressed(
        here / "named.npz",
        pictures=COLOUR,
        classes=LABELS.astype(">u4"),
        several=np.zeros((5, 14), "u1"),
        float=COLOUR.astype("f4"),
        object=np.array([None, "a"], object),
        fortran=np.asfortranarray(COLOUR),
    )


if __name__ == "__main__":
    hdf5()
    galaxy10()
    npy()
    npz()
