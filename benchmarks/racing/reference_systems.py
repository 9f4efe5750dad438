"""Outside reference systems: which programs they are, and what each of their processes is told.

See ``outside`` for their runs.
"""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backends.data import dataset
from backends.frameworks.base import framework
from planner.plan.file import Plan
from planner.train import orders as training

from . import final_accuracy
from .live_environment import LiveEnvironment
from .racefile import Race
from .records import Setting

#: Names another Python for TensorFlow, where the devices' own has none.
TENSORFLOW_PYTHON = "TENSORFLOW_PYTHON"
#: The devices of a lab have ports to themselves.
PORT = 29500


class Part(NamedTuple):
    """One process, on a device, and what it is told beside what all are told."""

    device: str
    orders: Mapping[str, Any]


class ReferenceSystem(NamedTuple):
    """A reference system that is raced beside the planner.

    program: file beside this one
    waits: whether all processes wait for an evaluation
    python: interpreter, None for that of the device
    parts: processes for a plan, the one that evaluates and reports first
    """

    program: str
    waits: bool
    python: str | None
    parts: Callable[[Plan, LiveEnvironment], list[Part]]


def common(
    setting: Setting, race: Race, live: LiveEnvironment, waits: bool, members: int, folder: Path
) -> dict[str, Any]:
    """What every process is told.

    Images and initial weights, those of the planner's own runs, go into the folder.
    """
    few = final_accuracy.thinned(live.dataset, race.test_images)
    (folder / "test.npz").write_bytes(dataset.pack(few.test_images, few.test_labels))
    (folder / "whole.npz").write_bytes(dataset.pack(few.train_images, few.train_labels))
    replica: Any = framework("torch").build(
        race.model_name, live.dataset.input_shape, live.dataset.classes, setting.seed, 1
    )
    initial = {each.name: replica.weights[each.start : each.start + each.size] for each in replica.variables}
    shapes = {each.name: each.shape for each in replica.variables}
    np.savez(folder / "initial.npz", **{name: part.reshape(shapes[name]) for name, part in initial.items()})
    own = training.TOTAL_MOMENTUM if waits else training.momentum(training.Options(""), members)
    return {
        "members": members, "test": str(folder / "test.npz"),
        "whole": str(folder / "whole.npz"), "initial": str(folder / "initial.npz"),
        "batch": race.batch, "model": race.model_name, "input_shape": live.dataset.input_shape,
        "classes": live.dataset.classes, "model_seed": setting.seed, "rate": setting.rate, "momentum": own,
        "seconds": race.seconds_in(setting.environment), "evaluate_s": race.evaluate_s, "schedule": race.schedule,
        "weights": str(folder / "weights.npy"), "target": race.target if race.ends_at_target else math.inf,
    }  # fmt: skip


def shards(setting: Setting, live: LiveEnvironment, plan: Plan, folder: Path) -> dict[str, dict[str, Any]]:
    """Each device's training images and the seed of their order, as for the planner's workers."""
    images = live.dataset
    dealt = dataset.shards(len(images.train_labels), [1.0] * len(plan.names), setting.seed)
    for name, own in zip(plan.names, dealt, strict=True):
        (folder / f"{name}.npz").write_bytes(dataset.pack(images.train_images[own], images.train_labels[own]))
    return {
        name: {"train": str(folder / f"{name}.npz"), "seed": setting.seed * 1009 + place, "name": name}
        for place, name in enumerate(plan.names)
    }


#: Steps between two averages of torch's local SGD, as many as our rounds of the races have.
PERIOD = 100


def _ddp(powersgd: int = 0, period: int = 0) -> Callable[[Plan, LiveEnvironment], list[Part]]:
    """powersgd: the rank of its approximation, 0 to send all.

    period: steps between two averages of local SGD; 0 to exchange every step.
    """

    def parts(plan: Plan, live: LiveEnvironment) -> list[Part]:
        place = {
            "address": live.fleet.device(plan.names[0]).ssh.host, "port": PORT, "rank_of_powersgd": powersgd,
            "average_every": period,
        }  # fmt: skip
        return [Part(name, {"rank": rank, **place}) for rank, name in enumerate(plan.names)]

    return parts


def _tensorflow(plan: Plan, live: LiveEnvironment) -> list[Part]:
    """The chief and the server where the planner's own server would be."""

    def at(name: str, port: int) -> str:
        return f"{live.fleet.device(name).ssh.host}:{port}"

    cluster = {
        "chief": [at(plan.server, PORT)],
        "ps": [at(plan.server, PORT + 1)],
        "worker": [at(name, PORT + 2) for name in plan.names],
    }
    everyone = {"cluster": cluster, "samples": False}
    return [
        Part(plan.server, {**everyone, "role": "chief"}),
        Part(plan.server, {**everyone, "role": "ps", "index": 0}),
        *(
            Part(name, {**everyone, "role": "worker", "index": index, "samples": True})
            for index, name in enumerate(plan.names)
        ),
    ]


REFERENCE_SYSTEMS = {
    "torch-ddp": ReferenceSystem("ddp_member.py", True, None, _ddp()),
    "torch-ddp-powersgd": ReferenceSystem("ddp_member.py", True, None, _ddp(powersgd=2)),
    "torch-post-local-sgd": ReferenceSystem("ddp_member.py", True, None, _ddp(period=PERIOD)),
    "tensorflow-ps": ReferenceSystem("tensorflow_member.py", False, os.environ.get(TENSORFLOW_PYTHON), _tensorflow),
}
