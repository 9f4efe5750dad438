"""A member of a group over torch.distributed, as a program: its arguments are one JSON object.

It makes steps on its own batches and leaves what it learnt in a file. ``leaves_after``: it ends
without a word after so many steps, as one that is killed. ``shards``: numbers of samples of each
member, which takes its batches from these as a run does; without it batches are drawn.
``checkpointing``: of activations. ``penalised``: the loss has the squares of the weights.
"""

import functools
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from backends.data import loader
from backends.data.micro_batches import padded
from backends.frameworks.base import Replica
from backends.frameworks.model_share import ModelShare
from backends.frameworks.optimizer import OptimizerSettings
from backends.frameworks.process_group import GroupError, GroupSettings
from backends.jobs.failure import JobFailure
from backends.models.layers import Dense, Flatten, Relu
from backends.network import framing
from backends.pytorch import known_job, process_group, require_process_group, sharded_replica
from backends.pytorch.replica import TorchReplica
from backends.training.step import combine_parts
from tests.backends.fakes import CLASSES, images, split
from tests.backends.rank_run import drawn
from tests.backends.replicas import NORMALISED, PLAIN, WIDE

#: Of 60 MB, in blocks of 4 MB.
DEEP = PLAIN._replace(layers=(Flatten(), Dense(1000), *[Relu(), Dense(1000)] * 15, Relu(), Dense(CLASSES)))
MODELS = {"plain": PLAIN, "normalised": NORMALISED, "wide": WIDE, "deep": DEEP}


def limit_memory(more_bytes: int) -> None:
    """Let this process have no more than so many bytes besides what it has."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    limit = 1024 * int(line.split()[1]) + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def learning(kind: str, clip_norm: float | None) -> OptimizerSettings:
    """epsilon: so large that Adam does not magnify the rounding of gradients near 0."""
    return OptimizerSettings(0.05, 0.5, 0.01, kind, epsilon=1e-2, clip_norm=clip_norm)


def main() -> None:
    given = json.loads(sys.argv[1])
    rank, batches = given["rank"], given["batches"]
    require_process_group()
    if "limit" in given:
        limit_memory(given["limit"])
    replica = _replica(given)
    listener = framing.listen("127.0.0.1", given["port"]) if rank == 0 else None
    settings = GroupSettings(
        rank, len(batches), "lo", "127.0.0.1", given["port"], 60.0, 300.0, hook=given.get("hook", "none"), start=2,
        is_sharded=given.get("sharded", False),
    )  # fmt: skip
    group = process_group(settings, listener)
    samples = _samples(given, rank, batches[rank])
    exchanges = []
    learnt = learning(given.get("optimizer", "sgd"), given.get("clip_norm"))
    try:
        group.average_gradients(replica, batches[rank], lambda waits: None)
        for step in range(given["steps"]):
            if step == given.get("leaves_after") and rank == len(batches) - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            batch = split(next(samples), given.get("most", 1000))
            if "most" in given:
                batch = padded(batch, int(group.gather((len(batch.parts),)).max()))
            combine_parts(replica, batch, learnt.in_gradients, functools.partial(group.gradient, replica))
            exchanges.append(group.exchange())
            replica.update(learnt)
    except (GroupError, JobFailure) as error:
        print(error, flush=True)
        os._exit(3)  # what is left of the exchange may wait
    replica.fetch()
    group.average(replica.state)
    weights = replica.whole_weights() if isinstance(replica, ModelShare) else replica.weights
    rows = group.gather((rank, group.beat(rank)))
    np.savez(
        given["left"], weights=weights, state=replica.state, rows=rows,
        exchange_s=[each.exposed_s for each in exchanges],
        hidden_cpu_s=[each.hidden_cpu_s for each in exchanges],
        loss=replica.evaluate(next(samples))[0],
    )  # fmt: skip
    group.close()


def _replica(given: dict) -> Replica:
    job = known_job(MODELS[given.get("model", "plain")], seed=1)
    if given["rank"]:
        for each in job.model.parameters():
            each.data += 1.0  # of no importance: all begin with the first member's
    if given.get("penalised"):  # which uses the parameters of all blocks at once
        loss, model = job.loss, job.model
        job = job._replace(loss=lambda *found: loss(*found) + sum((each**2).sum() for each in model.parameters()))
    replica = sharded_replica(job) if given.get("sharded") else TorchReplica(job)
    if given.get("checkpointing"):
        replica.checkpoint_activations()
    return replica


def _samples(given: dict, rank: int, batch: int) -> Iterator[tuple[np.ndarray, ...]]:
    if "shards" not in given:
        return drawn(rank, batch)
    numbers, labels = images(sum(given["shards"]), 1)
    first = sum(given["shards"][:rank])
    own = slice(first, first + given["shards"][rank])
    return loader.BatchLoader(loader.ArraySamples(numbers[own], labels[own]), batch, seed=rank)


if __name__ == "__main__":
    main()
