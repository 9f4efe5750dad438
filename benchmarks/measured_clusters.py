"""Training that others measured on four nodes with NCCL over TCP is read and predicted here.

A prediction knows a run's link, the model's bytes and the seconds of computing, which are those of
the run itself or of other runs. NCCL's constants are those of the product or fitted to other runs.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from planner.arrays import Floats
from planner.predict.buckets import buckets
from planner.predict.kinds import collectives
from planner.predict.kinds.collectives import Network
from planner.predict.kinds.ddp import ByteCosts, Work, synchronous

FILE = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "gpu_clusters.csv"

DDP, UNSHAPED = "ddp", "unshaped"
#: Steps before those that were measured, as the counts of exchanges tell (20 on unshaped links).
WARM_UP_STEPS = 10
#: What the unshaped nodes send to all others together: a line of 20 Gbit/s, less the same share as
#: iperf3 lost on the shaped ones. No column tells it: only DDP's unshaped run uses it, and fits it.
LINE_BYTES_PER_S = 20e9 / 8 * 0.9925
#: Layers are not in the data: a model is cut into equal ones of 1 MiB.
LAYER = 1 << 18


class Run(NamedTuple):
    """One row of the data.

    step_s: mean seconds of a step without an exchange, those of computing where each step has one.
    exchange_step_s: those of a step with an exchange, without the first of several: where a run has
        several, their mean step holds half a second more than these account for.
    """

    algorithm: str
    link: str
    local_steps: int
    workers: int
    model_bytes: int
    bytes_per_s: float
    compute_s: float
    optimizer_s: float
    steps: int
    exchanges: int
    step_s: float
    exchange_step_s: float
    mean_step_s: float


class Timed(NamedTuple):
    """Seconds of a run's mean step, of a round of local steps and of an exchange between steps."""

    step: float
    round: float
    exchange: float


class Constants(NamedTuple):
    """What is fitted.

    hop_s: as in ``Transport``. copy_s_per_byte: of an exchange between steps, into one buffer and
        back into the weights. connect_s: once in a run, in the first all-reduce.
    flows: rate of NCCL's sockets for a pair over that of iperf3's one, where no shaper holds both.
    """

    hop_s: float
    copy_s_per_byte: float
    connect_s: float
    flows: float


#: The constant of the product, and what else was fitted: 2 to 20 GB/s, and 0.4 to 0.8 s.
OURS = Constants(collectives.NCCL.hop_s, copy_s_per_byte=0.13e-9, connect_s=0.58, flows=1.4)
#: Where a fit begins, and about how large a constant is. Without unshaped runs flows stays 1.
_BEGIN, _UNIT = Constants(1e-3, 1e-10, 1.0, 1.0), np.array([1e-3, 1e-10, 1.0, 1.0])


def read(file: Path = FILE) -> list[Run]:
    """All runs. Raises FileNotFoundError."""
    with file.open(newline="", encoding="utf-8") as lines:
        return [_run(row) for row in csv.DictReader(lines)]


def ring_limit(run: Run) -> Timed:
    """Computing, and the bytes of a ring at iperf3's rate alone."""
    ring_s = 2 * (run.workers - 1) / run.workers * run.model_bytes / run.bytes_per_s
    step_s = run.compute_s + run.optimizer_s
    return Timed(step_s + run.exchanges / run.steps * ring_s, run.local_steps * step_s + ring_s, ring_s)


def measured(run: Run) -> Timed:
    """What was measured; an exchange is what its step took beyond computing."""
    round_s = (run.local_steps - 1) * run.step_s + run.exchange_step_s
    return Timed(run.mean_step_s, round_s, run.exchange_step_s - run.compute_s - run.optimizer_s)


def predicted(
    run: Run, constants: Constants = OURS, line_bytes_per_s: float = LINE_BYTES_PER_S, trees: bool = True
) -> Timed:
    """What the model predicts of the same."""
    step_s, computing_s = predicted_s(run, constants, line_bytes_per_s, trees), run.compute_s + run.optimizer_s
    if run.algorithm == DDP:
        return Timed(step_s, step_s, step_s - computing_s)
    # The only exchange of a run is the first one. Of several, the first is in the mean step alone.
    connects_s = _connects_s(run, constants)
    exchange_s = ((step_s - computing_s) * run.steps - connects_s) / run.exchanges
    exchange_s += connects_s if run.exchanges == 1 else 0.0
    return Timed(step_s, run.local_steps * computing_s + exchange_s, exchange_s)


def repeated(runs: Sequence[Run]) -> list[tuple[Timed, Run]]:
    """Every run that was repeated, and the mean of its other repetitions."""
    found = []
    for run in runs:
        others = [each for each in runs if each is not run and _case(each) == _case(run)]
        if others:
            found.append((Timed(*np.mean([measured(each) for each in others], axis=0).tolist()), run))
    return found


def computing_as(run: Run, others: Sequence[Run]) -> Run:
    """The run, computing for as long as others do in the median."""
    return run._replace(
        compute_s=float(np.median([each.compute_s + each.optimizer_s for each in others])), optimizer_s=0.0
    )


def predicted_s(
    run: Run, constants: Constants = OURS, line_bytes_per_s: float = LINE_BYTES_PER_S, trees: bool = True
) -> float:
    """Mean seconds of a step by the model."""
    transport = collectives.NCCL._replace(hop_s=constants.hop_s)
    transport = transport if trees else transport._replace(tree_below_bytes=0)
    network = _network(run, constants, line_bytes_per_s)
    if run.algorithm == DDP:
        each, none = np.ones(run.workers), np.zeros((run.workers, run.workers))
        free = ByteCosts(none, none)
        work = Work(run.compute_s * each, run.optimizer_s * each, free, free, 0.0 * each, 0.0 * each)
        return synchronous(work, buckets(_layers(run)), transport, network).step_s
    exchange_s = collectives.all_reduce_s(transport, network, run.model_bytes)
    exchange_s += constants.copy_s_per_byte * run.model_bytes
    exchanges_s = run.exchanges * exchange_s + _connects_s(run, constants)
    return run.compute_s + run.optimizer_s + exchanges_s / run.steps


def relative_errors(runs: Sequence[Run], predict: Callable[[Run], float]) -> Floats:
    """(runs,) predicted over measured seconds of the mean step, less 1."""
    return np.array([predict(run) / run.mean_step_s - 1 for run in runs])


def fitted(runs: Sequence[Run]) -> Constants:
    """Constants of the least relative errors, of which large ones count in proportion only."""

    def residuals(scaled: Floats) -> Floats:
        constants = Constants(*(scaled * _UNIT))
        return np.log1p(relative_errors(runs, lambda run: predicted_s(run, constants)))

    found = least_squares(
        residuals, np.array(_BEGIN) / _UNIT, bounds=([0, 0, 0, 1], [10, 50, 10, 4]), loss="soft_l1", f_scale=0.03
    )
    return Constants(*(float(value) for value in found.x * _UNIT))


def _case(run: Run) -> tuple[str, str, int]:
    return run.algorithm, run.link, run.local_steps


def _connects_s(run: Run, constants: Constants) -> float:
    """Seconds of connecting within the steps that were measured."""
    return constants.connect_s if run.local_steps > WARM_UP_STEPS and run.exchanges else 0.0


def _network(run: Run, constants: Constants, line_bytes_per_s: float) -> Network:
    n, pair, node = run.workers, run.bytes_per_s, run.bytes_per_s
    if run.link == UNSHAPED:  # a shaper holds all sockets together, elsewhere the network holds each
        pair *= constants.flows
        node = max(line_bytes_per_s, pair)
    return Network(np.full((n, n), pair), np.full(n, node), np.full(n, node), np.zeros((n, n)))


def _layers(run: Run) -> list[int]:
    whole, rest = divmod(run.model_bytes // 4, LAYER)
    return [LAYER] * whole + [rest] * (rest > 0)


def _run(row: dict[str, str]) -> Run:
    return Run(
        algorithm=row["algorithm"],
        link=row["link"],
        local_steps=int(row["local_steps"]),
        workers=int(row["workers"]),
        model_bytes=int(row["model_bytes"]),
        bytes_per_s=float(row["iperf_mbit_s"]) * 125_000,
        compute_s=float(row["compute_s"]),
        optimizer_s=float(row["optimizer_s"]),
        steps=int(row["steps"]),
        exchanges=int(row["exchanges"]),
        step_s=float(row["step_without_exchange_s"] or 0) or float(row["compute_s"]) + float(row["optimizer_s"]),
        exchange_step_s=float(row["step_with_exchange_s"]),
        mean_step_s=float(row["mean_step_s"]),
    )
