"""Ranks of a script: which member is which, and the variables by which its process learns it.

The variables are those that torch.distributed reads with ``env://``, and what the plan knows
besides.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.jobs.user_job import DATA_VARIABLE
from planner.fleet.device import Device, Fleet
from planner.plan.file import Plan

#: The variable by which CUDA shows a process some GPUs only.
GPUS = "CUDA_VISIBLE_DEVICES"


class PlacedRank(NamedTuple):
    """One process of a script, and its place in the cluster.

    node: number of its node, which is a host or, where its members cannot share one, a part of it.
    batch: samples of its step. weight: b_i n / Σb, the factor that makes the mean over ranks of
        gradients, each a mean over a batch, the mean over all samples.
    gpus: those of its node, which LOCAL_RANK counts, as CUDA_VISIBLE_DEVICES; None for all.
    """

    device: Device
    rank: int
    node: int
    local_rank: int
    local_size: int
    batch: int
    weight: float
    gpus: str | None

    @property
    def name(self) -> str:
        return self.device.name


def placed(plan: Plan, fleet: Fleet) -> tuple[PlacedRank, ...]:
    """The members of a plan by rank: its server is rank 0, and ranks of a node are neighbours.

    Raises FleetError where a member is not in the fleet.
    """
    names = sorted(plan.names, key=lambda name: name != plan.server)  # the others keep their order
    batches = plan.batches
    nodes = _nodes([fleet.device(name) for name in names], batches)
    mean = sum(batches.values()) / len(batches)
    found: list[PlacedRank] = []
    for node, members in enumerate(nodes):
        gpus = _joined_gpus(members)
        for local, device in enumerate(members):
            batch = batches[device.name]
            found.append(PlacedRank(device, len(found), node, local, len(members), batch, batch / mean, gpus))
    return tuple(found)


def nodes_of(ranks: Sequence[PlacedRank]) -> list[list[PlacedRank]]:
    """The ranks of each node."""
    return [[rank for rank in ranks if rank.node == node] for node in range(ranks[-1].node + 1)]


def environment(rank: PlacedRank, ranks: Sequence[PlacedRank], address: str, port: int) -> dict[str, str]:
    """The variables of a rank's process. ``address``, ``port``: where the first rank listens."""
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "RANK": str(rank.rank),
        "WORLD_SIZE": str(len(ranks)),
        "LOCAL_RANK": str(rank.local_rank),
        "LOCAL_WORLD_SIZE": str(rank.local_size),
        "NODE_RANK": str(rank.node),
        **data_variable(rank.device),
        **plan_variables(rank, ranks),
    }


def data_variable(device: Device) -> dict[str, str]:
    """Where its data are, if the fleet file says so."""
    return {} if device.data is None else {DATA_VARIABLE: device.data}


def plan_variables(rank: PlacedRank, ranks: Sequence[PlacedRank]) -> dict[str, str]:
    """What the plan knows besides; equal for the ranks of a node."""
    return {
        **({} if rank.gpus is None else {GPUS: rank.gpus}),
        "PLANNER_BATCH_SIZE": str(rank.batch),
        "PLANNER_BATCH_SIZES": ",".join(str(each.batch) for each in ranks),
        "PLANNER_RANK_WEIGHT": repr(rank.weight),
        "PLANNER_DEVICES": ",".join(each.name for each in ranks),
    }


def _nodes(devices: Sequence[Device], batches: Mapping[str, int]) -> list[list[Device]]:
    """The devices by node; the first device's node comes first."""
    hosts: dict[object, list[Device]] = {}
    for device in devices:
        way = device.ssh and (device.ssh.host, device.ssh.port, device.ssh.jump)
        hosts.setdefault((way, batches[device.name]), []).append(device)
    return [node for members in hosts.values() for node in ([members] if _share(members) else [[m] for m in members])]


def _share(members: Sequence[Device]) -> bool:
    """Whether they can be one node: all see all GPUs of their host, or each its own."""
    shown = [device.interpreter.environment.get(GPUS) for device in members]
    if None in shown:
        return all(each is None for each in shown)
    gpus = [gpu for each in shown for gpu in _listed(each)]
    return len(set(gpus)) == len(gpus)


def _joined_gpus(members: Sequence[Device]) -> str | None:
    shown = [device.interpreter.environment.get(GPUS) for device in members]
    return None if None in shown else ",".join(gpu for each in shown for gpu in _listed(each))


def _listed(shown: str | None) -> list[str]:
    return [gpu.strip() for gpu in (shown or "").split(",") if gpu.strip()]
