"""Data injection: some devices give a part of their samples to all others (ScaDLES).

Data that devices gather themselves are not alike. Against that, ScaDLES (Tyagi and Swany) lets a
random share alpha of the devices give a share beta of their samples to the others in every step;
it has alpha = beta = 0.05, 0.1, 0.25 and 0.5. Their samples leave the device, so that this is a
decision about privacy.
"""

import hashlib
import math
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.protocol.frames import Share
from backends.strategies.name_and_options import number, options_of, typed


class InjectionSpec(NamedTuple):
    """The text of ``--inject`` as an object.

    alpha: share of the devices that give samples in a step, above 0 and at most 1.
    beta: share of their own samples that they give, likewise.
    """

    alpha: float
    beta: float
    text: str

    @classmethod
    def from_text(cls, text: str) -> "InjectionSpec":
        """Parse ``alpha=A,beta=B``. Raises ValueError for other texts and shares out of range."""
        keys = ("alpha", "beta")
        found = typed(text, options_of("inject:" + text, keys), dict.fromkeys(keys, number))
        for key in keys:
            if not 0.0 < found.get(key, math.nan) <= 1.0:
                raise ValueError("give both shares, each above 0 and at most 1, as in alpha=0.25,beta=0.1")
        return cls(found["alpha"], found["beta"], text)

    def shared(self, batch: int, members: int) -> float:
        """Samples that a device with this batch gives when it is its turn, on average.

        A batch stays as large as it is: samples that are received take the place of own ones. With
        s = beta * own of each giving device, and alpha * (members - 1) giving devices among the
        others of a device, own + alpha * (members - 1) * s = batch.
        """
        return self.beta * batch / (1.0 + self.alpha * self.beta * (members - 1))


def sharers(names: Sequence[str], alpha: float, seed: int, step: int) -> Tuple[str, ...]:
    """The devices that give samples in a step, sorted; nobody does where there are no others.

    names: of all members, in any order.
    seed: of the run. With the step, or the number of a round of local steps, it decides the draw.
    Where alpha times the members is no whole number, it is rounded up or down at random, so that
    it is alpha on average, also of few devices.
    """
    ordered = sorted(set(names))
    if len(ordered) < 2:
        return ()
    random = _random(seed, step, "")
    count = min(_rounded(alpha * len(ordered), random), len(ordered))
    chosen = random.permutation(len(ordered))[:count]
    return tuple(ordered[place] for place in sorted(chosen.tolist()))


def share_of(spec: InjectionSpec, names: Sequence[str], name: str, batch: int, seed: int, step: int) -> Optional[Share]:
    """What a member with this batch gives in a step, and to whom; None for nothing."""
    if name not in sharers(names, spec.alpha, seed, step):
        return None
    samples = min(batch, _rounded(spec.shared(batch, len(set(names))), _random(seed, step, name)))
    return Share(samples, tuple(sorted(set(names) - {name}))) if samples else None


def _rounded(expected: float, random: np.random.RandomState) -> int:
    """A whole number next to ``expected``, which is its mean."""
    return int(math.floor(expected + random.random_sample()))


def _random(seed: int, step: int, name: str) -> np.random.RandomState:
    digest = hashlib.sha256(("inject %d %d %s" % (seed, step, name)).encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, "<u4"))
