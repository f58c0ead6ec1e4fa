"""A LeJEPA training step in PyTorch eager on 2 threads, with timm's encoders: the peer of `lejepa-train/benches/train.rs`.

    python train_peer.py CASE LAYOUT SECONDS

LAYOUT is channels_first or channels_last. One pass of the encoder per view size, the projector over all views, prediction
plus SIGReg (1024 slices, 17 knots), backward, AdamW; f32. Prints one JSON object.
"""

import json
import sys
import time

import timm
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

# Encoder, samples, (global views, side), (local views, side); for convolutional networks all views are global.
CASES = {
    "vit-tiny": (
        lambda: timm.create_model("vit_tiny_patch16_224", num_classes=0, dynamic_img_size=True),
        16,
        (2, 224),
        (6, 96),
    ),
    "vit-small-images": (
        lambda: VisionTransformer(img_size=32, patch_size=4, embed_dim=192, depth=6, num_heads=3, num_classes=0),
        32,
        (8, 32),
        (0, 32),
    ),
    "resnet18": (lambda: timm.create_model("resnet18", num_classes=0), 16, (4, 64), (0, 64)),
    "convnextv2-atto": (lambda: timm.create_model("convnextv2_atto", num_classes=0), 16, (4, 64), (0, 64)),
}
# The first steps of a process pay for memory and threads.
WARM_UP = 2
LAMBDA, SLICES, KNOTS, T_MAX = 0.05, 1024, 17, 5.0
PROJECTOR = (2048, 2048, 64)


def memory(name):
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) for line in status if line.startswith(name))


def projector(inputs):
    layers = []
    for width in PROJECTOR[:-1]:
        layers += [nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, PROJECTOR[-1]))


def sigreg(z, step):
    """z: (views, samples, dim). The integrand is even: only knots at t >= 0 are computed."""
    samples, dim = z.shape[1:]
    directions = torch.randn(dim, SLICES, generator=torch.Generator().manual_seed(step))
    directions /= directions.norm(dim=0)
    t = torch.linspace(0, T_MAX, (KNOTS + 1) // 2)
    target = torch.exp(-0.5 * t**2)
    angles = (z @ directions).unsqueeze(-1) * t  # (views, samples, slices, knots)
    error = (angles.cos().mean(1) - target).square() + angles.sin().mean(1).square()
    return (2 * samples * torch.trapezoid(error * target, t, dim=-1)).mean()


def main():
    case, layout, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    torch.set_num_threads(2)
    torch.manual_seed(0)
    build, samples, *sizes = CASES[case]
    torch.randn(64, 64, requires_grad=True).square().sum().backward()  # what PyTorch sets up once
    before = memory("VmRSS")
    encoder = build().train()
    if layout == "channels_last":
        encoder = encoder.to(memory_format=torch.channels_last)
    head = projector(encoder.num_features)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=5e-4, weight_decay=5e-2)
    pixels = [2 * torch.rand(views * samples, 3, side, side) - 1 for views, side in sizes if views > 0]
    if layout == "channels_last":
        pixels = [images.contiguous(memory_format=torch.channels_last) for images in pixels]
    global_views = sizes[0][0]

    best, start, step = float("inf"), time.perf_counter(), 0
    while step < 2 * WARM_UP or time.perf_counter() - start < seconds:
        if step == WARM_UP:
            best, start, processor = float("inf"), time.perf_counter(), time.process_time()
        clock = time.perf_counter()
        optimizer.zero_grad()
        features = torch.cat([encoder(images) for images in pixels])
        z = head(features).unflatten(0, (-1, samples))  # (views, samples, dim)
        centres = z[:global_views].mean(0)
        loss = (1 - LAMBDA) * (centres - z).square().mean() + LAMBDA * sigreg(z, step)
        loss.backward()
        optimizer.step()
        value = loss.item()
        best = min(best, time.perf_counter() - clock)
        step += 1
    processor = (time.process_time() - processor) / (step - WARM_UP)
    megabytes = (memory("VmHWM") - before) / 1e3
    print(json.dumps({"milliseconds": best * 1e3, "processor": processor * 1e3, "megabytes": megabytes, "loss": value}))


main()
