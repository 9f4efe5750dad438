"""A coordinator plans each round of local steps by the speeds of its members."""

import collections
import math
import statistics
from typing import Deque, Dict, Mapping, NamedTuple, Sequence

from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.frames import LocalRound
from backends.strategies.local_updates import AVERAGE, EVERY, SECONDS, LocalSpec, OuterSpec

#: Rounds whose median tells a member's speed: few, so that a slow first one soon drops out.
RECENT_ROUNDS = 5
#: The reference speed is this quantile of all members' recent speeds, so that one mistimed round
#: does not make everyone's rounds shorter.
REFERENCE_QUANTILE = 0.9


class RoundPlan(NamedTuple):
    """A round that all members begin together.

    steps: local steps by member.
    outer: what is done with the mean of their changes.
    normalize: as in ``LocalSpec``.
    """

    steps: Dict[str, int]
    outer: OptimizerSettings
    normalize: bool

    def order(self, steps: int) -> LocalRound:
        """The part of a member that makes so many steps; normalized as by FedNova (2020)."""
        if not self.normalize:
            return LocalRound(steps)
        return LocalRound(steps, sum(self.steps.values()) / float(len(self.steps) * steps))


class LocalSteps:
    """Local steps by member.

    expected_s: predicted seconds of a step by member, which count until it has made a round. A
        member without makes one step then, or ``every``.
    Not thread-safe.
    """

    def __init__(self, spec: LocalSpec, outer: OuterSpec = AVERAGE, expected_s: Mapping[str, float] = {}) -> None:
        self._spec = spec
        self._outer = outer
        self._every = spec.every or EVERY
        self._expected_s = {name: (step_s,) for name, step_s in expected_s.items()}
        self._step_s: Dict[str, Deque[float]] = {}

    def record(self, name: str, steps: int, seconds: float) -> None:
        """Record that a member made a round of so many steps in so many seconds.

        Raises ValueError for numbers that no round has.
        """
        if steps < 1 or not 0.0 <= seconds < math.inf:
            raise ValueError("%s made a round of %d steps in %s s" % (name, steps, seconds))
        recent = self._step_s.setdefault(name, collections.deque(maxlen=RECENT_ROUNDS))
        recent.append(max(seconds, 1e-9) / steps)

    def plan(self, names: Sequence[str], done: int, left: int) -> RoundPlan:
        """The round that members begin now; before the first one every step is exchanged.

        done, left: steps of all members before the round, and to the end of the run. The last
        round is shortened, so that the run makes fewer steps too many than it has members.
        """
        if done < self._spec.after:
            return self._planned(dict.fromkeys(names, 1), AVERAGE)
        found = {name: self._wanted(name, names) for name in names}
        total = sum(found.values())
        if total > left:
            found = {name: max(1, int(math.ceil(steps * left / float(total)))) for name, steps in found.items()}
        return self._planned(found, self._outer)

    def _planned(self, steps: Dict[str, int], outer: OuterSpec) -> RoundPlan:
        return RoundPlan(steps, outer.settings(list(steps.values())), self._spec.normalize)

    def _wanted(self, name: str, names: Sequence[str]) -> int:
        if self._spec.name == "steps":
            return self._every
        recent = self._recent_s(name)
        if not recent:
            return self._every if self._spec.name == "speed" else 1
        step_s = statistics.median(recent)
        if self._spec.name == "time":
            return max(1, int((self._spec.seconds or SECONDS) / step_s))
        return max(1, int(round(self._every * self._reference_s(names) / step_s)))

    def _recent_s(self, name: str) -> Sequence[float]:
        """Seconds of a member's step in its last rounds, or as predicted; empty where unknown."""
        recent = self._step_s.get(name)
        return recent if recent else self._expected_s.get(name, ())

    def _reference_s(self, names: Sequence[str]) -> float:
        """Seconds of a step at the reference speed of these members."""
        all_s = sorted(seconds for name in names for seconds in self._recent_s(name))
        return all_s[int((1.0 - REFERENCE_QUANTILE) * (len(all_s) - 1))]
