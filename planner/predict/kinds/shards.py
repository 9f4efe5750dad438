"""Ranks that hold shares of the model, and gather one block of it at a time (FSDP2).

The problem: find the seconds from one step to the next. A member gathers each block before the
forward pass through it, and again before the backward pass, and its gradients are reduced to shares
then. What is in no block is gathered once. Over gloo nothing is computed meanwhile, so that all of
it is added to the slowest member's step. NCCL gathers the next block while one is computed, so that
either the exchange or the computing sets the pace, in the forward and in the backward pass.
"""

import numpy as np

from planner.arrays import Floats, Ints
from planner.predict.buckets import FORWARD
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import collectives
from planner.predict.kinds.collectives import GLOO, Network, Transport
from planner.predict.kinds.cycles import Cycles
from planner.predict.kinds.ddp import CollectiveCost, SynchronousStep, Work, exchange, of_ranks, surroundings
from planner.predict.kinds.peers import solve as solve_peers
from planner.predict.shares import ShardedModel


def cycles(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles of all clusters. gradient_s: (C, N)."""
    return solve_peers(inputs, candidates, gradient_s, of_ranks(_step))


def _step(inputs: Inputs, members: Ints, work: Work, transport: Transport, network: Network) -> SynchronousStep:
    assert inputs.torch is not None, "the engine is torch.distributed"
    share_s = inputs.devices.update_s[members] / members.size  # of an update of all weights
    work = work._replace(update_s=work.update_s - inputs.devices.update_s[members] + share_s)
    return synchronous(work, inputs.torch.model, inputs.torch.model.parts(inputs.batches.usual), transport, network)


def synchronous(work: Work, model: ShardedModel, parts: int, transport: Transport, network: Network) -> SynchronousStep:
    """A step whose batch is computed in so many parts."""
    each = _cost(work, transport, network)
    units = [model.rest_bytes, *model.blocks]
    forward_s, forward_cpu_s = _all_of(each, work, units)
    again_s, again_cpu_s = _all_of(each, work, list(model.blocks))
    reduced_s, reduced_cpu_s = _all_of(each, work, [model.trained * unit for unit in units])
    backward_s = again_s + reduced_s
    if transport is GLOO:
        computed_s = float((work.gradient_s + work.update_s).max())
        step_s = computed_s + parts * (forward_s + backward_s)
    else:
        pass_s = float(work.gradient_s.max())
        hidden = max(FORWARD * pass_s, parts * forward_s) + max((1 - FORWARD) * pass_s, parts * backward_s)
        step_s = hidden + float(work.update_s.max())
    handled_s = parts * (forward_cpu_s + again_cpu_s + reduced_cpu_s) * work.delay
    exchanged_bytes = sum(units) + sum(model.blocks) + model.trained * sum(units)
    return SynchronousStep(
        step_s,
        np.minimum(step_s, work.gradient_s + work.update_s + handled_s),
        parts * each.shares * exchanged_bytes,
    )


def gather_s(inputs: Inputs, members: Ints) -> float:
    """Seconds in which ranks gather all of the model once, as for each batch that one evaluates."""
    assert inputs.torch is not None, "the engine is torch.distributed"
    work, transport, network = surroundings(inputs, members, inputs.devices.gradient_s[members])
    model = inputs.torch.model
    return _all_of(_cost(work, transport, network), work, [model.rest_bytes, *model.blocks])[0]


def _cost(work: Work, transport: Transport, network: Network) -> CollectiveCost:
    """What a gather costs; to reduce as many bytes costs the same."""
    n = work.gradient_s.size
    made = collectives.all_to_all(n) if transport is GLOO else collectives.gather(n)
    return exchange(work, transport, network, made)


def _all_of(each: CollectiveCost, work: Work, messages: list[float]) -> tuple[float, Floats]:
    """Seconds of the exchanges of these bytes, one after the other, and (n,) processor seconds."""
    done = [each.alone(work, message_bytes) for message_bytes in messages]
    return sum(seconds for seconds, _ in done), np.sum([cpu_s for _, cpu_s in done], axis=0)
