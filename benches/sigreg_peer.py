"""SIGReg as the paper's listing computes it, in PyTorch on 2 threads: the peer of `lejepa-loss/benches/sigreg.rs`.

    python sigreg_peer.py SAMPLES SLICES KNOTS DIM SECONDS

Cosines and sines of a (samples, slices, knots) tensor in f32, forward and backward. Prints one JSON object.
"""

import json
import sys
import time

import torch

torch.set_num_threads(2)
samples, slices, knots, dim = map(int, sys.argv[1:5])
seconds = float(sys.argv[5])


def memory(name):
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) for line in status if line.startswith(name))


def sigreg(x, step):
    generator = torch.Generator().manual_seed(step)
    directions = torch.randn(dim, slices, generator=generator)
    directions /= directions.norm(dim=0)
    t = torch.linspace(-5, 5, knots)
    target = torch.exp(-0.5 * t**2)
    angles = (x @ directions).unsqueeze(2) * t
    error = (angles.cos().mean(0) - target).square() + angles.sin().mean(0).square()
    return (torch.trapezoid(error * target, t, dim=1) * samples).mean()


x = torch.randn(samples, dim, requires_grad=True)
torch.randn(64, 64, requires_grad=True).square().sum().backward()  # what PyTorch sets up once
before = memory("VmRSS")
best, start, steps = float("inf"), time.perf_counter(), 0
while steps < 3 or time.perf_counter() - start < seconds:
    clock = time.perf_counter()
    x.grad = None
    sigreg(x, steps).backward()
    best = min(best, time.perf_counter() - clock)
    steps += 1
print(json.dumps({"milliseconds": best * 1e3, "megabytes": (memory("VmHWM") - before) / 1e3}))
