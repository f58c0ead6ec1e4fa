"""Writes `principal_components.safetensors`: scikit-learn's `PCA` of features in f64.

Needs: numpy, scikit-learn, safetensors. Usage: python make_principal_components.py
`tall` has more samples than dimensions, `wide` fewer. Features are f32 numbers stored as f64. `components` are
scikit-learn's, whose sign rule is ours: the largest entry of each is positive.
"""
import os

import numpy as np
import sklearn
from safetensors.numpy import save_file
from sklearn.decomposition import PCA

generator = np.random.default_rng(0)
tensors = {}
for name, samples, dim in [("tall", 60, 12), ("wide", 10, 24)]:
    mixing = generator.normal(size=(dim, dim)) * np.geomspace(1, 0.1, dim)[:, None]
    features = (generator.normal(size=(samples, dim)) @ mixing + 2).astype(np.float32).astype(np.float64)
    pca = PCA(3, svd_solver="full").fit(features)
    tensors[f"{name}.features"] = features
    tensors[f"{name}.components"] = np.ascontiguousarray(pca.components_)
    tensors[f"{name}.scores"] = np.ascontiguousarray(pca.transform(features))
note = f"PCA(3) of scikit-learn {sklearn.__version__}: features (samples, dim), components (3, dim), scores (samples, 3)"
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "principal_components.safetensors")
save_file(tensors, path, metadata={"note": note})
