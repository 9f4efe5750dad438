"""Rounds of local steps: members exchange after several steps of their own (local SGD, DiLoCo).

The problem: a round of member i is one step of another kind of exchange whose gradient takes the
h_i steps that it makes alone; T_i is the round's cycle over h_i. Where neither steps nor seconds
are named, a round is so long that its exchange takes a tenth of it (``EXCHANGE_SHARE``), but no
longer than ``MOST_CHOSEN`` steps of the reference member, and so that a run has ``FEWEST_ROUNDS``.
The reference is the slowest member where all make equally many steps, else the fastest.
"""

from typing import NamedTuple

import numpy as np

from backends.strategies.local_updates import EXCHANGE_SHARE, FEWEST_ROUNDS, MOST_CHOSEN, LocalSpec
from planner.arrays import Bools, Floats


class Rounds(NamedTuple):
    """The rounds of C candidates of N devices.

    steps: (C, N) local steps of each member; 1 for no member.
    seconds: (C,) that a round's computing is planned to take; every: (C,) steps of the reference.
    """

    steps: Floats
    seconds: Floats
    every: Floats

    def settled(self, local: LocalSpec, candidate: int) -> LocalSpec:
        """The same rounds with what was chosen for one candidate."""
        if local.name == "time":
            return local._replace(seconds=float(f"{self.seconds[candidate]:.3g}"))
        return local._replace(every=int(self.every[candidate]))


def of_candidates(
    local: LocalSpec, step_s: Floats, exchange_s: Floats, members: Bools, run_steps: int | None = None
) -> Rounds:
    """The rounds of all candidates.

    step_s: (C, N) of a local step; exchange_s: (C,) of a round's exchange; members: (C, N);
    run_steps: of all members in a run; None for as many as there may be.
    """
    step_s = np.where(members, step_s, 1.0)
    fastest_s = np.where(members, step_s, np.inf).min(axis=1)
    slowest_s = np.where(members, step_s, 0.0).max(axis=1)
    reference_s = slowest_s if local.name == "steps" else fastest_s
    if local.name == "time" and local.seconds is not None:
        seconds = np.full(exchange_s.shape, local.seconds)
    elif local.name != "time" and local.every is not None:
        seconds = local.every * reference_s
    else:
        own_steps = np.inf if run_steps is None else run_steps / np.maximum(1, members.sum(axis=1))
        most = np.clip(own_steps / FEWEST_ROUNDS, 1.0, MOST_CHOSEN)
        seconds = np.clip((1 / EXCHANGE_SHARE - 1) * exchange_s, reference_s, most * reference_s)
    every = np.maximum(1.0, np.round(seconds / reference_s))
    if local.name == "steps":
        steps = np.broadcast_to(every[:, None], members.shape)
    elif local.name == "speed":
        steps = np.maximum(1.0, np.round(every[:, None] * fastest_s[:, None] / step_s))
    else:
        steps = np.maximum(1.0, np.floor(seconds[:, None] / step_s))
    return Rounds(np.where(members, steps, 1.0), seconds, every)
