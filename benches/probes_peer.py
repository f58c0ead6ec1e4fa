"""The peers of `lejepa-probe/benches/probes.rs`: scikit-learn, faiss and PyTorch on 2 threads.

    python probes_peer.py make SAMPLES QUERIES FEATURES      writes features for both sides
    python probes_peer.py sklearn|faiss|torch FEATURES       prints one JSON object

Features are clouds of 10 classes in 384 dimensions whose variances fall like 1 / rank, as those of an encoder do.
"""

import json
import sys
import time

import numpy as np
from safetensors.numpy import load_file, save_file

DIM, CLASSES, K, TEMPERATURE = 384, 10, 20, 0.07


def memory(name):
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) for line in status if line.startswith(name))


def make(samples, queries, path):
    random = np.random.default_rng(0)
    scales = 1 / np.sqrt(1 + np.arange(DIM))
    rotation = np.linalg.qr(random.normal(size=(DIM, DIM)))[0]
    centres = random.normal(size=(CLASSES, DIM)) * scales

    def draw(count):
        labels = random.integers(0, CLASSES, count)
        clouds = centres[labels] * 0.3 + random.normal(size=(count, DIM)) * scales
        return (clouds @ rotation + 0.3).astype(np.float32), labels.astype(np.int64)

    (train, train_labels), (test, test_labels) = draw(samples), draw(queries)
    # A radius that most queries share with some hundreds of samples.
    distances = np.sqrt(((test[:64, None] - train[None, :4096]) ** 2).sum(-1))
    names = ("train", "train_labels", "test", "test_labels", "distance")
    distance = np.array([np.quantile(distances, 0.01)], dtype=np.float64)
    save_file(dict(zip(names, (train, train_labels, test, test_labels, distance))), path)


def logistic(train, labels, test):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(warm_start=True, max_iter=1000, tol=1e-4)
    for c in 10 ** np.linspace(-6, 5, 45):
        model.set_params(C=c).fit(train, labels)
    return model.predict(test)


def votes(similarities, neighbours, labels):
    weights = np.exp(similarities / TEMPERATURE)
    return np.stack([(weights * (labels[neighbours] == c)).sum(1) for c in range(CLASSES)], 1).argmax(1)


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def faiss_knn(train, labels, test):
    import faiss

    faiss.omp_set_num_threads(2)
    index = faiss.IndexFlatIP(DIM)
    index.add(units(train))
    return votes(*index.search(units(test), K), labels)


def torch_knn(train, labels, test):
    import torch

    torch.set_num_threads(2)
    bank = torch.from_numpy(units(train)).T
    found = [(block @ bank).topk(K) for block in torch.from_numpy(units(test)).split(512)]
    similarities, neighbours = (torch.cat(parts).numpy() for parts in zip(*found))
    return votes(similarities, neighbours, labels)


if sys.argv[1] == "make":
    make(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
else:
    file = load_file(sys.argv[2])
    peers = {"sklearn": logistic, "faiss": faiss_knn, "torch": torch_knn}
    # Imports do not count.
    small = {"sklearn": 200, "faiss": 100, "torch": 100}[sys.argv[1]]
    if sys.argv[1] == "sklearn":
        import sklearn.linear_model  # noqa: F401
    else:
        peers[sys.argv[1]](file["train"][:small], file["train_labels"][:small], file["test"][:small])
    before, clock = memory("VmRSS"), time.perf_counter()
    predicted = peers[sys.argv[1]](file["train"], file["train_labels"], file["test"])
    seconds = time.perf_counter() - clock
    accuracy = float((predicted == file["test_labels"]).mean())
    print(json.dumps({"seconds": seconds, "megabytes": (memory("VmHWM") - before) / 1e3, "accuracy": accuracy}))
