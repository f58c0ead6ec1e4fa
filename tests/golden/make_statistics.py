"""Writes `statistics.safetensors`: values and gradients of the one-dimensional statistics.

Needs: torch, numpy, scipy, safetensors. Usage: python make_statistics.py
Everything is computed in f64, gradients by autograd; scipy is asked where it has the statistic.
"""
import math
import os

import numpy as np
import scipy.special
import scipy.stats
import torch
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def middles(n):
    return (2 * torch.arange(1, n + 1) - 1) / (2 * n)


def cramer_von_mises(x):
    n = len(x)
    return 1 / (12 * n) + (middles(n) - torch.special.ndtr(x.sort()[0])).square().sum()


def watson(x):
    return cramer_von_mises(x) - len(x) * (torch.special.ndtr(x).mean() - 0.5) ** 2


class LogCdf(torch.autograd.Function):
    """torch's own derivative of log_ndtr has eight digits at -1e4: it takes exp of a difference of 5e7."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.special.log_ndtr(x)

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream * math.sqrt(2 / math.pi) / torch.special.erfcx(-x / math.sqrt(2))


def anderson_darling(x):
    n, s, log_cdf = len(x), x.sort()[0], LogCdf.apply
    return -n - (2 * middles(n) * (log_cdf(s) + log_cdf(-s.flip(0)))).sum()


def jarque_bera(x):
    d = x - x.mean()
    variance = d.square().mean()
    skewness, kurtosis = (d**3).mean() / variance**1.5, (d**4).mean() / variance**2
    return len(x) / 6 * (skewness**2 + ((kurtosis - 3) / 2) ** 2)


def extended_jarque_bera(x):
    n, variance = len(x), x.var(unbiased=True)
    return n * x.mean() ** 2 / variance + (n - 1) * (variance - 1) ** 2 / 2 + jarque_bera(x)


def vicreg_limit(x):
    return x.mean() ** 2 + (x.std(unbiased=True) - 1) ** 2


def moments(weights):
    def statistic(x):
        normal = [0 if k % 2 else float(scipy.special.factorial2(k - 1)) for k in range(1, len(weights) + 1)]
        return sum(c * ((x ** (k + 1)).mean() - m) ** 2 for k, (c, m) in enumerate(zip(weights, normal)))

    return statistic


def shapiro_wilk(alpha, covariance):
    def statistic(x):
        n, d = len(x), (x - x.mean()).sort()[0]
        ranks = np.arange(1, n + 1)
        m = scipy.special.ndtri((ranks - alpha) / (n + 1 - 2 * alpha))
        if covariance == "asymptotic":
            # The paper's V^-1 without its factor, which the norm takes away.
            f = np.exp(-m * m / 2)
            inverse = np.diag(2 * f * f) - np.diag(f[1:] * f[:-1], 1) - np.diag(f[1:] * f[:-1], -1)
            m = inverse @ m
        a = torch.tensor(m / np.linalg.norm(m))
        return 1 - torch.dot(a, d) ** 2 / d.square().sum()

    return statistic


statistics = {
    "cramer-von-mises": cramer_von_mises,
    "watson": watson,
    "anderson-darling": anderson_darling,
    "jarque-bera": jarque_bera,
    "extended-jarque-bera": extended_jarque_bera,
    "vicreg-limit": vicreg_limit,
    "moments-1": moments([1.0]),
    "moments-6": moments([1 / math.factorial(k) for k in range(1, 7)]),
    "moments-weighted": moments([1.0, 0.5, 0.25, 2.0]),
}
for order, alpha in {"weisberg-bingham": 3 / 8, "elfving": math.pi / 8, "blom": 0.0}.items():
    for covariance in ["identity", "asymptotic"]:
        statistics[f"shapiro-wilk-{order}-{covariance}"] = shapiro_wilk(alpha, covariance)

samples = {
    "two": torch.tensor([0.3, -1.2]),
    "three": torch.tensor([0.8, -0.1, 2.0]),
    "normal": torch.randn(64),
    "shifted": torch.randn(101) * 0.5 + 1.5,
    "wide": torch.randn(100) * 4,
    "bimodal": torch.cat([torch.randn(25) * 0.3 - 1, torch.randn(25) * 0.3 + 1]),
    "far": torch.randn(33) * 30,
    # Both tails of the normal far below the least f64.
    "heavy": torch.cat([torch.randn(20), torch.tensor([1e4, -1e4, -3e3, 200.0, -45.0])]),
    "one-sided": torch.rand(15) * 9e3 + 1e3,
}

out = {}
for case, x in samples.items():
    out[f"{case}.samples"] = x
    for name, statistic in statistics.items():
        x = x.detach().clone().requires_grad_()
        value = statistic(x)
        value.backward()
        assert value.isfinite() and x.grad.isfinite().all(), (case, name)
        out[f"{case}.{name}.value"] = value.detach().reshape(1)
        out[f"{case}.{name}.gradient"] = x.grad
    numbers = x.detach().numpy()
    checks = {
        "cramer-von-mises": scipy.stats.cramervonmises(numbers, "norm").statistic,
        "jarque-bera": scipy.stats.jarque_bera(numbers).statistic,
    }
    for name, expected in checks.items():
        value = out[f"{case}.{name}.value"].item()
        assert abs(value - expected) < 1e-9 * max(1, abs(expected)), (case, name, value, expected)
    # scipy has no Shapiro-Francia; W is the squared correlation of its probability plot.
    places = scipy.special.ndtri((np.arange(1, len(x) + 1) - 0.375) / (len(x) + 0.25))
    w = scipy.stats.pearsonr(places, np.sort(numbers)).statistic ** 2
    assert abs(1 - w - out[f"{case}.shapiro-wilk-weisberg-bingham-identity.value"].item()) < 1e-9, case

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "statistics.safetensors")
note = "per case: samples, and value and gradient of each statistic; all against the standard normal"
save_file({name: tensor.contiguous() for name, tensor in out.items()}, path, metadata={"note": note})
print(len(samples), "cases of", len(statistics), "statistics")
