"""The inputs of the model: what each device takes alone, and what each pair of devices takes alone.

All that a prediction reads is in ``Inputs``. Members of a cluster hold one another up; how, is what
the kinds of exchange model (``planner.predict.kinds``).
"""

from typing import NamedTuple

import numpy as np

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.arrays import Floats
from planner.predict.batches import Batches, RunLength
from planner.predict.buckets import TorchBuckets
from planner.predict.contention import KernelContention
from planner.predict.links import Pairs
from planner.predict.messages import MessageBytes
from planner.predict.stream_waits import StreamRates
from planner.provenance import Provenance


class Devices(NamedTuple):
    """What each of N devices takes by itself, (N,) each.

    gradient_s: a worker's gradient of one batch; image_s: what one more image adds to it.
    data_s: of ``gradient_s``, seconds that it waits for its batch to be read.
    copy_s: copies of a gradient and weights between accelerator and host.
    encode_s, add_s: to choose what one message holds, and to add a peer's.
    update_s: an update of a device that trains alone; service_s: one of a server that it hosts.
    build_s: until the model is built; first_step_s: that the first step takes longer than others.
    cpu_s: processor seconds of a gradient, which a server on the same host competes with; 0 where
        an accelerator computes.
    cores: processor cores that it gets, fractions for quotas.
    in_bytes_per_s, out_bytes_per_s: of its link with all peers at once, infinite where these do not
        slow one another.
    contention: what devices on one kernel are slowed by.
    """

    gradient_s: Floats
    image_s: Floats
    data_s: Floats
    copy_s: Floats
    encode_s: Floats
    add_s: Floats
    update_s: Floats
    service_s: Floats
    build_s: Floats
    first_step_s: Floats
    cpu_s: Floats
    cores: Floats
    in_bytes_per_s: Floats
    out_bytes_per_s: Floats
    contention: KernelContention


class Watts(NamedTuple):
    """Watts of N devices, idle and at full load, (N,) each, NaN where unknown; their sources."""

    idle_w: Floats
    busy_w: Floats
    sources: tuple[Provenance, ...]


class Errors(NamedTuple):
    """Relative standard errors of measured means: (N,) each, link (N, N) [from, to]."""

    gradient: Floats
    contention: Floats
    link: Floats
    idle_w: Floats
    busy_w: Floats
    stream: Floats


class Inputs(NamedTuple):
    """All that the clusters of N devices are predicted from.

    names, frameworks: of the devices, in the order of all arrays.
    message: bytes of the messages.
    torch: buckets of a run by torch.distributed; None for the planner's own engine.
    streams: as which samples arrive; None where they are there from the start.
    """

    names: tuple[str, ...]
    frameworks: tuple[str, ...]
    devices: Devices
    pairs: Pairs
    watts: Watts
    errors: Errors
    message: MessageBytes
    strategy: Strategy
    engine: Engine
    run: RunLength
    batches: Batches
    streams: StreamRates | None = None
    torch: TorchBuckets | None = None

    def over_infinite_links(self) -> "Inputs":
        """The same where messages take what the busier end's processor takes (alpha of Eq. 2)."""
        pairs, cores = self.pairs, np.minimum(1.0, self.devices.cores)  # an end has one thread
        empty_s = np.maximum(pairs.send_cpu_s / cores[:, None], pairs.receive_cpu_s / cores)
        byte_s = np.maximum(pairs.send_cpu_per_byte / cores[:, None], pairs.receive_cpu_per_byte / cores)
        bytes_per_s = np.divide(1.0, byte_s, out=np.full_like(byte_s, np.inf), where=byte_s > 0)
        ends = np.full_like(self.devices.in_bytes_per_s, np.inf)
        return self._replace(
            devices=self.devices._replace(in_bytes_per_s=ends, out_bytes_per_s=ends),
            pairs=pairs._replace(
                latency_s=np.where(pairs.reachable, np.minimum(pairs.latency_s, empty_s), np.inf),
                bytes_per_s=np.maximum(pairs.bytes_per_s, bytes_per_s),
            ),
        )
