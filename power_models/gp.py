"""A Gaussian process predicts the target's logarithm: smooth between rows, uncertain far from them.

    k(a, b) = signal · exp(-½ Σ ((a_i - b_i) / length_i)²)
            + linear · (1 + a·b / columns) + noise · [a is b]

Source: Rasmussen and Williams 2006, ch. 2 and 5; the regressor is scikit-learn's.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.dataclass_json import Stored
from power_models.encoding import Encoder
from power_models.table import Floats, Ints, Table

#: With more columns than this, all of them share one length scale.
MOST_LENGTHS = 12
#: Logarithms far from every row are cut off here: their exponentials are still finite.
LARGEST_LOG = 700.0
#: Rows that the hyperparameters are tuned on, and rows that predictions are made from, at most.
TUNED_ROWS, MOST_ROWS = 300, 1200
#: Where the hyperparameters are searched, for standardised inputs and outputs.
SIGNAL, LINEAR, NOISE, LENGTH = (1e-3, 100.0), (1e-4, 100.0), (1e-4, 3.0), (0.1, 400.0)


class Hyperparameters(NamedTuple):
    """Variances of standardised outputs, and a length scale for each column of the inputs."""

    signal: float
    linear: float
    noise: float
    lengths: Floats

    def kernel(self) -> Any:
        """The kernel above as scikit-learn's, with the bounds that are searched."""
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

        columns = len(self.lengths)
        dot = DotProduct(np.sqrt(columns), sigma_0_bounds="fixed")
        linear = ConstantKernel(self.linear / columns, np.divide(LINEAR, columns)) * dot
        lengths = self.lengths if columns <= MOST_LENGTHS else self.lengths[0]
        return ConstantKernel(self.signal, SIGNAL) * RBF(lengths, LENGTH) + linear + WhiteKernel(self.noise, NOISE)


@dataclass(frozen=True)
class FittedProcess(Stored):
    """A Gaussian process conditioned on inputs (rows, columns) and outputs (rows,).

    outputs: standardised; mean, stdev: of the outputs as they were given.
    """

    inputs: Floats
    outputs: Floats
    hyper: Hyperparameters
    mean: float
    stdev: float

    @classmethod
    def fit(cls, inputs: Floats, outputs: Floats) -> "FittedProcess":
        """Hyperparameters maximise the marginal likelihood.

        Raises Unsuitable for rows whose covariance is singular.
        """
        mean, stdev = float(outputs.mean()), float(outputs.std()) or 1.0
        scaled = (outputs - mean) / stdev
        tuned, most = _sample(len(outputs), TUNED_ROWS), _sample(len(outputs), MOST_ROWS)
        columns = inputs.shape[1]
        start = Hyperparameters(1.0, 0.4, 0.02, np.full(columns, np.sqrt(2.0 * columns)))
        found = _regressor(start, "fmin_l_bfgs_b", inputs[tuned], scaled[tuned])
        signal, *lengths, linear, noise = np.exp(found.kernel_.theta).tolist()
        hyper = Hyperparameters(signal, linear * columns, noise, np.resize(lengths, columns))
        made = cls(inputs[most], scaled[most], hyper, mean, stdev)
        _ = made.regressor  # raises now what it would raise at the first prediction
        return made

    @cached_property
    def regressor(self) -> Any:
        """Conditioned on the inputs and outputs."""
        return _regressor(self.hyper, None, self.inputs, self.outputs)

    def predict(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Means and standard deviations of outputs, noise included."""
        mean, stdev = self.regressor.predict(inputs, return_std=True)
        return self.mean + self.stdev * mean, self.stdev * stdev


@dataclass(frozen=True)
class GaussianProcess(Regressor):
    """Its intervals are the process's standard deviation times a factor from held-out rows."""

    name: ClassVar[str] = "gp"
    summary: ClassVar[str] = "Gaussian process: smooth, with an interval of its own for each row"

    encoder: Encoder
    process: FittedProcess

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        encoder = Encoder.fit(table, logs=True)
        return cls(encoder, FittedProcess.fit(encoder.matrix(table), target.logs))

    def predict(self, table: Table) -> Estimate:
        mean, stdev = self.process.predict(self.encoder.matrix(table))
        return Estimate(np.exp(np.clip(mean, -LARGEST_LOG, LARGEST_LOG)), stdev)

    def describe(self) -> str:
        hyper = self.process.hyper
        noise = 100 * self.process.stdev * np.sqrt(hyper.noise)
        return f"noise {noise:.2g} %, {len(self.process.outputs)} rows kept, {len(hyper.lengths)} columns"


def _sample(rows: int, most: int) -> Ints:
    """All rows, or as many as allowed, drawn without repetition."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _regressor(hyper: Hyperparameters, optimizer: str | None, inputs: Floats, outputs: Floats) -> Any:
    """scikit-learn's, fitted; without an optimizer the hyperparameters stay as they are."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor

    try:
        with warnings.catch_warnings():  # a hyperparameter at its bound is an answer too
            warnings.simplefilter("ignore", ConvergenceWarning)
            return GaussianProcessRegressor(hyper.kernel(), optimizer=optimizer).fit(inputs, outputs)
    except np.linalg.LinAlgError:
        raise Unsuitable("the covariance of its rows cannot be factorised") from None
