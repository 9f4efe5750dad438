"""Gaussian process regression (Rasmussen and Williams 2006, ch. 2 and 5) on a matrix.

    k(a, b) = signal · exp(-½ Σ ((a_i - b_i) / length_i)²) + linear · (1 + a·b / columns) + noise · [a is b]

Variances and length scales maximise the marginal likelihood times wide log-normal priors. The outputs are standardised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models.table import Floats, Ints

#: Rows that the variances and lengths are tuned on, and rows that predictions are made from, at most.
TUNED_ROWS, MOST_ROWS = 300, 1200
#: Logarithms of what is expected before any data: variances of signal, linear part and noise; how sure.
EXPECTED = (0.0, -1.0, -4.0)
UNSURE = (2.0, 2.0, 2.0)
BOUNDS = ((-6.0, 5.0), (-9.0, 5.0), (-9.0, 1.0))
LENGTH_BOUNDS = (-2.0, 6.0)


class Hyper(NamedTuple):
    """Variances, and a length scale for each column of the inputs."""

    signal: float
    linear: float
    noise: float
    lengths: Floats


class Posterior(NamedTuple):
    """Mean and standard deviation of an output, noise included."""

    mean: Floats
    stdev: Floats


@dataclass(frozen=True)
class FittedProcess:
    """A Gaussian process conditioned on inputs (rows, columns) and standardised outputs (rows,)."""

    inputs: Floats
    outputs: Floats
    hyper: Hyper
    mean: float
    stdev: float
    factor: Any

    @classmethod
    def fit(cls, inputs: Floats, outputs: Floats, owners: Ints) -> "FittedProcess":
        """owners: columns with the same number share a length scale."""
        mean, stdev = float(outputs.mean()), float(outputs.std()) or 1.0
        scaled = (outputs - mean) / stdev
        some, most = _some(len(outputs), TUNED_ROWS), _some(len(outputs), MOST_ROWS)
        hyper = _tuned(inputs[some], scaled[some], owners)
        return cls.conditioned(inputs[most], scaled[most], hyper, mean, stdev)

    @classmethod
    def conditioned(cls, inputs: Floats, outputs: Floats, hyper: Hyper, mean: float, stdev: float) -> "FittedProcess":
        """With hyperparameters that are known."""
        from scipy.linalg import cho_factor

        covariance = _kernel(inputs, inputs, hyper) + hyper.noise * np.eye(len(inputs))
        return cls(inputs, outputs, hyper, mean, stdev, cho_factor(covariance, lower=True))

    def predict(self, inputs: Floats) -> Posterior:
        from scipy.linalg import cho_solve, solve_triangular

        across = _kernel(inputs, self.inputs, self.hyper)
        own = self.hyper.signal + self.hyper.linear * (1 + (inputs**2).sum(axis=1) / max(1, inputs.shape[1]))
        known = solve_triangular(self.factor[0], across.T, lower=True)
        variance = np.maximum(own - (known**2).sum(axis=0), 0.0) + self.hyper.noise
        mean = across @ cho_solve(self.factor, self.outputs)
        return Posterior(self.mean + self.stdev * mean, self.stdev * np.sqrt(variance))

    def to_json(self) -> dict[str, Any]:
        hyper = {**self.hyper._asdict(), "lengths": self.hyper.lengths.tolist()}
        data = {"inputs": self.inputs.tolist(), "outputs": self.outputs.tolist(), "hyper": hyper}
        return {**data, "columns": self.inputs.shape[1], "mean": self.mean, "stdev": self.stdev}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FittedProcess":
        inputs = np.array(data["inputs"], dtype=np.float64).reshape(-1, data["columns"])
        outputs = np.array(data["outputs"], dtype=np.float64)
        lengths = np.array(data["hyper"]["lengths"], dtype=np.float64)
        hyper = Hyper(**{**data["hyper"], "lengths": lengths})
        return cls.conditioned(inputs, outputs, hyper, data["mean"], data["stdev"])


def _some(rows: int, most: int) -> Ints:
    """All rows, or as many as allowed, drawn without repetition."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _kernel(first: Floats, second: Floats, hyper: Hyper) -> Floats:
    a, b = first / hyper.lengths, second / hyper.lengths
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    near = np.exp(-np.maximum(squares, 0.0) / 2)
    made = hyper.signal * near + hyper.linear * (1 + first @ second.T / max(1, first.shape[1]))
    return np.asarray(made, dtype=np.float64)


def _tuned(inputs: Floats, outputs: Floats, owners: Ints) -> Hyper:
    from scipy.optimize import minimize

    groups = int(owners.max(initial=-1)) + 1
    squares = [_squares(inputs[:, owners == group]) for group in range(groups)]
    gram = 1 + inputs @ inputs.T / max(1, inputs.shape[1])
    expected = np.array([*EXPECTED, *[0.5 * np.log(2 * max(1, groups))] * groups])
    unsure = np.array([*UNSURE, *[1.0] * groups])

    def loss(theta: Floats) -> tuple[float, Floats]:
        value, slope = _likelihood(theta, squares, gram, outputs)
        off = (theta - expected) / unsure
        return value + float(off @ off) / 2, slope + off / unsure

    bounds = [*BOUNDS, *[LENGTH_BOUNDS] * groups]
    found = minimize(loss, expected, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    signal, linear, noise, *lengths = np.exp(found.x)
    return Hyper(float(signal), float(linear), float(noise), np.array(lengths, dtype=np.float64)[owners])


def _likelihood(theta: Floats, squares: list[Floats], gram: Floats, outputs: Floats) -> tuple[float, Floats]:
    """Negative log marginal likelihood and its slope by log variances and log lengths (their eq. 5.8 and 5.9)."""
    from scipy.linalg import cho_factor, cho_solve

    signal, linear, noise = np.exp(theta[:3])
    scaled = [square * np.exp(-2 * log_length) for square, log_length in zip(squares, theta[3:], strict=True)]
    near = signal * np.exp(-sum(scaled, np.zeros_like(gram)) / 2)
    identity = np.eye(len(outputs))
    factor = cho_factor(near + linear * gram + noise * identity, lower=True)
    weights = cho_solve(factor, outputs)
    rest = cho_solve(factor, identity) - np.outer(weights, weights)
    value = outputs @ weights / 2 + np.log(np.diag(factor[0])).sum()
    first = [(rest * near).sum(), linear * (rest * gram).sum(), noise * np.trace(rest)]
    slope = np.array([*first, *((rest * near * each).sum() for each in scaled)]) / 2
    return float(value), slope


def _squares(columns: Floats) -> Floats:
    """(rows, rows): squared distances between rows."""
    lengths = (columns**2).sum(axis=1)
    squares = lengths[:, None] + lengths[None, :] - 2 * columns @ columns.T
    return np.asarray(np.maximum(squares, 0.0), dtype=np.float64)
