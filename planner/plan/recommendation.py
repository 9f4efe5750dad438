"""A recommendation holds all predicted clusters of a profile in the order of a metric."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import OWN
from backends.training.run_settings import RunSettings
from planner.errors import PlanError
from planner.plan.file import PlannedStream, PlannedWorker
from planner.plan.planned_workers import batches_of, planned_workers, streams_of
from planner.plan.rank import Ranking
from planner.plan.standing import Contender, Part, Standing, standings
from planner.predict import cycle
from planner.predict.clusters import ClusterConfig
from planner.predict.inputs import Inputs
from planner.predict.kinds.cycles import BOTTLENECKS, COMPUTE
from planner.predict.run import Prediction
from planner.predict.training import Training
from planner.provenance import Provenance

#: The part of ``compute`` that a gradient waits for its batch to be read.
DATA = "data"
#: What waits for samples that arrive in streams add to a cycle.
STREAM = "stream"


class Row(NamedTuple):
    """One cluster of a ranking; fields that a ``Plan`` also has mean the same there.

    power_sources: where each member's watts come from; provenance: all of these joined.
    batches: of the members that share a global batch; empty where all have that of ``config``.
    engine: what moves the gradients; the planner's own for a device alone, which sends none.
    streams: of the members' samples; empty where all are there from the start.
    """

    config: ClusterConfig
    prediction: Prediction
    standing: Standing
    network_bytes: float
    bottleneck: str
    shares: dict[str, float]
    besides_w: float
    power_sources: dict[str, Provenance]
    provenance: Provenance
    batches: dict[str, int]
    engine: str
    streams: dict[str, PlannedStream]


@dataclass(frozen=True)
class Recommendation:
    """All candidates, predicted and ranked; ``profiling_s`` is what profiling took.

    weights: of the metrics by name.
    parts: the clusters of each engine, which the ranking counts one part after the other.
    notes: what may change what the operator does, the most important first.
    details: how the figures came about.
    engine: its text as it was asked for.
    """

    metric: str
    weights: Mapping[str, float]
    parts: tuple[Part, ...]
    ranking: Ranking
    notes: tuple[str, ...]
    profiling_s: float
    details: tuple[str, ...] = ()
    engine: str = OWN
    _standings: dict[int, Standing] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return int(self.ranking.order.size)

    @property
    def inputs(self) -> Inputs:
        """Those of the first engine's clusters."""
        return self.parts[0].inputs

    @property
    def training(self) -> Training:
        """That of the first engine's clusters."""
        return self.parts[0].training

    @property
    def settings(self) -> RunSettings:
        """Those of the first engine's runs, as they were asked for."""
        return self.training.settings

    @property
    def frameworks(self) -> dict[str, str]:
        """By device; that of the first engine where another computes with another framework."""
        found: dict[str, str] = {}
        for part in self.parts:
            for name, framework in zip(part.inputs.names, part.inputs.frameworks, strict=True):
                found.setdefault(name, framework)
        return found

    @property
    def stand_ins(self) -> set[str]:
        """The devices that are emulated."""
        sources = [
            each for part in self.parts for each in zip(part.inputs.names, part.inputs.watts.sources, strict=True)
        ]
        return {name for name, source in sources if source.emulated}

    @property
    def several(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """(C,) whether a candidate has several members."""
        return np.concatenate([np.isfinite(part.predictions.cycle_s).sum(axis=1) > 1 for part in self.parts])

    def place_of_least(self, metric: str) -> int:
        """The place of the cluster of least ``time`` or ``energy``; 1 where watts are unknown."""
        found = [part.predictions for part in self.parts]
        values = np.concatenate([each.time_s * (each.power_w if metric == "energy" else 1.0) for each in found])
        return int(np.argmin(np.nan_to_num(values[self.ranking.order], nan=math.inf))) + 1

    def rows(self, count: int) -> list[Row]:
        """The first clusters of the ranking, at most so many."""
        places = range(1, min(count, len(self)) + 1)
        self._stand(places)
        return [self.row(place) for place in places]

    def config(self, place: int) -> ClusterConfig:
        """Server, workers and batch of the cluster at a place."""
        part, index = self._cluster(place)
        names = part.inputs.names
        workers = tuple(names[i] for i in self._members(part, index))
        return ClusterConfig(names[part.predictions.candidates.hosts[index]], workers, _batch(part, index))

    def prediction(self, place: int) -> Prediction:
        """Time and power of the cluster at a place."""
        part, index = self._cluster(place)
        return part.predictions.one(index)

    def row(self, place: int) -> Row:
        """The cluster at a place of the ranking, 1 the best. PlanError: there is no such place."""
        part, index = self._cluster(place)
        found, config = part.predictions, self.config(place)
        known = dict(zip(part.inputs.names, part.inputs.watts.sources, strict=True))
        sources = {name: known[name] for name in config.workers}
        shares = _shares(part, index)
        return Row(
            config=config,
            prediction=found.one(index),
            standing=self.standing(place),
            network_bytes=float(found.network_bytes[index]),
            bottleneck=max(shares, key=lambda each: shares[each]),
            shares=shares,
            besides_w=float(found.besides_w[index]),
            power_sources=sources,
            provenance=Provenance.joined(sources.values()),
            batches=batches_of(part, index),
            engine=part.inputs.engine.text if len(config.workers) > 1 else OWN,
            streams=streams_of(part, index),
        )

    def standing(self, place: int) -> Standing:
        """Score, interval and tie of the cluster at a place."""
        self._stand([place])
        return self._standings[place]

    def _stand(self, places: Sequence[int]) -> None:
        """Work out the standings at these places that are not known yet."""
        missing = [place for place in places if place not in self._standings]
        if missing:
            scores = self.ranking.score[self.ranking.order]
            rows = {place: Contender(*self._cluster(place), float(scores[place - 1])) for place in missing}
            best = Contender(*self._cluster(1), float(scores[0]))
            self._standings.update(standings(rows, best, self.weights))

    def workers(self, place: int) -> tuple[PlannedWorker, ...]:
        part, index = self._cluster(place)
        return planned_workers(part, index)

    def inputs_at(self, place: int) -> Inputs:
        """The inputs that the cluster at a place was predicted with, its rounds being settled."""
        part, index = self._cluster(place)
        return cycle.settled(part.inputs, part.predictions.candidates, index)

    def training_at(self, place: int) -> Training:
        """The training of the cluster at a place."""
        return self._cluster(place)[0].training

    def local_steps(self, place: int) -> dict[str, int]:
        """Local steps of each member in a round of the cluster at a place."""
        part, index = self._cluster(place)
        steps = cycle.rounds_of(part.inputs, part.candidate(index)).steps[0]
        return {part.inputs.names[i]: int(steps[i]) for i in self._members(part, index)}

    def round_s(self, place: int) -> tuple[float, float]:
        """Seconds of the cluster's longest round of local steps, and of the longest computing."""
        part, index = self._cluster(place)
        steps, candidate = self.local_steps(place), part.candidate(index)
        cycle_s = dict(zip(part.inputs.names, cycle.cycles(part.inputs, candidate)[0].cycle_s[0], strict=True))
        computing_s = dict(zip(part.inputs.names, cycle.local_step_s(part.inputs, candidate)[0], strict=True))
        return (
            max(float(cycle_s[name]) * count for name, count in steps.items()),
            max(float(computing_s[name]) * count for name, count in steps.items()),
        )

    def images_factor(self, place: int) -> float:
        """Images that the cluster at a place takes over those of one device alone, in rounds."""
        part, index = self._cluster(place)
        return float(cycle.images_factor(part.inputs, part.candidate(index))[0])

    def _members(self, part: Part, index: int) -> list[int]:
        mask = int(part.predictions.candidates.masks[index])
        return [i for i in range(len(part.inputs.names)) if mask >> i & 1]

    def _cluster(self, place: int) -> tuple[Part, int]:
        """The part of the cluster at a place, and which of its candidates it is."""
        if not 1 <= place <= len(self):
            raise PlanError(f"--choose {place}: the ranking has places 1 to {len(self)}")
        index = int(self.ranking.order[place - 1])
        for part in self.parts:
            if index < part.predictions.time_s.size:
                return part, index
            index -= part.predictions.time_s.size
        raise AssertionError("the ranking counts the candidates of all parts")


def _batch(part: Part, index: int) -> int:
    """Images of a worker's step, the mean where workers share a global batch."""
    batches = part.inputs.batches
    if batches.shares is None:
        return batches.usual
    return max(1, round(batches.shares.size / int(part.predictions.candidates.masks[index]).bit_count()))


def _shares(part: Part, index: int) -> dict[str, float]:
    """Shares of the workers' time; waits for data are no part of computing."""
    found, devices = part.predictions, part.inputs.devices
    shares = dict(zip(BOTTLENECKS, found.shares[index].tolist(), strict=True))
    waiting_s = float(found.steps[index] @ devices.data_s)
    if waiting_s:
        computing = BOTTLENECKS[COMPUTE]
        data = shares[computing] * waiting_s / float(found.steps[index] @ devices.gradient_s)
        shares = {**shares, computing: shares[computing] - data, DATA: data}
    if part.inputs.streams is None:
        return shares
    cycle_s, free_s = found.cycle_s[index], found.free_s[index]
    here = np.isfinite(cycle_s)
    held = float((1 - free_s[here] / cycle_s[here]).mean())
    return {**{each: share * (1 - held) for each, share in shares.items()}, STREAM: held}
