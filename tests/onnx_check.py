"""Encoder files in Python: onnx_check.py FILE...

Every file must pass ONNX's full check with strict shape inference and run in Python's ONNX Runtime at each of its sizes
with finite results of the declared shape. Where a file holds a self-test, its picture goes through the card's
preprocessing in Pillow and must give the stored embedding.
"""
import json
import sys

import numpy
import onnx
import onnxruntime
from PIL import Image

# Both sides compute in f32, but Pillow rounds single pixels of a resized picture to the next of 256 values. With int8
# weights the file says what passes.
TOLERANCE = 1e-3
FILTERS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


def preprocess(picture, description):
    """(height, width, channels) in 8 bits to (1, channels, crop height, crop width)."""
    crop = numpy.array([description["crop_height"], description["crop_width"]])
    size = numpy.array(picture.shape[:2])
    if description["resize"] == "squash":
        resized = crop
    else:
        scale = max(description["resize"]["short_side"] / size.min(), *(crop / size))
        resized = numpy.maximum(numpy.floor(size * scale + 1e-6).astype(int), crop)
    planes = Image.fromarray(picture.squeeze())
    planes = planes.resize(tuple(int(side) for side in resized[::-1]), FILTERS[description["interpolation"]])
    top, left = numpy.round((resized - crop) / 2).astype(int)
    part = numpy.asarray(planes)[top : top + crop[0], left : left + crop[1]].reshape(*crop, picture.shape[2])
    values = (part / 255.0 - description["mean"]) / description["std"]
    return values.transpose(2, 0, 1)[None].astype(numpy.float32)


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)], "standard operators, opset 17"

    metadata = {entry.key: entry.value for entry in model.metadata_props}
    card = json.loads(metadata["lejepa.card"])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    generator = numpy.random.default_rng(0)
    for size in card["sizes"]:
        shape = (2, card["preprocess"]["channels"], size["height"], size["width"])
        results = session.run(None, {"pixels": generator.standard_normal(shape, dtype=numpy.float32)})
        for output, values in zip(session.get_outputs(), results):
            declared = [side if isinstance(side, int) else found for side, found in zip(output.shape, values.shape)]
            assert list(values.shape) == declared, f"{output.name} is declared as {output.shape}: {values.shape}"
            assert numpy.isfinite(values).all(), f"not finite: {output.name}"

    names = ", ".join(output.name for output in session.get_outputs())
    sizes = ", ".join(f"{size['height']}x{size['width']}" for size in card["sizes"])
    said = f"{card['precision']}, {sizes}, {names}"
    if "lejepa.self_test" in metadata:
        test = json.loads(metadata["lejepa.self_test"])
        picture = numpy.frombuffer(bytes.fromhex(test["pixels"]), numpy.uint8)
        picture = picture.reshape(test["height"], test["width"], test["channels"])
        (embedding,) = session.run(["embedding"], {"pixels": preprocess(picture, card["preprocess"])})
        stored = numpy.array(test["embedding"])
        drift = numpy.linalg.norm(embedding[0] - stored) / numpy.linalg.norm(stored)
        tolerance = test["tolerance"] if card["precision"] == "int8" else TOLERANCE
        assert drift <= tolerance, f"the self-test drifts by {drift:.1e}, more than {tolerance:.0e}"
        said += f", self-test drifts by {drift:.1e}"
    print(f"{path}: {said}", file=sys.stderr)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        try:
            check(path)
        except Exception as error:
            sys.exit(f"error: {path}: {error}")
