"""Do the probes agree with scikit-learn and PyTorch on the features of real images?

    python probe_agreement.py split FEATURES.safetensors OUT    splits what `lejepa embed` wrote, by its .csv
    python probe_agreement.py check OUT OURS                    compares accuracies with OURS, those of `probe OUT`

Every pair within 0.2 points, or the exit code is 1.
"""

import csv
import sys

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import RadiusNeighborsClassifier

TOLERANCE = 0.002


def split(features, out):
    values = load_file(features)["features"]
    with open(features.removesuffix(".safetensors") + ".csv") as file:
        rows = list(csv.DictReader(file))
    labels = np.array([int(row["label"]) for row in rows])
    test = np.random.default_rng(0).permutation(len(rows)) < len(rows) // 4
    if len({row.get("split") for row in rows}) > 1:
        test = np.array([row["split"] != "training" for row in rows])
    parts = {"train": values[~test], "train_labels": labels[~test], "test": values[test], "test_labels": labels[test]}
    save_file({name: np.ascontiguousarray(part) for name, part in parts.items()}, out)


def dino_knn(train, labels, test, k, classes):
    train, test = (torch.nn.functional.normalize(torch.from_numpy(part), dim=1) for part in (train, test))
    similarity, neighbours = (test @ train.T).topk(k)
    votes = torch.zeros(len(test), classes)
    votes.scatter_add_(1, torch.from_numpy(labels)[neighbours], (similarity / 0.07).exp())
    return votes.argmax(1).numpy()


def radius_knn(train, labels, test, radius):
    # A query without neighbours takes its nearest sample's label.
    nearest = torch.cdist(torch.from_numpy(test), torch.from_numpy(train)).argmin(1).numpy()
    model = RadiusNeighborsClassifier(radius, outlier_label=-1).fit(train, labels)
    predicted = model.predict(test)
    return np.where(predicted == -1, labels[nearest], predicted)


def kernel(train, labels, test, bandwidth, classes):
    squares = torch.cdist(torch.from_numpy(test).double(), torch.from_numpy(train).double()).square().numpy()
    weights = np.exp(-(squares - squares.min(1, keepdims=True)) / (2 * bandwidth**2))
    return (weights @ np.eye(classes)[labels]).argmax(1)


def linear(train, labels, test, classes):
    """One row of predictions for each of several orders of the batches, which alone move it by 0.2 points."""
    return np.stack([fit_linear(train, labels, test, classes, seed) for seed in range(5)])


def fit_linear(train, labels, test, classes, seed):
    torch.manual_seed(seed)
    train, labels, test = torch.from_numpy(train), torch.from_numpy(labels), torch.from_numpy(test)
    dim, batch, epochs, warmup = train.shape[1], 256, 50, 5
    layer = torch.nn.Linear(dim, classes)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    model = torch.nn.Sequential(torch.nn.LayerNorm(dim, eps=1e-6), layer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-6)
    steps = len(train) // batch
    rise = torch.optim.lr_scheduler.LinearLR(optimiser, 1 / (warmup * steps), total_iters=warmup * steps - 1)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, (epochs - warmup) * steps)
    rate = torch.optim.lr_scheduler.SequentialLR(optimiser, [rise, fall], [warmup * steps])
    for _ in range(epochs):
        order = torch.randperm(len(train))
        for images in order[: steps * batch].split(batch):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(train[images]), labels[images]).backward()
            optimiser.step()
            rate.step()
    return model(test).argmax(1).numpy()


def check(path, ours):
    file = load_file(path)
    train, labels, test, expected = (file[name] for name in ("train", "train_labels", "test", "test_labels"))
    classes = int(max(labels.max(), expected.max())) + 1
    unit = np.sqrt(2 * train.astype(np.float64).var(0).sum())
    double = train.astype(np.float64)

    def peer(name):
        probe, _, setting = name.partition("_")
        match probe:
            case "knn":
                return dino_knn(train, labels, test, int(setting), classes)
            case "radius":
                return radius_knn(train, labels, test, float(setting) * unit)
            case "kernel":
                return kernel(train, labels, test, float(setting) * unit, classes)
            case "ridge":
                return Ridge(float(setting)).fit(double, np.eye(classes)[labels]).predict(test).argmax(1)
            case "logistic":
                return LogisticRegression(C=float(setting), max_iter=5000, tol=1e-6).fit(double, labels).predict(test)
            case "linear":
                return linear(train, labels, test, classes)

    print(f"{len(train)} and {len(test)} images, {train.shape[1]} dimensions")
    worst = 0
    with open(ours) as lines:
        for name, accuracy in (line.split() for line in lines):
            theirs = float((peer(name) == expected).mean())
            worst = max(worst, abs(theirs - float(accuracy)))
            print(f"{name:14} {100 * float(accuracy):7.2f} % {100 * theirs:7.2f} %", flush=True)
    print(f"largest difference: {100 * worst:.2f} points")
    return worst <= TOLERANCE


if sys.argv[1] == "split":
    split(*sys.argv[2:])
elif not check(*sys.argv[2:]):
    sys.exit("the probes do not agree")
