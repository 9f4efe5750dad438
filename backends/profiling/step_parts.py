"""Parts of a step are timed one by one."""

import functools
from typing import Any, Callable, Optional, Tuple

import numpy as np

from backends.frameworks.optimizer import OWN
from backends.profiling import codec_profile, own_messages, update_costs
from backends.profiling.step_loop import SETTINGS, StepLoop
from backends.profiling.step_memory import MemoryProbe
from backends.protocol.orders import LoopbackEnds
from backends.training import step
from profilers.records.step_costs import StepCosts

#: Gradients in which it is noted when each variable has its own.
READY_GRADIENTS = 3
#: Seconds of a gradient beyond which a few milliseconds of a process group do not matter, and
#: 18 more gradients would.
LONGEST_GRADIENT_S = 0.25
#: Arrays of the model's size that DistributedDataParallel takes: buckets, and copies at its start.
GROUP_ARRAYS = 3
#: Those of other optimizers, and of servers with these. Without room for them, servers and messages
#: are timed with so many parameters, and the updates of other optimizers count as those of SGD.
OTHER_ARRAYS = 7
FEW_PARAMETERS = 1 << 20


def measure(
    loop: StepLoop,
    gradient: Callable[[], float],
    backend: Any,
    probe: MemoryProbe,
    ends: Optional[LoopbackEnds],
) -> StepCosts:
    """Time the parts of a step of this loop, at its batch size.

    The seconds in which a model is built, begins and is evaluated are left out.

    gradient: computes one, and returns its seconds. backend: the framework. ends: None to send no
    messages.
    """
    replica, parameters = loop.replica, int(loop.replica.weights.size)
    quick = gradient() <= LONGEST_GRADIENT_S
    # That one is also at hand for what needs one: a size without enough memory has left none.
    ready = _ready(loop)
    group_cpu_s = _group_cpu_s(loop, backend, probe) if quick else None
    own = loop.optimizer == OWN
    has_room = probe.leaves_room_for(OTHER_ARRAYS * replica.weights.nbytes)
    most = parameters if has_room else min(parameters, FEW_PARAMETERS)
    return StepCosts(
        service_s=update_costs.own_service_s(replica) if own else update_costs.service_s(parameters, most=most),
        messages=own_messages.measure(ends, gradient, most * 4) if ends else (),
        compressors=codec_profile.costs(replica.variables),
        clip_s=update_costs.clip_s(replica),
        optimizers=update_costs.of_others(replica, loop.optimizer) if has_room else {},
        collectives=backend.collectives(),
        ready=ready,
        group_cpu_s=group_cpu_s,
    )


def _ready(loop: StepLoop) -> Tuple[float, ...]:
    """``StepCosts.ready``, the median of several gradients."""
    drawn = [next(loop.batches) for _ in range(READY_GRADIENTS)]
    shares = [loop.replica.ready_shares(_gradient(loop, each)) for each in drawn]
    known = [each for each in shares if each is not None]
    return tuple(np.median(known, axis=0).tolist()) if known else ()


def _gradient(loop: StepLoop, batch: Any) -> Callable[[], Any]:
    return functools.partial(step.gradient, loop.replica, batch, SETTINGS)


def _group_cpu_s(loop: StepLoop, backend: Any, probe: MemoryProbe) -> Optional[float]:
    """``StepCosts.group_cpu_s``; unknown where it would take too much memory."""
    if not (backend.collectives() and probe.leaves_room_for(GROUP_ARRAYS * loop.replica.weights.nbytes)):
        return None

    def draw() -> Callable[[step.ComputePart], Any]:
        return functools.partial(step.combine_parts, loop.replica, next(loop.batches), SETTINGS)

    found: Optional[float] = backend.group_cpu_s(loop.replica, draw)
    return found
