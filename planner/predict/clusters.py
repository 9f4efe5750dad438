"""Candidates are all clusters: every set of devices with every member as its server's host.

The framework paper puts the server on the fastest member; here each member is a candidate. A single
device is its own server and uses no network.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Ints
from planner.errors import PlanError

MAX_DEVICES = 14
#: Sets of devices are the bits of 64-bit integers, one of which is the sign.
MAX_PROFILED = 62


class ClusterConfig(NamedTuple):
    """A cluster: its workers, the server's host, and the images of a worker's step."""

    server: str
    workers: tuple[str, ...]
    batch: int


class Candidates(NamedTuple):
    """Clusters as arrays, (C,) each: masks, bit i set where device i works, and hosts' indices."""

    masks: Ints
    hosts: Ints

    def members(self, devices: int) -> Bools:
        """(C, devices): which devices are members."""
        return (self.masks[:, None] >> np.arange(devices)) & 1 == 1

    def at(self, rows: Ints | Bools) -> "Candidates":
        """Some of the candidates."""
        return Candidates(self.masks[rows], self.hosts[rows])


def enumerate_clusters(
    names: Sequence[str],
    reachable: Bools,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    server: str | None = None,
) -> Candidates:
    """All candidates among ``names``.

    reachable: (N, N), worker i can exchange with a server on k; [k, k] is its own loopback.
    include, exclude: devices that must be members, or must not; server: the one admissible host.
    Raises PlanError for unknown names, too many devices, or when nothing is left.
    """
    required = _mask(names, include, "--include")
    allowed = (1 << len(names)) - 1 & ~_mask(names, exclude, "--exclude")
    if server is not None:
        _mask(names, [server], "--server")
    if len(names) > MAX_PROFILED:
        raise PlanError(f"{len(names)} profiled devices are too many (at most {MAX_PROFILED}); divide the fleet")
    if allowed.bit_count() > MAX_DEVICES:
        raise PlanError(
            f"{allowed.bit_count()} devices are too many to try every cluster (at most {MAX_DEVICES}); "
            "leave some out with --exclude"
        )
    hosts = [index for index, name in enumerate(names) if allowed >> index & 1 and server in (None, name)]
    subsets = np.zeros(1, np.int64)
    for index in range(len(names)):
        if allowed >> index & 1:
            subsets = np.concatenate([subsets, subsets | (1 << index)])
    subsets = subsets[((subsets & required) == required) & (subsets > 0)]
    found = [_hosted(subsets, host, reachable[:, host]) for host in hosts]
    masks = np.concatenate([np.empty(0, np.int64), *found])
    if not masks.size:
        raise PlanError("no cluster satisfies --include, --exclude and --server together; loosen one of them")
    return Candidates(masks, np.repeat(np.array(hosts, np.int64), [each.size for each in found]))


def of_peers(candidates: Candidates, reachable: Bools) -> Candidates:
    """Candidates for peers: each set of devices that all reach one another, with one coordinator.

    reachable: as for ``enumerate_clusters``. Raises PlanError when nothing is left.
    """
    _, first = np.unique(candidates.masks, return_index=True)
    once = candidates.at(first)
    members = once.members(len(reachable))
    apart = ~(reachable & reachable.T)
    np.fill_diagonal(apart, False)
    whole = ~np.einsum("ci,ij,cj->c", members, apart, members, dtype=bool)
    if not whole.any():
        raise PlanError("no cluster's devices all reach one another; probe their links, or train through a server")
    return once.at(whole)


def _hosted(subsets: Ints, host: int, reachable: Bools) -> Ints:
    """Those of ``subsets`` that contain ``host`` and whose members all reach it, or it alone."""
    unreachable = sum(1 << index for index, reached in enumerate(reachable) if not reached)
    alone = subsets == 1 << host
    return subsets[(subsets >> host & 1 == 1) & ((subsets & unreachable == 0) | alone)]


def _mask(names: Sequence[str], chosen: Iterable[str], option: str) -> int:
    mask = 0
    for name in chosen:
        if name not in names:
            raise PlanError(f"{option} {name}: no such device; devices: {', '.join(names)}")
        mask |= 1 << names.index(name)
    return mask
