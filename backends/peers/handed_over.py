"""Peers hand over arrays for a checkpoint, which has means over all and what is each one's own."""

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.hosting.member_stats import MemberStats
from backends.protocol.frames import FROZEN, STATE, WEIGHTS

#: Name of the number of a member's steps among its arrays in a checkpoint.
STEPS = "clock"
#: What a checkpoint has once for all members.
OF_ALL = (WEIGHTS, STATE, FROZEN)


class _MemberPart(NamedTuple):
    """What one member handed over.

    arrays: by label; empty until they have come.
    made: steps of this run that are in them; offset: at which its stream of samples goes on.
    """

    arrays: Dict[str, Arrays]
    made: int = 0
    offset: int = 0


class HandedOver:
    """The parts of members. Not thread-safe: its owner holds the run's lock."""

    def __init__(self) -> None:
        self._parts: Dict[str, _MemberPart] = {}
        self._digests: Dict[str, str] = {}

    def wants_weights(self, name: str, digest: str, once: bool) -> bool:
        """Whether a member must send its weights, of this digest.

        once: not where another member sends equal ones; else what it sent before stays meanwhile.
        """
        known = {self._digests[other] for other in self._parts if other != name}
        self._digests[name] = digest
        if once:
            self._parts[name] = _MemberPart({})
        return not once or digest not in known

    def add(self, name: str, arrays: Dict[str, Arrays], steps: int, made: int, offset: int) -> None:
        """Add a member's arrays, with its weights if it was asked for them.

        steps: with those of a run that this one resumes, or rounds; the others as in
            ``_MemberPart``.
        """
        self._parts[name] = _MemberPart(dict(arrays, **{STEPS: (np.array([steps], np.int64),)}), made, offset)

    def drop(self, name: str) -> None:
        """A member is gone."""
        self._parts.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()

    @property
    def has_weights(self) -> bool:
        return any(WEIGHTS in part.arrays for part in self._parts.values())

    def steps_since(self, members: Mapping[str, MemberStats]) -> int:
        """Steps that members have made since they handed over."""
        return sum(members[name].steps - part.made for name, part in self._come)

    @property
    def offsets(self) -> Dict[str, int]:
        return {name: part.offset for name, part in self._come}

    def means(self) -> Tuple[Arrays, np.ndarray]:
        """Means over members: weights with what the optimizer keeps, and the state, (state,)."""
        weights = self._weights()
        all_weights = [weights[self._digests[name]] for name, _ in self._come if self._digests[name] in weights]
        means = all_weights[0] if len(weights) == 1 else tuple(_mean(part) for part in zip(*all_weights))
        state = _mean([part.arrays[STATE][0] for _, part in self._come])
        frozen: Arrays = next((part.arrays[FROZEN] for _, part in self._come if FROZEN in part.arrays), ())
        return means, joined_state({FROZEN: frozen, STATE: (state,)})

    def own(self) -> Dict[str, Arrays]:
        """Each member's own arrays, by its name and their label.

        Weights are among them only where they differ between members.
        """
        weights, own = self._weights(), {}
        for name, part in self._come:
            own.update({name + "/" + label: a for label, a in part.arrays.items() if label not in OF_ALL})
            if len(weights) > 1 and self._digests[name] in weights:
                own[name + "/" + WEIGHTS] = weights[self._digests[name]]
        return own

    @property
    def _come(self) -> List[Tuple[str, _MemberPart]]:
        """The parts that have come, by name."""
        return sorted((name, part) for name, part in self._parts.items() if part.arrays)

    def _weights(self) -> Dict[str, Arrays]:
        """Different weights, by digest."""
        return {self._digests[name]: part.arrays[WEIGHTS] for name, part in self._come if WEIGHTS in part.arrays}


def joined_state(arrays: Mapping[str, Arrays]) -> np.ndarray:
    """The state of a member, (state,), of what steps do not change of it and what they do."""
    return np.concatenate([*arrays.get(FROZEN, ()), *arrays[STATE]])


def _mean(arrays: Any) -> np.ndarray:
    return np.asarray(np.mean(arrays, axis=0, dtype=np.float32))
