"""Grouped cross-validation measures how well models predict groups that they have not seen."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from power_models.base import LEVEL, Estimate, PowerModel, Target, Unsuitable
from power_models.linear import Mean
from power_models.registry import MODELS
from power_models.table import Floats, Ints, Table

#: Folds, where there are as many groups.
FOLDS = 10

#: Called with the activity, its position as text, and the share of it that is done.
OnFold = Callable[[str, str, float | None], None]


class ModelScores(NamedTuple):
    """Errors over all held-out rows, and their standard deviation over folds.

    mape: per cent.
    rmse: in the target's unit.
    coverage: share of held-out rows inside their 90 % interval, which is made without their fold;
        it holds on the average over folds (marginally), not in each.
    coverage_least, coverage_greatest: that share in the worst and in the best fold.
    """

    name: str
    mape: float
    mape_stdev: float
    rmse: float
    rmse_stdev: float
    coverage: float
    coverage_least: float
    coverage_greatest: float


class HeldOut(NamedTuple):
    """Predictions of one kind of model for rows that it was fitted without."""

    name: str
    actual: Floats
    predicted: Floats
    spread: Floats
    fold: Ints

    @property
    def misses(self) -> Floats:
        """|log actual - log predicted| over the spread, of each row."""
        return np.abs(np.log(self.actual / self.predicted)) / self.spread

    def scores(self) -> ModelScores:
        relative = 100 * np.abs(self.predicted / self.actual - 1)
        squares = (self.predicted - self.actual) ** 2
        by_fold = [self.fold == fold for fold in np.unique(self.fold)]
        inside = np.empty(len(self.fold), dtype=bool)
        for here in by_fold:
            inside[here] = self.misses[here] <= width(self.misses[~here])
        covered = [float(inside[rows].mean()) for rows in by_fold]
        return ModelScores(
            name=self.name,
            mape=float(relative.mean()),
            mape_stdev=float(np.std([relative[rows].mean() for rows in by_fold], ddof=1)),
            rmse=math.sqrt(squares.mean()),
            rmse_stdev=float(np.std([math.sqrt(squares[rows].mean()) for rows in by_fold], ddof=1)),
            coverage=float(inside.mean()),
            coverage_least=min(covered),
            coverage_greatest=max(covered),
        )


class Validation(NamedTuple):
    """What each kind predicted, and why some kinds could not be fitted."""

    held_out: dict[str, HeldOut]
    unsuitable: dict[str, str]

    def best(self) -> str:
        """The name of the kind with the least mean absolute percentage error."""
        return min(self.held_out, key=lambda name: self.held_out[name].scores().mape)


def width(misses: Floats) -> float:
    """Half the width, a logarithm, that holds LEVEL of such points (Vovk et al. 2005)."""
    share = min(1.0, math.ceil((len(misses) + 1) * LEVEL) / len(misses))
    return float(np.quantile(misses, share, method="higher"))


def folds(groups: Ints, count: int | None = None, seed: int = 0) -> list[Ints]:
    """The rows of each fold. Groups go, largest first, to the fold with the fewest rows.

    count: as many as there are groups, FOLDS at most, if not given.
    seed: for the order of groups of equal size.
    Raises ValueError for fewer groups than folds.
    """
    sizes = np.bincount(groups)
    number = min(FOLDS, len(sizes)) if count is None else count
    if len(sizes) < max(2, number):
        raise ValueError(f"{len(sizes)} groups cannot be divided into {max(2, number)} folds")
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled, fold = np.zeros(number), np.zeros(len(sizes), dtype=np.intp)
    for group in order:
        fold[group] = int(filled.argmin())
        filled[fold[group]] += sizes[group]
    return [np.flatnonzero(fold[groups] == each) for each in range(number)]


def cross_validate(
    table: Table, target: Target, held: Sequence[Ints], kinds: Sequence[str] = (), on_fold: OnFold | None = None
) -> Validation:
    """Predict each fold by every kind (all, if none is named) fitted on the other folds.

    Raises ValueError where no kind but the mean suits the table.
    """
    parts: dict[str, list[Estimate]] = {name: [] for name in kinds or MODELS}
    unsuitable: dict[str, str] = {}
    for number, rows in enumerate(held):
        if on_fold is not None:
            on_fold("fold", f"{number + 1} of {len(held)}", number / len(held))
        rest = np.setdiff1d(np.arange(table.rows), rows)
        training = Target(target.name, target.values[rest])
        known = table.take(rest)
        for name in list(parts):
            try:
                fitted = PowerModel.fit(MODELS[name], known, training)
            except (Unsuitable, np.linalg.LinAlgError) as error:
                unsuitable[name] = str(error)
                del parts[name]
                continue
            parts[name].append(fitted.guess(table.take(rows)))
    if unsuitable and not parts.keys() - {Mean.name}:
        raise ValueError("; ".join(f"{name}: {reason}" for name, reason in unsuitable.items()))
    order, fold = np.concatenate(held), np.repeat(np.arange(len(held)), [len(rows) for rows in held])
    found: dict[str, HeldOut] = {}
    for name, estimates in parts.items():
        values, spread = (np.concatenate(part) for part in zip(*estimates, strict=True))
        found[name] = HeldOut(name, target.values[order], values, spread, fold)
    return Validation(found, unsuitable)


def final(table: Table, target: Target, held_out: HeldOut, about: Mapping[str, Any] | None = None) -> PowerModel:
    """A model of this kind on all rows. Its interval holds LEVEL of the held-out rows."""
    return PowerModel.fit(MODELS[held_out.name], table, target, width(held_out.misses), about)
