"""Both ends of timm_round_trip.sh.

timm_round_trip.py make NAME SIZE FOLDER     random weights, an input and timm's features
timm_round_trip.py compare NAME SIZE FOLDER  the same features from encoder.onnx and from encoder.safetensors
"""
import sys

import numpy
import onnxruntime
import timm
import torch
from safetensors.torch import load_file, save_file

# Both sides compute in f32; relative to the largest feature, if that is above one.
TOLERANCE = 1e-4


def create(name, size):
    options = {"img_size": size} if name.startswith("vit") else {}
    return timm.create_model(name, num_classes=0, **options).eval()


def make(name, size, folder):
    torch.manual_seed(1)
    model = create(name, size)
    # Untrained layers that start as zero, one or the identity would hide a mistake.
    for key, tensor in model.state_dict().items():
        if key.endswith("running_var"):
            tensor.mul_(1 + torch.rand_like(tensor))
        elif tensor.is_floating_point():
            tensor.add_(0.02 * torch.randn_like(tensor))
    pixels = torch.randn(3, 3, size, size)
    with torch.no_grad():
        features = model(pixels)
    save_file({key: tensor.contiguous() for key, tensor in model.state_dict().items()}, f"{folder}/timm.safetensors")
    save_file({"pixels": pixels, "features": features.contiguous()}, f"{folder}/features.safetensors")


def compare(name, size, folder):
    saved = load_file(f"{folder}/features.safetensors")
    pixels, features = saved["pixels"], saved["features"]
    scale = max(1.0, features.abs().max().item())

    session = onnxruntime.InferenceSession(f"{folder}/encoder.onnx")
    (through_onnx,) = session.run(["embedding"], {session.get_inputs()[0].name: pixels.numpy()})
    onnx = numpy.abs(through_onnx - features.numpy()).max() / scale

    model = create(name, size)
    model.load_state_dict(load_file(f"{folder}/encoder.safetensors"), strict=True)
    with torch.no_grad():
        back = (model(pixels) - features).abs().max().item() / scale
    print(f"{name}: ONNX Runtime differs from timm by {onnx:.1e}, timm with our file by {back:.1e}", file=sys.stderr)
    if not (onnx < TOLERANCE and back < TOLERANCE):
        sys.exit(f"error: more than {TOLERANCE:.0e}: {name}")


if __name__ == "__main__":
    _, action, name, size, folder = sys.argv
    {"make": make, "compare": compare}[action](name, int(size), folder)
