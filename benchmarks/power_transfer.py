"""Watts and times of a workload, or of a GPU, that was never run but once, under power limits.

Data of others: training runs of a V100 and a P100 under limits (Zeus); GPU programs of a V100 and a
GTX 1080 Ti at set clocks. The latter are turned into runs under limits: at each limit the greatest
clock, between those measured, whose watts stay below it. Of the 1080 Ti each memory clock is a job
of its own, and one that no limit reaches.

A workload: all runs of a workload are held out but the reference. A GPU: fitted on one file, tested
on another, and the mean over all such pairs. References are at the greatest limit, then at every
limit. "one run": the reference is at the middle batch size, for all batch sizes. Shown beside a
transfer are extra-trees on six logarithms (limits, the reference's watts and target, watts over
limits) and "as before", which says that the wanted run is like the reference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from power_data import files, report, row
from reporting import parser

from power_models.base import Target
from power_models.evaluate import folds
from power_models.ratio import pairs
from power_models.table import CsvFile, Floats, Ints, Table
from power_models.transfer import Columns, Transfer, tried
from power_models.trees import Forest

LIMIT, POWER, TIME, BATCH = "power_limit", "average_power", "time", "batch_size"
GOALS = {POWER: "<= 4 %", TIME: "<= 6 %"}
ZEUS = ("dataset", "network")
#: A GPU keeps its watts a little below its limit.
BELOW = 0.98
FORMS = ("transfer", "extra-trees", "as before")
TREES = {"n_estimators": 100, "min_samples_leaf": 5, "random_state": 0}
#: Pairs that the extra-trees learn from, as many as a transfer.
MOST_PAIRS = 8_000


class Data(NamedTuple):
    """Runs of one GPU, and the columns that make a job."""

    name: str
    table: Table
    columns: Columns


class Errors(NamedTuple):
    """Relative errors of predictions, one a pair of runs.

    form: one of FORMS.
    at_top: whether the reference was at the greatest limit.
    """

    form: str
    reference: Ints
    relative: Floats
    inside: Floats
    at_top: Any


def main() -> None:
    options = parser(__doc__).parse_args()
    data = list(_all_data())
    rows = [made for each in data for target in GOALS for made in _new_workload(each, target)]
    rows += [
        made for each in data for target in GOALS if each.name.startswith("zeus") for made in _one_run(each, target)
    ]
    for target in GOALS:
        across = [each for known, unseen in permutations(data, 2) for each in _new_device(known, unseen, target)]
        rows += across
        rows += _means(across)
    report("One reference run", rows, options.json)


def _all_data() -> Iterator[Data]:
    for name, file in files("zeus_v100.csv", "zeus_p100.csv").items():
        columns = {**file.table().columns, TIME: file.positive("time_per_epoch")}
        yield Data(name, Table(columns), Columns(LIMIT, POWER, (*ZEUS, "optimizer", BATCH), ZEUS))
    for name, file in files("counters_v100.csv").items():
        yield _limited(name, file, ("benchmark",), "core_frequency", POWER, "time", np.arange(60.0, 205, 15))
    for name, file in files("clocks_1080ti.csv").items():
        yield _limited(name, file, ("appName", "memF"), "coreF", "power/W", "time/ms", np.arange(110.0, 260, 10))


def _limited(
    name: str, file: CsvFile, job: Sequence[str], clock: str, power: str, time: str, limits: Floats
) -> Data:  # fmt: skip
    """Runs at set clocks as runs under limits. Watts and times between clocks are interpolated."""
    table, watts, times = file.table(), file.positive(power), file.positive(time)
    jobs = table.keys(job)
    cells: dict[str, list[Any]] = {column: [] for column in (*job, LIMIT, POWER, TIME)}
    for rows in (np.flatnonzero(jobs == each) for each in np.unique(jobs)):
        rows = rows[np.argsort(table.numbers(clock)[rows])]
        rising, falling = np.maximum.accumulate(watts[rows]), np.minimum.accumulate(times[rows])
        for limit in limits[limits * BELOW >= rising[0]]:
            drawn = min(limit * BELOW, rising[-1])
            steps = np.log(rising) + 1e-9 * np.arange(len(rows))
            lasted = float(np.exp(np.interp(np.log(drawn), steps, np.log(falling))))
            for column, value in zip(
                cells, (*(table.columns[c][rows[0]] for c in job), limit, drawn, lasted), strict=True
            ):
                cells[column].append(value)
    made = Table({column: np.array(values) for column, values in cells.items()})
    return Data(f"{name}, limits emulated", made, Columns(LIMIT, POWER, tuple(job), tuple(job[:1])))


def _new_workload(data: Data, target: str) -> Iterator[dict[str, Any]]:
    found = [_errors(data, target, data.columns, rows) for rows in folds(data.table.keys(data.columns.workload))]
    for form in FORMS:
        of_form = [each for fold in found for each in fold if each.form == form]
        yield _row(data.name, target, "workload, greatest limit", [_top(each) for each in of_form], GOALS[target])
        yield _row(data.name, target, "workload, any limit", of_form, GOALS[target])


def _one_run(data: Data, target: str) -> Iterator[dict[str, Any]]:
    columns = data.columns._replace(job=(*ZEUS, "optimizer"), settings=(BATCH,))
    found = [_errors(data, target, columns, rows)[0] for rows in folds(data.table.keys(ZEUS))]
    middle = _middle(data.table, columns.job)
    near = [_where(each, middle[each.reference]) for each in found]
    yield _row(data.name, target, "workload, one run, middle batch size, greatest limit", near, "reported")


def _new_device(known: Data, unseen: Data, target: str) -> Iterator[dict[str, Any]]:
    every = np.arange(known.table.rows)
    model, trees = _fitted(known, target, known.columns, every), _trees(known.table, target, known.columns)
    model = replace(model, columns=unseen.columns)
    for each in _tested(model, trees, unseen, target, np.arange(unseen.table.rows)):
        yield _row(f"{known.name} to {unseen.name}", target, "GPU, greatest limit", [_top(each)], "reported")
        yield _row(f"{known.name} to {unseen.name}", target, "GPU, any limit", [each], "reported")


def _means(across: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The mean over pairs of GPUs, and its spread, by form and reference."""
    for key in dict.fromkeys((each["target"], each["held out"], each["model"]) for each in across):
        target, held_out, form = key
        errors = [each["MAPE %"] for each in across if (each["target"], each["held out"], each["model"]) == key]
        figures = {"MAPE %": float(np.mean(errors)), "± folds": float(np.std(errors, ddof=1))}
        yield row(f"mean of {len(errors)} pairs", target, held_out, form, "reported") | {
            **figures, "in 90 %": None, "by fold": None,
        }  # fmt: skip


def _errors(data: Data, target: str, columns: Columns, rows: Ints) -> list[Errors]:
    """These rows predicted by a transfer of the others."""
    rest = np.setdiff1d(np.arange(data.table.rows), rows)
    trees = _trees(data.table.take(rest), target, columns)
    return _tested(_fitted(data, target, columns, rest), trees, data, target, rows)


def _fitted(data: Data, target: str, columns: Columns, rows: Ints) -> Transfer:
    table = data.table.take(rows)
    measured = Target(target, table.numbers(target))
    return Transfer.fit(table, measured, columns, tried(table, measured, columns))


def _trees(table: Table, target: str, columns: Columns) -> Forest:
    first, second = pairs(table.keys(columns.job), MOST_PAIRS)
    ratios = np.log(table.numbers(target)[second] / table.numbers(target)[first])
    return Forest.fit(_six_logs(table, target, columns, first, second), ratios, TREES)


def _six_logs(table: Table, target: str, columns: Columns, first: Ints, second: Ints) -> Floats:
    limits, watts, known = (np.log(table.numbers(name)) for name in (LIMIT, POWER, target))
    settings = [np.log(table.numbers(name)) for name in columns.settings]
    before, after, drawn = limits[first], limits[second], watts[first]
    ratios = (each[second] - each[first] for each in settings)
    return np.column_stack([before, after, drawn, known[first], drawn - before, drawn - after, *ratios])


def _tested(model: Transfer, trees: Forest, data: Data, target: str, rows: Ints) -> list[Errors]:
    """Every two runs of one job among these rows, by each form."""
    reference, wanted = (rows[side] for side in model.pairs(data.table.take(rows)))
    values, at_top = data.table.numbers(target), data.table.numbers(LIMIT)[reference] == data.table.numbers(LIMIT).max()
    actual, before = values[wanted], values[reference]
    found = model.predict(data.table.take(reference), data.table.take(wanted))
    inside = ((found.low <= actual) & (actual <= found.high)).astype(np.float64)
    seen = trees.mean(_six_logs(data.table, target, model.columns, reference, wanted))
    return [
        Errors(form, reference, np.abs(predicted / actual - 1), inside, at_top)
        for form, predicted in zip(FORMS, (found.values, before * np.exp(seen), before), strict=True)
    ]


def _where(errors: Errors, mask: Any) -> Errors:
    return Errors(errors.form, *(each[mask] for each in errors[1:]))


def _top(errors: Errors) -> Errors:
    return _where(errors, errors.at_top)


def _middle(table: Table, job: tuple[str, ...]) -> Any:
    """The rows at the greatest limit and the middle of their job's batch sizes."""
    jobs, limits, batches = table.keys(job), table.numbers(LIMIT), table.numbers(BATCH)
    chosen = np.zeros(table.rows, dtype=bool)
    for each in np.unique(jobs):
        sizes = np.unique(batches[jobs == each])
        chosen |= (jobs == each) & (limits == limits.max()) & (batches == sizes[len(sizes) // 2])
    return chosen


def _row(data: str, target: str, held_out: str, found: Sequence[Errors], goal: str) -> dict[str, Any]:
    errors = np.concatenate([each.relative for each in found])
    means = [each.relative.mean() for each in found if each.relative.size]
    form = found[0].form
    inside = float(np.concatenate([each.inside for each in found]).mean())
    return row(data, target, held_out, form, goal) | {
        "MAPE %": float(100 * errors.mean()),
        "± folds": float(100 * np.std(means, ddof=1)) if len(means) > 1 else None,
        "in 90 %": inside if form == "transfer" else None,
        "by fold": None,
    }


if __name__ == "__main__":
    main()
