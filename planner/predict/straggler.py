"""Members of a synchronous step wait for its straggler, and each of them is that in some steps.

The times of a gradient vary: by the quota of a container, by the scheduler, by the clock of the
processor. The mean of the slowest is therefore more than the slowest mean, the more so the more
members there are and the more alike they are.
"""

from collections.abc import Sequence

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.clusters import Candidates
from planner.predict.device_costs import DeviceCosts

#: Sets of members whose chances are in memory at once.
SETS_AT_ONCE = 1024
#: The logarithm of no chance at all, finite because 0 times infinity is no number.
_NEVER = -1e4


def paces_of(devices: DeviceCosts, masks: Ints) -> Floats:
    """(S,) as ``paces``, of sets of devices as the bits of masks, (S,)."""
    count = devices.gradient_s.size
    return paces(devices.gradient_s, devices.variation, Candidates(masks, masks).members(count))


def paces(gradient_s: Floats, variation: Sequence[Floats], members: Bools) -> Floats:
    """(S,) mean of the slowest gradient of a step over the slowest mean, for S sets of N devices.

    gradient_s: (N,) mean seconds of a gradient.
    variation: the times of a gradient over their mean, of each device, each as likely; devices
        vary independently of one another.
    members: (S, N), at least one set, and one member in each.

    The slowest takes at most t where all take at most t: the chances of this multiply.
    """
    used = np.flatnonzero(members.any(axis=0)).tolist()
    members = members[:, used]
    times_s = [gradient_s[i] * np.sort(variation[i]) for i in used]
    possible_s = np.unique(np.concatenate(times_s))
    ended = np.stack([np.searchsorted(each_s, possible_s, side="right") / each_s.size for each_s in times_s])
    logarithms = np.log(ended, out=np.full_like(ended, _NEVER), where=ended > 0)
    slowest_s = [
        np.diff(np.exp(members[at : at + SETS_AT_ONCE] @ logarithms), prepend=0.0) @ possible_s
        for at in range(0, len(members), SETS_AT_ONCE)
    ]
    return np.asarray(np.concatenate(slowest_s) / np.where(members, gradient_s[used], 0.0).max(axis=1))
