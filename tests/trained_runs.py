"""Run folders as `planner train` leaves them, made by a few steps on real images."""

import contextlib
import importlib
from pathlib import Path
from typing import Any

import numpy as np

from backends import models
from backends.data import dataset
from backends.data.dataset import Dataset
from backends.frameworks.base import FRAMEWORKS, Replica, layout_of
from backends.frameworks.optimizer import MOMENTUM, OptimizerSettings
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from backends.training import checkpoint
from backends.training.workload import workload
from planner.jobs.reference import find_job
from planner.json_records import save
from planner.paths import RunFolder
from planner.train.orders import Options
from tests.planner.plans import replan
from tests.running import FASHION, plan_file

STEPS = 3


def images(input_shape: tuple[int, ...] = (28, 28, 1)) -> Dataset:
    """Real images, with a border and equal channels where the model takes larger ones or more."""
    found = dataset.load(str(FASHION))
    if found.input_shape == input_shape:
        return found
    height, width, channels = input_shape

    def fitted(some: np.ndarray) -> np.ndarray:
        padded = np.pad(some, ((0, 0), (0, height - 28), (0, width - 28), (0, 0)))
        return np.repeat(padded, channels, 3)

    return found._replace(train_images=fitted(found.train_images[:64]), test_images=fitted(found.test_images[:64]))


def trained_folder(
    folder: Path, model: str, framework: str = "torch", input_shape: tuple[int, ...] = (28, 28, 1)
) -> tuple[RunFolder, Replica]:
    """A run of a few steps, and the replica that made them."""
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    data = images(input_shape)
    own = models.is_user_model(model)
    replica: Any = importlib.import_module(FRAMEWORKS[framework]).build(
        model, None if own else input_shape, None if own else 10
    )
    for step in range(STEPS):
        part = slice(8 * step, 8 * step + 8)
        replica.gradient((data.train_images[part], data.train_labels[part]), 0.001)
        replica.update(OptimizerSettings(momentum=0.0))
    replica.fetch()
    meta = {
        "model": model, "framework": framework, "step": STEPS, "evaluations": [],
        "input_shape": list(input_shape), "classes": 10, "image_dtype": "uint8",
    }  # fmt: skip
    slots = {MOMENTUM: np.zeros_like(replica.weights)}
    kept = checkpoint.Checkpoint(replica.weights, slots, replica.state, meta, layout_of(replica))
    checkpoint.write(str(run.checkpoint), kept)
    known = None if own else models.fingerprint(models.model(model, input_shape, 10))
    plan_file(run.plan, model, ["desktop"], STEPS, known, {"desktop": framework})
    save(Options(str(FASHION)), run.options)
    return run, replica


def probabilities(replica: Replica, some: np.ndarray) -> np.ndarray:
    """What the replica's evaluation gives each class of each image, (count, classes).

    An image's loss, taken for a class, is the negative logarithm of the class's probability.
    """
    losses = [
        [replica.evaluate((image[None], np.array([label])))[0] for label in range(replica.classes)] for image in some
    ]
    return np.exp(-np.array(losses))


def trained_job_folder(folder: Path, job: str, framework: str = "torch", seed: int = 0) -> RunFolder:
    """A run of a job, with weights and state that its function does not make.

    job: FILE.py:function, seen from the present folder.
    """
    folder.mkdir(parents=True)
    run, found = RunFolder(folder), find_job(job)
    spec = JobSpec(job, str(found.project.folder.resolve()), found.module, found.function)
    with contextlib.chdir(Path.cwd()):
        replica = workload(ReplicaSpec(framework, job, seed=seed, job=spec)).build().replica
    replica.fetch()
    weights, state = (
        some + np.linspace(0.1, 0.2, some.size, dtype=np.float32) for some in (replica.weights, replica.state)
    )
    meta = {"model": job, "framework": framework, "step": STEPS, "evaluations": []}
    checkpoint.write(
        str(run.checkpoint.resolve()),
        checkpoint.Checkpoint(weights, {MOMENTUM: np.zeros_like(weights)}, state, meta, layout_of(replica)),
    )
    replan(plan_file(run.plan, job, ["a"], STEPS, found.fingerprint, {"a": framework}), job=True)
    save(Options(seed=seed), run.options)
    return run
