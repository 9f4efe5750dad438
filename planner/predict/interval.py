"""Intervals of predictions: the measured means drawn again, and what recorded runs missed besides.

Each draw multiplies every measured mean of a device or a link by e^(s z), s its relative standard
error and z normal, and predicts again. A mean has the same z wherever it is used, so that what two
clusters have in common cancels between them. The time of a device's step differs from the profile
by ``step`` more, and busy watts that were read by ``watts``. The time of a cluster differs by the
error of its kind of exchange. These few numbers come from recorded runs, most of them of emulated
fleets (benchmarks/interval_fit.py).
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from planner.arrays import Floats
from planner.predict import cycle
from planner.predict.clusters import Candidates
from planner.predict.inputs import Errors, Inputs
from planner.predict.run import Bill, predict
from planner.predict.seen_errors import SeenErrors, seen_errors
from planner.provenance import NAMEPLATE

DRAWS = 32
#: Smaller relative deviations are those of floating point.
ROUNDING = 1e-9


class ModelErrors(NamedTuple):
    """Relative errors, standard deviations each, that no measured mean tells.

    step: of a device's step between its profile and a run; watts: of busy watts that were read.
    kinds: of the time of a cluster, by kind of exchange (``cycle.KINDS``).
    """

    step: float
    watts: float
    kinds: Mapping[str, float]

    def widened(self, seen: SeenErrors) -> "ModelErrors":
        """No less than the root mean square of the errors that an audit saw, by kind."""
        return self._replace(
            step=max(self.step, seen.of_kind(cycle.ALONE)),
            kinds={kind: max(error, seen.of_kind(kind)) for kind, error in self.kinds.items()},
        )


#: Fitted to 109 recorded audits of 44 fleets, almost all emulated (benchmarks/interval_fit.py).
#: None is of DDP or of shares, which have the error of other barriers.
RECORDED = ModelErrors(
    step=0.10,
    watts=0.08,
    kinds={
        cycle.ASYNC_SERVER: 0.09, cycle.BARRIER: 0.14, cycle.DDP: 0.14, cycle.SHARDS: 0.14,
        cycle.GOSSIP: 0.05, cycle.ROUNDS: 0.09,
    },
)  # fmt: skip


def newest(folder: Path) -> ModelErrors:
    """The recorded ones, with the errors that an audit in a folder has seen. Raises RecordError."""
    return RECORDED.widened(seen_errors(folder))


class Spread(NamedTuple):
    """What draws make of the time and the power of C candidates, (DRAWS, C) logarithms each.

    kind: of their exchange; model: (C,) relative error of its model, 0 for devices alone.
    """

    time: Floats
    power: Floats
    kind: str
    model: Floats

    def deviation(self, time: float, power: float) -> Floats:
        """(C,) relative standard deviation of T^time P^power."""
        drawn = time * self.time + power * self.power if power else time * self.time
        deviation = np.hypot(drawn.std(axis=0), time * self.model)
        return np.where(deviation < ROUNDING, 0.0, deviation)

    def apart(self, best: "Spread", time: float, power: float) -> Floats:
        """(C,) relative standard deviation of T^time P^power over that of one best candidate.

        Errors of two kinds of exchange are independent, and those of one kind the same.
        """
        alike = self.kind == best.kind
        model = np.abs(self.model - best.model) if alike else np.hypot(self.model, best.model)
        differ = self._replace(time=self.time - best.time, power=self.power - best.power, model=model)
        return differ.deviation(time, power)


def spread(
    inputs: Inputs, candidates: Candidates, steps: int, bill: Bill | None = None, errors: ModelErrors = RECORDED
) -> Spread:
    """The spread of some candidates."""
    drawn = [predict(each, candidates, steps, bill) for each in _draws(inputs, errors)]
    several = candidates.members(len(inputs.names)).sum(axis=1) > 1
    kind = cycle.kind_of(inputs.strategy, inputs.engine)
    return Spread(
        np.log([each.time_s for each in drawn]),
        np.log([each.power_w for each in drawn]),
        kind,
        np.where(several, errors.kinds[kind], 0.0),
    )


def _draws(inputs: Inputs, errors: ModelErrors) -> list[Inputs]:
    """The inputs with all measured means drawn again, DRAWS times."""
    names, known = inputs.names, inputs.errors
    read = np.array([source.kind != NAMEPLATE for source in inputs.watts.sources])
    timed = [f"{name} {framework}" for name, framework in zip(names, inputs.frameworks, strict=True)]
    gradient = _factors("gradient", timed, np.hypot(known.gradient, errors.step))
    contention = _factors("contention", names, known.contention)
    idle_w = _factors("idle", names, known.idle_w)
    busy_w = _factors("busy", names, np.hypot(known.busy_w, errors.watts * read))
    stream = _factors("stream", names, known.stream)
    ends = [f"{source} {target}" for source in names for target in names]
    link = _factors("link", ends, known.link.ravel()).reshape(DRAWS, len(names), len(names))
    drawn = (gradient, contention, link, idle_w, busy_w, stream)
    return [_scaled(inputs, Errors(*(each[k] for each in drawn))) for k in range(DRAWS)]


def _scaled(inputs: Inputs, by: Errors) -> Inputs:
    """The inputs with each measured mean times the factor at its place.

    A whole link is as much faster as its connections are on average. A batch that follows a stream
    follows its rate.
    """
    devices, streams, batches = inputs.devices, inputs.streams, inputs.batches
    shares, arriving = batches.shares, batches.arriving
    names = ("gradient_s", "image_s", "data_s", "update_s", "cpu_s")
    contention = devices.contention._replace(factor=devices.contention.factor * by.contention)
    times = {name: getattr(devices, name) * by.gradient for name in names}
    drawn_shares = shares and shares._replace(gradient_s=shares.gradient_s * by.gradient[:, None])
    if arriving is not None and streams is not None:
        arriving = arriving * np.where(streams.at_bounds(), 1.0, by.stream)
    others = np.where(np.eye(len(inputs.names)), 0.0, by.link - 1) / max(1, len(inputs.names) - 1)
    return inputs._replace(
        devices=devices._replace(
            contention=contention,
            in_bytes_per_s=devices.in_bytes_per_s * (1 + others.sum(axis=0)),
            out_bytes_per_s=devices.out_bytes_per_s * (1 + others.sum(axis=1)),
            **times,
        ),
        pairs=inputs.pairs._replace(bytes_per_s=inputs.pairs.bytes_per_s * by.link),
        watts=inputs.watts._replace(idle_w=inputs.watts.idle_w * by.idle_w, busy_w=inputs.watts.busy_w * by.busy_w),
        streams=streams and streams._replace(rate=streams.rate * by.stream),
        batches=batches._replace(shares=drawn_shares, arriving=arriving),
    )


def _factors(what: str, keys: "list[str] | tuple[str, ...]", error: Floats) -> Floats:
    """(DRAWS, keys) factors by which means are drawn again; a mean has the same ones everywhere."""
    quantiles = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    normal = [
        np.random.default_rng(zlib.crc32(f"{what} {key}".encode(errors="replace"))).permutation(quantiles)
        for key in keys
    ]
    return np.exp(np.stack(normal, axis=1) * error)
