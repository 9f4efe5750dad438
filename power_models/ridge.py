"""Regularised linear regression: weights are kept small, so that counters that move together share them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from power_models.base import Target
from power_models.linear import Linear
from power_models.table import Floats

STRENGTHS = tuple(np.logspace(-3, 3, 13))


@dataclass(frozen=True)
class Ridge(Linear):
    """Least squares of relative errors with a penalty on weights; its strength by leaving one row out."""

    name: ClassVar[str] = "ridge"
    summary: ClassVar[str] = "linear with small weights (L2), relative errors"

    @classmethod
    def solver(cls, matrix: Floats, target: Target) -> Any:
        from sklearn.linear_model import RidgeCV

        if target.log:
            return RidgeCV(STRENGTHS).fit(matrix, target.logs)
        relative = (target.values.mean() / target.values) ** 2
        return RidgeCV(STRENGTHS).fit(matrix, target.values, sample_weight=relative)
