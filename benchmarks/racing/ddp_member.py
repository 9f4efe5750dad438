"""A member of torch's DistributedDataParallel over gloo: a system, run on each device of a lab.

With ``average_every`` it makes local steps, and averages all models after so many of them. A
learning rate that falls does so over the seconds of the run.

Reads its orders as a JSON line and says that it is ready; after another line it trains until the
seconds are over, or the first member has reached the target if there is one, and says in JSON lines
what the planner's agents say: evaluations, an account, a window of sensors. A third line ends it.
"""

import json
import math
import sys
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader, SampleSet
from backends.frameworks.base import framework
from backends.jobs.job import ACCURACY
from backends.pytorch.images import scaled
from backends.training.step import evaluate
from profilers.records.json_values import json_value
from profilers.sampling import Sampler

#: PowerSGD compresses from its second step on: the least that it allows with error feedback and
#: warm start.
FIRST_COMPRESSED = 2
#: A bucket that holds all of a model.
ONE_BUCKET_MB = 1000
#: Steps that local SGD exchanges one by one before: a tenth of those of torch's example, which
#: would take half of a run of 40 s at 20 Mbit/s.
FIRST_LOCAL = 10


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    with open(orders["train"], "rb") as train, open(orders["test"], "rb") as test:
        images, tests = (ArraySamples(*dataset.unpack(file.read())) for file in (train, test))
    batches = BatchLoader(images, orders["batch"], orders["seed"])
    rehearse()
    say({"ready": True})
    sys.stdin.readline()
    sampler = Sampler()
    sampler.start()
    member = Member(orders)
    member.train(batches, tests)
    say({"window": json_value(sampler.stop())})
    sys.stdin.readline()
    member.close()


def rehearse() -> None:
    """A step of a single member, before the run, for torch imports much at first use."""
    framework("torch").accelerator()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    module = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(module.parameters(), 0.1, 0.9)
    module(torch.zeros(1, 1)).sum().backward()
    optimizer.step()
    dist.destroy_process_group()


class Member:
    """One replica, and its place among the others."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._orders = orders
        self._began_s = time.monotonic()
        self._cost_s = 0.0
        self._reached = False
        shape = tuple(orders["input_shape"])
        self._replica: Any = framework("torch").build(
            orders["model"], shape, orders["classes"], orders["model_seed"], 1
        )
        place = f"tcp://{orders['address']}:{orders['port']}"
        dist.init_process_group("gloo", init_method=place, rank=orders["rank"], world_size=orders["members"])
        # Local steps would wait in each of them for the first member's batch statistics.
        own_buffers = bool(orders["average_every"])
        # Two buckets at once would fill gloo's two threads with callbacks of PowerSGD, which wait
        # for exchanges that need one of them, for ever.
        bucket_mb = ONE_BUCKET_MB if orders["rank_of_powersgd"] else None
        self._module = DistributedDataParallel(
            self._replica.module, broadcast_buffers=not own_buffers, bucket_cap_mb=bucket_mb
        )
        if orders["rank_of_powersgd"]:
            state = powerSGD_hook.PowerSGDState(
                None, orders["rank_of_powersgd"], start_powerSGD_iter=FIRST_COMPRESSED, random_seed=orders["model_seed"]
            )
            self._module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        self._optimizer: Any = torch.optim.SGD(self._module.parameters(), orders["rate"], orders["momentum"])
        if orders["average_every"]:
            alone, _ = dist.new_subgroups(group_size=1)
            local = post_localSGD_hook.PostLocalSGDState(None, alone, FIRST_LOCAL)
            self._module.register_comm_hook(local, post_localSGD_hook.post_localSGD_hook)
            averager = PeriodicModelAverager(orders["average_every"], warmup_steps=FIRST_LOCAL)
            self._optimizer = PostLocalSGDOptimizer(self._optimizer, averager)

    def train(self, batches: BatchLoader, tests: SampleSet) -> None:
        """Until the first member says that the seconds, evaluations left out, are over."""
        step, evaluated_s = 0, 0.0
        first, members = self._orders["rank"] == 0, self._orders["members"]
        every = max(1, self._orders["average_every"])
        while step % every or not self._over():
            images, labels = next(batches)
            self._set_rate()
            self._optimizer.zero_grad(set_to_none=False)
            functional.cross_entropy(
                self._module(scaled(torch.from_numpy(images))), torch.from_numpy(labels)
            ).backward()
            self._optimizer.step()
            step += 1
            if first and self._trained_s() - evaluated_s >= self._orders["evaluate_s"]:
                evaluated_s = self._trained_s()
                scores = evaluate(self._replica, tests)
                self._cost_s += scores.seconds
                self._reached = scores.metrics[ACCURACY] >= self._orders["target"]
                say({"evaluated": {**scores._asdict(), "step": step * members, "worker": self._orders["name"]}})
        account = {"steps": step * members, "time_s": self._trained_s()}
        say({"account": {**account, "weights": self._weights() if first else None}})

    def _set_rate(self) -> None:
        """The rate of this second."""
        if self._orders["schedule"] == "cosine":
            share = min(1.0, self._trained_s() / self._orders["seconds"])
            for group in self._optimizer.param_groups:
                group["lr"] = self._orders["rate"] * 0.5 * (1.0 + math.cos(math.pi * share))

    def _over(self) -> bool:
        """One number from the first member: all must make the same steps."""
        flag = torch.tensor([float(self._reached or self._trained_s() >= self._orders["seconds"])])
        dist.broadcast(flag, 0)
        return bool(flag.item())

    def _trained_s(self) -> float:
        return time.monotonic() - self._began_s - self._cost_s

    def _weights(self) -> str:
        path: str = self._orders["weights"]
        # An average gives parameters memory of their own.
        trained = [each.detach().numpy().ravel() for each in self._replica.module.parameters() if each.requires_grad]
        np.save(path, np.concatenate([*trained, self._replica.state]))
        return path

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()


def say(event: dict[str, Any]) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
