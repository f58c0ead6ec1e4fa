"""Writes the photographs that come with scikit-image and scikit-learn as JPEG files of 481x321 pixels.

python make_photos.py FOLDER
"""

import pathlib
import sys

import skimage
import sklearn.datasets
from PIL import Image

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
data = pathlib.Path(skimage.__file__).parent / "data"
photos = [data / name for name in ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")]
images = pathlib.Path(sklearn.datasets.__file__).parent / "images"
photos += [images / name for name in ("china.jpg", "flower.jpg")]
for photo in photos:
    image = Image.open(photo).convert("RGB").resize((481, 321), Image.LANCZOS)
    image.save(folder / f"{photo.stem}.jpg", quality=90)
