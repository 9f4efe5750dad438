"""The model of torch.distributed predicts synchronous steps whose exchange overlaps with computing.

The members of a run are ranked by name. Each sends around the ring or along the trees of
``collectives``; processors that compute lose what gloo's threads take of them.
"""

import numpy as np

from planner.arrays import Floats, Ints
from planner.predict import collectives
from planner.predict.clusters import Candidates
from planner.predict.collectives import Network
from planner.predict.costs import Costs
from planner.predict.data_parallel import ByteCosts, Work, synchronous
from planner.predict.decentralized import Steps
from planner.predict.straggler import paces_of
from planner.predict.torch_costs import GLOO_MESSAGES, TorchCosts

#: Part of what a ring brings that is added; the rest are sums, which replace what was there.
ADDED = 1 / 2


def solve(costs: Costs, torch: TorchCosts, candidates: Candidates) -> Steps:
    """Steps of all candidates."""
    members = candidates.members(len(costs.names))
    by_rank = sorted(range(len(costs.names)), key=lambda i: costs.names[i])
    result = Steps(np.full(members.shape, np.inf), *np.zeros((2, *members.shape)))
    masks = np.unique(candidates.masks)
    for mask, pace in zip(masks, paces_of(costs.devices, masks), strict=True):
        ranked = np.array([i for i in by_rank if mask >> i & 1])
        at = np.ix_(candidates.masks == mask, ranked)
        transport = collectives.NCCL if torch.uses_nccl(ranked.tolist()) else collectives.GLOO
        buckets = [bucket._replace(ready=np.asarray(bucket.ready)[ranked]) for bucket in torch.buckets]
        step = synchronous(_work(costs, torch, ranked, pace), buckets, transport, _network(costs, torch, ranked))
        result.cycle_s[at], result.busy_s[at] = step.step_s, step.busy_s
        result.sent_bytes[at] = step.sent_bytes.sum(axis=1)
    return result


def _work(costs: Costs, torch: TorchCosts, ranked: Ints, pace: float) -> Work:
    """What the members do in a step of this pace; NCCL's threads are in its constants."""
    devices, around, count = costs.devices, np.ix_(ranked, ranked), ranked.size
    alone = beside = ByteCosts(*np.zeros((2, count, count)))
    hop_cpu_s = np.zeros(count)
    if not torch.uses_nccl(ranked.tolist()):
        added_s = (ADDED * devices.add_s + devices.copy_s)[ranked] / costs.up_bytes
        alone, beside = (
            ByteCosts(cost.send_s[around], cost.receive_s[around] + added_s) for cost in (torch.alone, torch.beside)
        )
        hop_cpu_s = GLOO_MESSAGES * _small_messages_s(torch, ranked)
    own_s = torch.own_cpu_s / np.minimum(1.0, devices.cores)  # of one thread
    # A batch is waited for before its forward pass, and this wait varies as well.
    computing_s = np.maximum(devices.gradient_s - devices.data_s, 1e-9)
    paced = 1 + (pace - 1) * devices.gradient_s / computing_s
    return Work(
        gradient_s=computing_s[ranked],
        update_s=(devices.update_s + devices.data_s + own_s)[ranked],
        alone=alone,
        beside=beside,
        hop_cpu_s=hop_cpu_s,
        delay=np.where(devices.step_cpu_s > 0, 1 / devices.cores, 0.0)[ranked],
        pace=paced[ranked],
    )


def _small_messages_s(torch: TorchCosts, ranked: Ints) -> Floats:
    """(n,) processor seconds of a message from the member before and of one to the next."""
    received_s: Floats = torch.receive_cpu_s[np.roll(ranked, 1), ranked]
    return received_s + torch.send_cpu_s[ranked, np.roll(ranked, -1)]


def _network(costs: Costs, torch: TorchCosts, ranked: Ints) -> Network:
    around = np.ix_(ranked, ranked)
    rates: Floats = torch.bytes_per_s[around]
    return Network(
        bytes_per_s=rates,
        out_bytes_per_s=costs.devices.out_bytes_per_s[ranked],
        in_bytes_per_s=costs.devices.in_bytes_per_s[ranked],
        latency_s=costs.pairs.latency_s[around],
    )
