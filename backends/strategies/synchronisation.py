"""A synchronisation policy bounds staleness and the number of messages a step waits for.

A worker begins a step when it ``may_begin``, computes, sends, and goes on when there are ``enough``
messages of that step, of the workers that it receives from. One that joins begins with the step of
the worker whose weights it received. The slowest worker may always begin: there is no deadlock.
"""

import math
from typing import Dict, Mapping, NamedTuple, Sequence

from backends.strategies.name_and_options import count, name_of, options_of, typed


class SyncPolicy(NamedTuple):
    """Two bounds, with their name.

    staleness: steps that a worker may be ahead of the slowest other one when it begins a step.
    backups: messages of a step, whichever arrive last, that are not waited for.
    """

    staleness: float
    backups: float

    @classmethod
    def from_text(cls, text: str) -> "SyncPolicy":
        """Parse ``NAME:key=value,...``, such as bounded:staleness=3.

        Raises ValueError for an unknown name, key or value.
        """
        name = name_of("sync", text, SYNC_POLICIES)
        values = typed(name, options_of(text, _KEYS[name]), dict.fromkeys(_KEYS[name], count))
        return SYNC_POLICIES[name]._replace(**values)

    def may_begin(self, own_step: int, steps_of_others: Sequence[int]) -> bool:
        """Whether a worker that has done ``own_step`` steps may begin the next."""
        return own_step - min(steps_of_others, default=own_step) <= self.staleness

    def enough(self, arrived: int, members: int) -> bool:
        """Whether messages of one step suffice; the member's own counts."""
        return arrived >= self.waits_for(members)

    def waits_for(self, n: int) -> int:
        """The number of n workers' messages that a step waits for; the worker's own counts."""
        return int(max(1, n - self.backups))


#: Policies by name, with default options. backup: Hop (Luo et al., 2019) as DLion compares with it,
#: 5.1.4.
SYNC_POLICIES: Dict[str, SyncPolicy] = {
    "synchronous": SyncPolicy(staleness=0, backups=0),
    "asynchronous": SyncPolicy(staleness=math.inf, backups=math.inf),
    "bounded": SyncPolicy(staleness=5, backups=math.inf),
    "backup": SyncPolicy(staleness=5, backups=1),
}

#: Options of each policy.
_KEYS: Mapping[str, Sequence[str]] = {
    "synchronous": (),
    "asynchronous": (),
    "bounded": ("staleness",),
    "backup": ("staleness", "backups"),
}
