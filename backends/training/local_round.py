"""A member makes the local steps of a round, and leaves their change where a gradient would be."""

import math
import time
from typing import Callable, NamedTuple, Optional

import numpy as np

from backends.data.arrivals import never
from backends.data.loader import BatchSource
from backends.frameworks.base import Arrays, Replica
from backends.frameworks.optimizer import OWN, OptimizerSettings, zero_slots
from backends.protocol.frames import LocalRound
from backends.strategies.strategy import Strategy
from backends.training.compute_clock import clock_of
from backends.training.step import StepTaken, gradient


class RoundMade(NamedTuple):
    """A round; ``taken`` has the mean loss, and the seconds of all its steps."""

    taken: StepTaken
    steps: int
    samples: int


class RoundAbandoned(Exception):
    """The run has ended during a round, which nobody waits for."""


class LocalUpdates:
    """Makes rounds with the framework's own optimizer, which lasts from round to round.

    After a round the replica's host buffers hold the weights w as they were before it, and in
    place of gradients the change w - w_i, so that an exchange of gradients exchanges changes.

    reset: whether each round begins with a new optimizer.
    """

    def __init__(self, replica: Replica, batches: BatchSource, optimizer: OptimizerSettings, reset: bool) -> None:
        self._replica = replica
        self._batches = batches
        self._optimizer = optimizer
        self._reset = reset
        self._held = np.empty_like(replica.weights)  # w during a round, its change afterwards
        self._kept: Optional[RoundMade] = None

    @classmethod
    def of_strategy(
        cls, strategy: Strategy, replica: Replica, batches: BatchSource, optimizer: OptimizerSettings
    ) -> Optional["LocalUpdates"]:
        """Those of a strategy with rounds; None for one without."""
        local = strategy.local
        return cls(replica, batches, optimizer, local.reset) if local else None

    def make(
        self,
        order: LocalRound,
        rate: float,
        batch: int,
        stays: bool = False,
        abandoned: Callable[[], bool] = never,
    ) -> RoundMade:
        """Make a round, or return the one that could not be exchanged, with its change.

        stays: whether the weights stay as the round leaves them, so that there is no change: what a
            member without others does, whose rounding would otherwise not be that of plain steps.
        abandoned: whether the run is over; asked before each step. RoundAbandoned is then raised,
            and SamplesMissing as by ``Arrivals.wait``. After any error weights and state are as
            they were before, and what the optimizer keeps is not.
        A loss that is not finite ends the round.
        """
        if self._kept is not None:
            made, self._kept = self._kept, None
            normalized = order.scale * order.steps / made.steps if order.scale != 1.0 else 1.0
            np.multiply(self._held, normalized, out=self._replica.gradients)
            return made
        replica = self._replica
        np.copyto(self._held, replica.weights)
        self._batches.batch = batch
        state = replica.changing.copy()
        try:
            taken = self._steps(order.steps, self._optimizer._replace(rate=rate), abandoned)
        except BaseException:
            replica.weights[:], replica.changing[:] = self._held, state
            replica.load()
            raise
        made = RoundMade(taken, order.steps, order.steps * batch)
        if stays:
            replica.gradients.fill(0.0)
            return made
        np.subtract(self._held, replica.weights, out=replica.gradients)
        np.copyto(replica.weights, self._held)
        np.copyto(self._held, replica.gradients)
        if order.scale != 1.0:
            replica.gradients *= order.scale
        return made

    def _steps(self, count: int, optimizer: OptimizerSettings, abandoned: Callable[[], bool]) -> StepTaken:
        replica, began = self._replica, time.perf_counter()
        if self._reset:
            replica.set_slots(zero_slots(optimizer.kind, replica.weights.size))
        losses, data_s = 0.0, 0.0
        with clock_of(replica) as clock:
            for _ in range(count):
                if abandoned():
                    raise RoundAbandoned
                clock.end()  # a wait for samples that arrive is no computation
                waiting = time.perf_counter()
                self._batches.wait(abandoned)
                began += time.perf_counter() - waiting
                clock.begin()
                started = time.perf_counter()
                batch = next(self._batches)
                data_s += time.perf_counter() - started
                losses += gradient(replica, batch, optimizer.in_gradients)
                if not math.isfinite(losses):
                    break
                replica.update(optimizer)
        computed = time.perf_counter()
        replica.fetch()
        return StepTaken(losses / count, computed - began, time.perf_counter() - computed, data_s)

    def keep(self, made: RoundMade) -> None:
        """Keep a round that could not be exchanged, for the next order."""
        self._kept = made

    def drop(self) -> None:
        """Forget a round that was kept: the weights that it began with are not the run's."""
        self._kept = None

    def state(self) -> Arrays:
        """What the optimizer keeps, for a checkpoint; a job's own is saved as bytes elsewhere."""
        if self._optimizer.kind == OWN or self._reset:
            return ()
        return tuple(self._replica.slots(self._optimizer.kind).values())

    def restore(self, state: Arrays) -> None:
        """Go on from ``state``. Raises ValueError for arrays of other shapes."""
        names = zero_slots(self._optimizer.kind, self._replica.weights.size)
        if [each.shape for each in state] != [each.shape for each in names.values()]:
            raise ValueError("not what optimizer %s keeps" % self._optimizer.kind)
        self._replica.set_slots(dict(zip(names, state)))
