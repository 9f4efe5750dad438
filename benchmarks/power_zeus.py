"""Watts and times of training runs under power limits, on the Zeus traces of a V100 and a P100.

1. A (dataset, network, batch size) that was never run, whatever its optimizer: power; and divided
into other folds. 2. A power limit that was never set: power. 3. A workload (dataset, network) that
was never run but once: power and time. "one run each batch size": the reference
   is a run of the same optimizer and batch size at another limit, first the greatest limit, then
   every limit in turn. "one run": the one reference is at the middle batch size and the greatest
   limit, for all batch sizes and limits.
4. A device that was never run but once for each workload and batch size: learned on one GPU, held
against the other.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from power_data import files, measured, report, row, validated
from reporting import parser

from power_models.base import Target
from power_models.columns import choose
from power_models.evaluate import cross_validate, folds
from power_models.table import CsvFile, Floats, Ints
from power_models.transfer import Columns, Transfer, tried

POWER, TIME, LIMIT, BATCH = "average_power", "time_per_epoch", "power_limit", "batch_size"
WORKLOAD = ("dataset", "network")
WANTED = {POWER: "<= 4 %", TIME: "<= 6 %"}


def main() -> None:
    options = parser(__doc__).parse_args()
    rows: list[dict[str, Any]] = []
    found = files("zeus_v100.csv", "zeus_p100.csv")
    for name, file in found.items():
        rows += validated(name, file, POWER, (*WORKLOAD, BATCH), "<= 3 %")
        rows += _divided_anew(name, file)
        rows += validated(name, file, POWER, (LIMIT,), "<= 4 %", each_value=True)
        for target, wanted in WANTED.items():
            rows += _new_workload(name, file, target, wanted)
    for (known, seen), (new, unseen) in permutations(found.items(), 2):
        for target in WANTED:
            rows += _new_device(f"{known}, {new}", seen, unseen, target)
    report("Zeus traces, held out", rows, options.json)


def _divided_anew(name: str, file: CsvFile) -> list[dict[str, Any]]:
    """How much the first one hangs on which groups are held out together."""
    table = file.table()
    groups = table.keys((*WORKLOAD, BATCH))
    used, target = (
        table.only(choose(table, POWER, groups, (*WORKLOAD, BATCH)).features),
        Target(POWER, file.positive(POWER)),
    )
    made = []
    for seed in (1, 2, 3):
        held = folds(groups, seed=seed)
        scores = cross_validate(used, target, held, ("saturation",)).held_out["saturation"].scores()
        split = f"the same, division {seed} of {len(held)} folds"
        made.append(row(name, POWER, split, "saturation", "reported") | measured(scores))
    return made


def _new_device(name: str, seen: CsvFile, unseen: CsvFile, target: str) -> list[dict[str, Any]]:
    names = Columns(LIMIT, POWER, (*WORKLOAD, "optimizer", BATCH), WORKLOAD)
    limits = unseen.table().numbers(LIMIT)
    found = _held_against(_learned(seen, target, names, np.arange(seen.table().rows)), unseen, np.arange(len(limits)))
    greatest = found.where(limits[found.reference] == limits.max())
    return [_row(name, target, "device; one run each batch size, at the greatest limit", [greatest], "reported")]


def _new_workload(name: str, file: CsvFile, target: str, wanted: str) -> list[dict[str, Any]]:
    one = (*WORKLOAD, "optimizer")
    table = file.table()
    limits = table.numbers(LIMIT)
    made = []
    near = list(_errors(file, target, Columns(LIMIT, POWER, (*one, BATCH), WORKLOAD)))
    greatest = [found.where(limits[found.reference] == limits.max()) for found in near]
    made.append(_row(name, target, "workload; one run each batch size, at the greatest limit", greatest, wanted))
    made.append(_row(name, target, "workload; one run each batch size, at any limit", near, "reported"))
    far = list(_errors(file, target, Columns(LIMIT, POWER, one, WORKLOAD, (BATCH,))))
    middle = [found.where(_middle(file, one, found.reference)) for found in far]
    made.append(_row(name, target, "workload; one run, middle batch size, greatest limit", middle, "reported"))
    made.append(_row(name, target, "workload; one run, any", far, "reported"))
    return made


class Found:
    """Predictions of one held-out workload: reference and wanted rows, relative errors, and whether inside 90 %."""

    def __init__(self, reference: Ints, errors: Floats, inside: Floats) -> None:
        self.reference, self.errors, self.inside = reference, errors, inside

    def where(self, mask: Any) -> "Found":
        return Found(self.reference[mask], self.errors[mask], self.inside[mask])


def _errors(file: CsvFile, target: str, names: Columns) -> Iterator[Found]:
    """Every pair of runs of each workload, predicted by a model of the other workloads."""
    workloads = file.table().keys(WORKLOAD)
    for workload in np.unique(workloads):
        model = _learned(file, target, names, np.flatnonzero(workloads != workload))
        yield _held_against(model, file, np.flatnonzero(workloads == workload))


def _learned(file: CsvFile, target: str, names: Columns, rows: Ints) -> Transfer:
    table, wanted = file.table().take(rows), Target(target, file.positive(target)[rows])
    return Transfer.fit(table, wanted, names, tried(table, wanted, names))


def _held_against(model: Transfer, file: CsvFile, rows: Ints) -> Found:
    """Every two runs of one job among these rows."""
    table = file.table()
    first, second = (rows[side] for side in model.pairs(table.take(rows)))
    found = model.predict(table.take(first), table.take(second))
    actual = file.positive(model.target)[second]
    inside = (found.low <= actual) & (actual <= found.high)
    return Found(first, np.abs(found.values / actual - 1), inside.astype(np.float64))


def _middle(file: CsvFile, job: tuple[str, ...], rows: Ints) -> Any:
    """Which rows are at the greatest limit and the middle of their job's batch sizes."""
    table = file.table()
    jobs, limits, batches = table.keys(job), table.numbers(LIMIT), table.numbers(BATCH)
    chosen = np.zeros(table.rows, dtype=bool)
    for each in np.unique(jobs):
        sizes = np.unique(batches[jobs == each])
        chosen |= (jobs == each) & (limits == limits.max()) & (batches == sizes[len(sizes) // 2])
    return chosen[rows]


def _row(data: str, target: str, held_out: str, found: list[Found], wanted: str) -> dict[str, Any]:
    errors = np.concatenate([each.errors for each in found])
    means = [each.errors.mean() for each in found if each.errors.size]
    return row(data, target, held_out, "transfer", wanted) | {
        "MAPE %": float(100 * errors.mean()),
        "± folds": float(100 * np.std(means, ddof=1)) if len(means) > 1 else None,
        "in 90 %": float(np.concatenate([each.inside for each in found]).mean()),
    }


if __name__ == "__main__":
    main()
