"""A synchronisation policy says when a worker goes on; it is two numbers with a name.

A worker begins a step when it ``may_begin``, computes, sends, and goes on when there is
``enough`` of what others send in that step. Others are those it receives from, so that with
gossip it keeps in step with its peers alone. One that joins begins with the step of the worker
whose weights it got; one that leaves counts no longer. Whoever is last may always begin, so that
nobody waits for ever, whatever the numbers.
"""

import math
from typing import Dict, Mapping, NamedTuple, Sequence

from backends.strategies.option_text import count, name_of, options_of, typed


class SyncPolicy(NamedTuple):
    """staleness: how many steps more than the slowest of the others a worker may have done when
    it begins one.

    backups: how many messages of a step, whichever come last, need not be waited for. A finite
    staleness still holds everyone to the pace of the slowest in the end.
    """

    staleness: float
    backups: float

    @classmethod
    def from_text(cls, text: str) -> "SyncPolicy":
        """Of ``NAME:key=value,...``, such as bounded:staleness=3. Raises ValueError naming what
        does not fit.
        """
        name = name_of("sync", text, SYNC_POLICIES)
        values = typed(name, options_of(text, _KEYS[name]), dict.fromkeys(_KEYS[name], count))
        return SYNC_POLICIES[name]._replace(**values)

    def may_begin(self, own_step: int, steps_of_others: Sequence[int]) -> bool:
        """Whether one that has done ``own_step`` steps may begin the next, others having done
        theirs.
        """
        return own_step - min(steps_of_others, default=own_step) <= self.staleness

    def enough(self, arrived: int, members: int) -> bool:
        """Whether messages of one step from ``arrived`` of so many members, its own counted, will
        do.
        """
        return arrived >= self.waits_for(members)

    def waits_for(self, n: int) -> int:
        """How many of n workers' messages a step waits for, its own counted."""
        return int(max(1, n - self.backups))


#: With the values of options that are not given. backup: Hop (Luo et al., 2019) as DLion compares
#: with it, 5.1.4.
SYNC_POLICIES: Dict[str, SyncPolicy] = {
    "synchronous": SyncPolicy(staleness=0, backups=0),
    "asynchronous": SyncPolicy(staleness=math.inf, backups=math.inf),
    "bounded": SyncPolicy(staleness=5, backups=math.inf),
    "backup": SyncPolicy(staleness=5, backups=1),
}

#: Options of each.
_KEYS: Mapping[str, Sequence[str]] = {
    "synchronous": (),
    "asynchronous": (),
    "bounded": ("staleness",),
    "backup": ("staleness", "backups"),
}
