"""J and F of masks by numpy and scipy, from the published definition (Perazzi et al., CVPR 2016).

    python segmentation_agreement.py make OUT                        writes masks: blobs of all sizes, at edges too
    python segmentation_agreement.py alter TRUE_MASKS OUT            writes wrong masks, wrong in several ways
    python segmentation_agreement.py check OUT TRUE_MASKS OURS       compares with OURS, those of `mask_scores`

All within 1e-6, or the exit code is 1.

J: pixels of both regions over pixels of either; 1 if both are empty.
F: harmonic mean of precision and recall of contours. A pixel is on the contour if it differs from its right,
lower or lower right neighbour (the last row looks to the right alone, the last column down alone). It is matched
if a pixel of the other contour is no farther than ceil(0.008 * diagonal).
"""

import os
import sys

import numpy as np
from PIL import Image
from scipy.ndimage import binary_dilation, binary_erosion, distance_transform_edt, gaussian_filter, shift

TOLERANCE = 1e-6


def read(path):
    image = Image.open(path)
    values = np.array(image)
    assert values.ndim == 2, path
    if image.mode in ("L", "1"):
        values = np.where(values == 255, 1, values)
    return values


def make(out):
    """A frame of each kind for every way in which masks are altered, and one more round with other blobs."""
    os.makedirs(out, exist_ok=True)
    random = np.random.default_rng(1)
    for number in range(18):
        rows, columns = 120, 213
        noise = gaussian_filter(random.standard_normal((rows, columns)), 3 + number)
        mask = noise > np.quantile(noise, random.uniform(0.5, 0.95))
        Image.fromarray(mask.astype(np.uint8) * 255).save(os.path.join(out, f"{number:05}.png"))


def alter(true_masks, out):
    """Every frame in another way: shifted, grown, shrunk, noisy, a box, nothing, everything, the frame before."""
    os.makedirs(out, exist_ok=True)
    random = np.random.default_rng(0)
    names = sorted(os.listdir(true_masks))
    for number, name in enumerate(names):
        truth = read(os.path.join(true_masks, name)) > 0
        rows, columns = truth.shape
        box = np.zeros_like(truth)
        box[rows // 4 : rows * 3 // 4, columns // 4 : columns * 3 // 4] = True
        noise = random.random(truth.shape) < 0.01
        ways = [
            lambda: shift(truth, (5, -9), order=0),
            lambda: binary_dilation(truth, iterations=6),
            lambda: binary_erosion(truth, iterations=4),
            lambda: truth ^ noise,
            lambda: box,
            lambda: np.zeros_like(truth),
            lambda: np.ones_like(truth),
            lambda: read(os.path.join(true_masks, names[number - 1])) > 0,
            lambda: truth,
        ]
        mask = ways[number % len(ways)]()
        Image.fromarray(mask.astype(np.uint8) * 255).save(os.path.join(out, name))


def region(mask, truth):
    either = np.count_nonzero(mask | truth)
    return np.count_nonzero(mask & truth) / either if either else 1.0


def contour(mask):
    padded = np.pad(mask, ((0, 1), (0, 1)), mode="edge")
    right, below, across = padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    found = (mask != right) | (mask != below)
    # Beyond the edge there is no lower right neighbour.
    found[:-1, :-1] |= (mask != across)[:-1, :-1]
    return found


def near(pixels, reach):
    """Everything with a pixel of the contour in a disk around it."""
    return distance_transform_edt(~pixels) <= reach if pixels.any() else np.zeros_like(pixels)


def contours(mask, truth):
    reach = np.ceil(0.008 * np.hypot(*mask.shape))
    ours, theirs = contour(mask), contour(truth)
    if not ours.any() or not theirs.any():
        return float(ours.any() == theirs.any())
    precision = np.mean(near(theirs, reach)[ours])
    recall = np.mean(near(ours, reach)[theirs])
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def check(masks, true_masks, ours):
    worst, count = np.zeros(2), 0
    with open(ours) as file:
        for line in file:
            name, label, *scores = line.split()
            mask = read(os.path.join(masks, name)) == int(label)
            truth = read(os.path.join(true_masks, name)) == int(label)
            expected = np.array([region(mask, truth), contours(mask, truth)])
            worst = np.maximum(worst, np.abs(expected - np.array(scores, dtype=float)))
            count += 1
    print(f"{count} masks: J differs by at most {worst[0]:.1e}, F by {worst[1]:.1e} (allowed: {TOLERANCE:.0e})")
    return int(count == 0 or worst.max() > TOLERANCE)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    sys.exit({"make": make, "alter": alter, "check": check}[what](*arguments))
