"""A user's job trains in its framework: regression, several inputs, frozen parameters."""

import contextlib
import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from backends.agent.main import AgentTask
from backends.data import background
from backends.data.loader import BatchSource
from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN, GradientSettings, OptimizerSettings
from backends.jobs.failure import JobFailure
from backends.profiling import step_profile
from backends.profiling.step_loop import StepLoop
from backends.protocol.frames import Share
from backends.protocol.member_specs import DataPart, InjectionOrder, JobSpec, MemberSpec, ReplicaSpec
from backends.protocol.orders import TimeSteps
from backends.training.step import evaluate, step
from backends.training.workload import Workload, code_of, member_data, workload
from tests.installed import ROOT, computes_with, needs
from tests.quick import look_often
from tests.running import HANG_S

pytestmark = computes_with("torch")

TORCH = """
import time
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

x = torch.linspace(-1, 1, 64)[:, None]
y = 3 * x + 1

class Pairs(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, at):
        return x[at], y[at]

class InOrder(IterableDataset):
    def __iter__(self):
        return zip(x, y)

def mae(outputs, targets):
    return (outputs - targets).abs().mean()

def plain(data=None, **others):
    data = Pairs() if data is None else data
    return SimpleNamespace(**{**dict(model=nn.Linear(1, 1), train=data, test=data, loss=nn.functional.mse_loss,
                                     metrics={"mae": mae}), **others})

def tensors():
    return plain(TensorDataset(x, y))

def stream():
    return plain(InOrder())

def pairs_of_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)
            for parameter in self.b.parameters():
                parameter.requires_grad = False
        def forward(self, first, second):
            return self.a(first) + self.b(second)
    return plain([(u, u * u, v) for u, v in zip(x, y)], model=Two())

def unused_parameters():
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)
        def forward(self, first):
            return self.a(first)
    return plain(model=Spare())

def dictionaries():
    data = [{"x": u, "y": v} for u, v in zip(x, y)]
    return plain(data, forward=lambda model, batch: (model(batch["x"]), batch["y"]))

def ragged():
    data = [(u.repeat(1 + at % 3), v) for at, (u, v) in enumerate(zip(x, y))]
    def collate(samples):
        inputs = nn.utils.rnn.pad_sequence([u for u, _ in samples], batch_first=True)
        return inputs.sum(1, keepdim=True), torch.stack([v for _, v in samples])
    return plain(data, collate=collate)

def lazy():
    return plain(model=nn.LazyLinear(1))

class Outputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)
    def forward(self, x):
        return self.a(x), self.b(x)

def several_outputs():
    return plain(model=Outputs(), metrics={"mae": lambda outputs, targets: sum(mae(each, targets) for each in outputs)},
                 loss=lambda outputs, targets: sum(((each - targets) ** 2).mean() for each in outputs))

def normalised():
    return plain(model=nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 1)))

class Slow(Pairs):
    def __getitem__(self, at):
        time.perf_counter.read()
        return super().__getitem__(at)

class SlowInOrder(IterableDataset):
    def __iter__(self):
        return map(Slow().__getitem__, range(64))

def slow():
    return plain(Slow())

def slow_stream():
    return plain(SlowInOrder())

def adam():
    return plain(optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.1),
                 scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 40, 0.5))

def no_optimizer():
    return plain(optimizer=lambda parameters: 3)

def many_losses():
    return plain(loss=lambda outputs, targets: (outputs - targets) ** 2)

def frozen():
    model = nn.Linear(1, 1)
    for parameter in model.parameters():
        parameter.requires_grad = False
    return plain(model=model)

def no_module():
    return plain(model=len)

def single_tensors():
    return plain(list(x))

def empty():
    return plain([])

def numbers_instead_of_a_loss():
    return plain(loss=lambda outputs, targets: 3.0)

def a_loss_of_nothing():
    return plain(loss=lambda outputs, targets: ((outputs - targets) ** 2).mean().detach())

def a_word_as_metric():
    return plain(metrics={"mae": lambda outputs, targets: "good"})

def needs_training():
    return plain(forward=lambda model, batch, training: (model(batch[0]), batch[1]))

def outputs_only():
    return plain(forward=lambda model, batch: model(batch[0]))

def doubles():
    return plain(model=nn.Linear(1, 1).double())

def one_pass():
    return plain(iter([(u, v) for u, v in zip(x, y)]))

def a_dictionary():
    return plain({"x": x, "y": y})

def other_test_samples():
    return plain(test=[(torch.zeros(2), v) for v in y])

def unequal_samples():
    return plain([(u.repeat(1 + at % 3), v) for at, (u, v) in enumerate(zip(x, y))])

def other_parameters():
    return plain(optimizer=lambda parameters: torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1))

def with_a_closure():
    return plain(optimizer=lambda parameters: torch.optim.LBFGS(parameters))

def no_scheduler():
    return plain(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1), scheduler=lambda optimizer: None)

def with_a_metric():
    return plain(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1),
                 scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau)

def labels_beyond():
    labels = torch.zeros(64, dtype=torch.long)
    labels[40] = 12
    return plain(TensorDataset(x, labels), model=nn.Linear(1, 10), loss=nn.functional.cross_entropy,
                 metrics={"mae": lambda outputs, targets: 0.0})

class Tens(Pairs):
    opened = 0
    def __init__(self):
        self.targets = [at % 10 for at in range(64)]
    def __getitem__(self, at):
        Tens.opened += 1
        return super().__getitem__(at)

def labelled():
    return plain(Tens(), test=Pairs())

def wrong_width():
    return plain(model=nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(9, 1)))

def breaks_later():
    class Broken(Pairs):
        def __getitem__(self, at):
            if at > 5:
                raise OSError("no such picture")
            return super().__getitem__(at)
    return plain(Broken())
"""

TENSORFLOW = """
import time
from types import SimpleNamespace

import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
y = 3 * x + 1

def plain(**others):
    data = tf.data.Dataset.from_tensor_slices((x, y))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    return SimpleNamespace(**{**dict(model=model, train=data, test=data, loss=tf.keras.losses.MeanSquaredError(),
                                     metrics={"mae": lambda outputs, targets: tf.reduce_mean(abs(outputs - targets))}),
                              **others})

def batched():
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(7)
    return plain(train=data, test=data)

def dictionaries():
    data = tf.data.Dataset.from_tensor_slices({"x": x, "y": y})
    def forward(model, batch):
        return model(batch["x"]), batch["y"]
    return plain(train=data, test=data, forward=forward)

def pairs_of_inputs():
    first, second = tf.keras.Input((1,)), tf.keras.Input((1,))
    model = tf.keras.Model([first, second], tf.keras.layers.Dense(1)(tf.keras.layers.Concatenate()([first, second])))
    data = tf.data.Dataset.from_tensor_slices((x, x * x, y))
    return plain(model=model, train=data, test=data)

def adam():
    return plain(optimizer=lambda variables: tf.keras.optimizers.Adam(0.1))

def several_outputs():
    given = tf.keras.Input((1,))
    model = tf.keras.Model(given, [tf.keras.layers.Dense(1)(given), tf.keras.layers.Dense(1)(given)])
    def mae(outputs, targets):
        return sum(tf.reduce_mean(abs(each - targets)) for each in outputs)
    def loss(outputs, targets):
        return sum(tf.reduce_mean((each - targets) ** 2) for each in outputs)
    return plain(model=model, loss=loss, metrics={"mae": mae})

def normalised():
    return plain(model=tf.keras.Sequential([tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]))

def frozen_layer():
    still = tf.keras.layers.Dense(1, use_bias=False, trainable=False)
    return plain(model=tf.keras.Sequential([still, tf.keras.layers.Dense(1)]))

def frozen_base():
    layers = tf.keras.layers
    base = tf.keras.Sequential([layers.BatchNormalization(), layers.Dense(1)])
    base.layers[1].trainable = False
    return plain(model=tf.keras.Sequential([base, layers.Dense(1)]))

def slow():
    def samples():
        for sample in zip(x, y):
            time.perf_counter.read()
            yield sample
    shape = tf.TensorSpec((1,))
    data = tf.data.Dataset.from_generator(samples, output_signature=(shape, shape))
    return plain(train=data, test=data)

def no_dataset():
    return plain(train=(x, y))

def outputs_only():
    return plain(forward=lambda model, batch: model(batch[0]))

def told_of_training():
    def forward(model, batch, *, training):
        return model(batch[0], training=training), batch[1]
    return plain(forward=forward)

def a_loss_of_nothing():
    return plain(loss=lambda outputs, targets: tf.reduce_mean(tf.stop_gradient(outputs - targets) ** 2))

def one_layer_aside():
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.used, self.aside = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)
        def call(self, given):
            self.aside(given)
            return self.used(given)
    return plain(model=Model())

def halves():
    return plain(model=tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float16")]), metrics={})

def no_optimizer():
    return plain(optimizer=lambda variables: 3)

def other_test_samples():
    return plain(test=tf.data.Dataset.from_tensor_slices((np.zeros((3, 7), np.float32), y[:3])))

def breaks_later():
    def rows():
        for at in range(64):
            if at > 20:
                raise OSError("no such row")
            yield x[at], y[at]
    signature = (tf.TensorSpec((1,)), tf.TensorSpec((1,)))
    return plain(train=tf.data.Dataset.from_generator(rows, output_signature=signature))
"""


@pytest.fixture(autouse=True)
def _stay_here(monkeypatch):
    monkeypatch.chdir(os.getcwd())


def loaded(folder: Path, name: str, kind: str = "torch") -> Workload:
    (folder / "task.py").write_text(TORCH if kind == "torch" else TENSORFLOW)
    return workload(ReplicaSpec(kind, f"task.py:{name}", job=JobSpec(f"task.py:{name}", str(folder), "task", name)))


def learned(found: Workload, steps: int = 150) -> tuple[float, float]:
    """The mean absolute errors of the test data before and after some steps."""
    member = MemberSpec("a", found.spec, "", "", 16, 1)
    batches, test = member_data(member, found, lambda path: b"", str).data
    replica = found.build().replica
    before = evaluate(replica, test).metrics["mae"]
    for _ in range(steps):
        step(replica, batches, GradientSettings(0.2))
        replica.update(OptimizerSettings(momentum=0.5))
    return before, evaluate(replica, test).metrics["mae"]


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "stream",
        "pairs_of_inputs",
        "dictionaries",
        "ragged",
        "lazy",
        "several_outputs",
        "normalised",
    ],
)
def test_a_job_of_torch_learns(tmp_path, name) -> None:
    before, after = learned(loaded(tmp_path, name))
    assert after < before / 2


@needs("tensorflow")
@pytest.mark.parametrize(
    "name",
    ["plain", "batched", "dictionaries", "pairs_of_inputs", "several_outputs", "told_of_training", "one_layer_aside"],
)
def test_so_does_one_of_tensorflow(tmp_path, name) -> None:
    before, after = learned(loaded(tmp_path, name, "tensorflow"))
    assert after < before / 3


class ReadingClock:
    """Stands still but for samples that are read, a quarter of a second each, when asked for.

    So what TensorFlow reads ahead in threads of its own always waits for the next step.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.asked = threading.Semaphore(1000)  # while the job is loaded

    def __call__(self) -> float:
        return self.now_s

    def read(self) -> None:
        self.asked.acquire()
        self.now_s += 0.25


class Asking(BatchSource):
    """Batches of a source, whose samples are read when they are asked for and not before."""

    def __init__(self, source: BatchSource, clock: ReadingClock) -> None:
        self._source, self._clock, self.batch = source, clock, source.batch
        while clock.asked.acquire(blocking=False):
            pass

    def __next__(self) -> object:
        for _ in range(self.batch):
            self._clock.asked.release()
        return next(self._source)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("slow", "torch"), ("slow_stream", "torch"), pytest.param("slow", "tensorflow", marks=needs("tensorflow"))],
)
def test_what_a_step_waits_for_its_data_is_measured(tmp_path, monkeypatch, name, kind) -> None:
    clock = ReadingClock()
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(background, "WORTH_S", float("inf"))  # nothing is read ahead
    found = loaded(tmp_path, name, kind)
    batches, _ = member_data(MemberSpec("a", found.spec, "", "", 8, 1), found, lambda path: b"", str).data
    loop = StepLoop(found.build().replica, Asking(batches, clock))
    try:
        assert [loop.step() for _ in range(3)] == [(2.0, 0.0, 0.0)] * 3
        assert loop.data_s == 2.0
    finally:
        clock.asked.release(1000)  # else a thread of TensorFlow would wait for ever


def own_steps(found: Workload, steps: int, state: np.ndarray | None = None) -> tuple[Replica, list[float]]:
    """A replica after some steps with the job's own optimizer, and the losses on the way."""
    batches, _ = member_data(MemberSpec("a", found.spec, "", "", 64, 1), found, lambda path: b"", str).data
    replica = found.build().replica
    if state is not None:
        replica.set_own_state(state)
    losses = []
    for _ in range(steps):
        losses.append(step(replica, batches, GradientSettings(1.0)).loss)
        replica.update(OptimizerSettings(kind=OWN))
    replica.fetch()
    return replica, losses


@pytest.mark.parametrize("kind", [pytest.param("torch"), pytest.param("tensorflow", marks=needs("tensorflow"))])
def test_a_job_may_bring_its_optimizer(tmp_path, kind) -> None:
    replica, losses = own_steps(loaded(tmp_path, "adam", kind), 60)
    assert losses[-1] < losses[0] / 20
    again, _ = own_steps(loaded(tmp_path, "adam", kind), 30)
    other = loaded(tmp_path, "adam", kind).build().replica
    other.set_own_state(again.own_state())
    np.copyto(other.weights, again.weights)
    other.load()
    assert other.own_state().size == again.own_state().size > 0
    weights, gradients = again.weights.copy(), np.ones_like(again.weights)
    other_weights = weights.copy()
    again.own_step(weights, gradients.copy())
    other.own_step(other_weights, gradients.copy())
    np.testing.assert_allclose(weights, other_weights, rtol=1e-5)
    assert not np.array_equal(weights, replica.weights)


@pytest.fixture
def brief(monkeypatch) -> None:
    """Steps are timed briefly."""
    look_often(monkeypatch)


class Hurried(AgentTask):
    """A task of profiling that is told to go on from the first."""

    def __init__(self) -> None:
        super().__init__(lambda event: None)
        self.go.set()


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("kind", [pytest.param("torch"), pytest.param("tensorflow", marks=needs("tensorflow"))])
@pytest.mark.parametrize(("name", "others"), [("adam", {"sgd", "adam", "lars"}), ("plain", {"adam", "lars"})])
def test_its_profile_has_the_updates_of_its_own_optimizer_beside_the_planners(
    brief, tmp_path, kind, name, others
) -> None:
    found = step_profile.time_steps(Hurried(), TimeSteps(loaded(tmp_path, name, kind).spec, 8, "adaptive"))
    assert found.setup.own_optimizer == (name == "adam") and set(found.costs.optimizers) == others
    for samples in (found.costs.service_s, *found.costs.optimizers["adam"]):
        assert len(samples.values) >= 2 and min(samples.values) > 0


@pytest.mark.usefixtures("brief")
def test_parameters_that_are_not_used_keep_it_from_no_profile(tmp_path) -> None:
    found = step_profile.time_steps(Hurried(), TimeSteps(loaded(tmp_path, "unused_parameters").spec, 8, "adaptive"))
    assert (found.size.parameters, len(found.costs.ready), found.costs.group_cpu_s) == (4, 4, None)
    assert len(found.gradient_s.values) >= 2


def test_its_scheduler_makes_a_step_with_it(tmp_path) -> None:
    replica, _ = own_steps(loaded(tmp_path, "adam"), 41)
    saved = replica.own_state()
    assert replica._own._optimizer.param_groups[0]["lr"] == 0.05
    fresh = loaded(tmp_path, "adam").build().replica
    fresh.set_own_state(saved)
    assert fresh._own._optimizer.param_groups[0]["lr"] == 0.05


def test_a_job_without_one_cannot_be_asked_for_it(tmp_path) -> None:
    with pytest.raises(ValueError, match="the job has no optimizer of its own; choose one with --optimizer"):
        own_steps(loaded(tmp_path, "plain"), 1)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("torch", "torch.optim optimizer"), pytest.param("tensorflow", "Keras optimizer", marks=needs("tensorflow"))],
)
def test_what_is_no_optimizer_is_refused(tmp_path, kind, wanted) -> None:
    message = f"^the job cannot be used: its optimizer returns a value of type int; it must return a {wanted}"
    with pytest.raises(JobFailure, match=message):
        own_steps(loaded(tmp_path, "no_optimizer", kind), 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other_parameters", "its optimizer holds none of the parameters that it is given"),
        ("with_a_closure", r"its optimizer returns a value of type LBFGS; .* whose step\(\) needs no argument"),
        ("no_scheduler", r"its scheduler returns None; .* whose step\(\) needs no argument"),
        ("with_a_metric", "its scheduler returns a value of type ReduceLROnPlateau"),
    ],
)
def test_so_is_what_could_make_no_step_or_would_train_nothing(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match="^the job cannot be used: " + message):
        own_steps(loaded(tmp_path, name), 1)


@pytest.mark.parametrize("kind", [pytest.param("torch"), pytest.param("tensorflow", marks=needs("tensorflow"))])
def test_a_loss_without_a_gradient_is_refused(tmp_path, kind) -> None:
    with pytest.raises(JobFailure, match="cannot be used: the loss does not depend on the trained parameters"):
        learned(loaded(tmp_path, "a_loss_of_nothing", kind), 1)


def test_test_samples_that_do_not_fit_are_found_before_the_first_step(tmp_path) -> None:
    with pytest.raises(JobFailure, match="shapes cannot be multiplied"):
        loaded(tmp_path, "other_test_samples")


def test_a_damaged_state_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="the state of the job's optimizer cannot be read"):
        own_steps(loaded(tmp_path, "adam"), 1, np.zeros(20, np.uint8))


@pytest.mark.parametrize(
    ("name", "kind", "state", "frozen"),
    [
        ("normalised", "torch", ["0.running_mean", "0.running_var"], 0),
        pytest.param("normalised", "tensorflow", ["0_moving_mean", "1_moving_variance"], 0, marks=needs("tensorflow")),
        pytest.param("frozen_layer", "tensorflow", ["0_kernel"], 1, marks=needs("tensorflow")),
        pytest.param(
            "frozen_base", "tensorflow", ["0_kernel", "1_bias", "2_moving_mean", "3_moving_variance"], 2,
            marks=needs("tensorflow"),
        ),
    ],
)  # fmt: skip
def test_what_is_not_trained_is_state_of_which_steps_change_what_is_not_frozen(
    tmp_path, name, kind, state, frozen
) -> None:
    found = loaded(tmp_path, name, kind)
    replica = found.build().replica
    assert [variable.name for variable in replica.state_variables] == state
    assert len(replica.variables) == (2 if name == "frozen_layer" else 4)
    assert (replica.frozen, replica.changing.size) == (frozen, len(state) - frozen)
    before = replica.state.copy()
    batch = next(member_data(MemberSpec("a", found.spec, "", "", 16, 1), found, lambda path: b"", str).data[0])
    replica.gradient(batch)
    replica.keep_state()
    replica.fetch()
    assert (replica.state[:frozen] == before[:frozen]).all() and (replica.changing != before[frozen:]).all()
    np.testing.assert_array_equal(replica.kept_state(), replica.changing)
    scores = replica.evaluate(batch)
    replica.state[:frozen] += 1.0
    replica.load_frozen()
    assert (replica.evaluate(batch) != scores) == (frozen > 0)


def test_members_draw_from_parts_of_their_own(tmp_path) -> None:
    found = loaded(tmp_path, "plain")
    drawn = []
    for member in range(2):
        spec = MemberSpec("a", found.spec, "", "", 4, 1, DataPart((3.0, 1.0), member, 7))
        batches, _ = member_data(spec, found, lambda path: b"", str).data
        drawn.append({round(float(value), 5) for _ in range(12) for value in next(batches)[0]})
    assert len(drawn[0]) == 48 and len(drawn[1]) == 16 and not drawn[0] & drawn[1]


def own_data(found, partition, member=0):
    part = DataPart((3.0, 1.0), member, 7, partition, ("b", "a"))
    return member_data(MemberSpec("a", found.spec, "", "", 4, 1, part), found, lambda path: b"", str)


def test_members_hold_labels_of_their_own_and_agree_on_the_division(tmp_path) -> None:
    found = loaded(tmp_path, "labelled")
    opened = found.brought.train._items.opened
    both = [own_data(found, "labels=5", member) for member in range(2)]
    assert found.brought.train._items.opened == opened  # no sample is read for its label
    assert [len(own.labels) for own in both] == [5, 5] and not both[0].labels.keys() & both[1].labels.keys()
    assert sum(sum(own.labels.values()) for own in both) == 64
    assert both[0].division == both[1].division != ""
    drawn = {round(float(value), 5) for _ in range(20) for value in next(both[1].data[0])[0]}
    assert len(drawn) == sum(both[1].labels.values())


@pytest.mark.parametrize(
    ("name", "kind", "partition", "message"),
    [
        ("plain", "torch", "labels=1", "which does not tell its labels; give it an attribute targets with one label"),
        ("tensors", "torch", "labels=1", "targets of type float32 are no labels; .*, or leave --partition out"),
        ("stream", "torch", "dirichlet=1", "its train is read in order, and not by position; .*leave --partition out"),
        ("labelled", "torch", "dirichlet=0.0001", "it leaves no sample to [ab]; give a larger ALPHA"),
        pytest.param("plain", "tensorflow", "labels=1", "is read in order, and not", marks=needs("tensorflow")),
    ],
)
def test_data_that_cannot_be_divided_by_label_are_refused(tmp_path, name, kind, partition, message) -> None:
    found = loaded(tmp_path, name, kind)
    if name == "labelled":
        found.brought.train._items.targets = [0] * 64  # a single label, which one of two devices gets
    with pytest.raises(JobFailure, match=f"^--partition {partition}: .*{message}"):
        own_data(found, partition)


def injected(found: Workload, inject: str = "alpha=1,beta=0.5") -> BatchSource:
    order = InjectionOrder(inject, 1, "aside")
    member = MemberSpec("a", found.spec, "", "", 8, 1, DataPart((3.0, 1.0), 0, 7), injection=order)
    return member_data(member, found, lambda path: b"", str).data[0]


@pytest.mark.parametrize("name", ["plain", "tensors"])
def test_a_job_takes_in_samples_of_another_device_and_learns_from_them(tmp_path, name) -> None:
    found = loaded(tmp_path, name)
    giver, taker = injected(found), injected(found)
    giver.injection.begin_step(Share(4, ("a",)))
    own = next(giver)
    given = giver.injection.take_given(through_server=True)
    assert len(given.payloads) == 4
    taker.injection.receive(given.payloads)
    samples, targets = next(taker)
    assert samples.shape == targets.shape == (8, 1) and samples.dtype == np.float32
    assert {float(value) for value in samples[4:, 0]} <= {float(value) for value in own[0][:, 0]}
    taker.injection.receive(given.payloads)
    replica = found.build().replica
    assert np.isfinite(step(replica, taker, GradientSettings(0.1)).loss)
    assert taker.injection.statistics().used == 8


def test_samples_that_are_read_in_order_or_are_no_tuples_cannot_be_given_to_others(tmp_path) -> None:
    for name in ("stream", "dictionaries"):
        with pytest.raises(JobFailure, match="^--inject alpha=1,beta=0.5: only samples .*; leave --inject out"):
            injected(loaded(tmp_path, name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("many_losses", "its loss gives 2 numbers for a batch"),
        ("frozen", "no parameter that is trained"),
        ("no_module", "its model is a value of type builtin_function_or_method"),
        ("single_tensors", "a batch of its data is a value of type Tensor and not"),
        ("empty", "^the job cannot be used: its train is empty"),
        ("numbers_instead_of_a_loss", "its loss gives a value of type float; it must give a tensor"),
        ("a_word_as_metric", "its metric mae gives a value of type str; it must give one number"),
        ("needs_training", r"its forward takes \(model, batch, training\), and must take model and batch"),
        ("outputs_only", "its forward returns a value of type Tensor; it must return outputs and targets"),
        ("doubles", r"its model's parameter weight is torch.float64, .* call model.float\(\)"),
        ("one_pass", "its train is a value of type list_iterator, which can be read only once"),
        ("a_dictionary", "its train is a value of type dict; give a torch.utils.data.Dataset"),
        ("unequal_samples", "no batch can be made of its samples: .*; give samples of one shape, or the job a collate"),
    ],
)
def test_a_job_that_returns_the_wrong_thing_is_refused(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, name)


def test_a_job_s_function_that_does_not_return_is_named(tmp_path, monkeypatch) -> None:
    limits = []

    @contextlib.contextmanager
    def noted(what):
        limits.append(what)
        yield

    monkeypatch.setattr("backends.training.workload.limited", noted)
    loaded(tmp_path, "plain")
    assert limits == ["the job's function task.py:plain"]


def test_a_folder_of_data_that_is_not_there_is_named_before_the_job_is_called(tmp_path) -> None:
    job = JobSpec("task.py:plain", str(tmp_path), "task", "plain", "/none")
    with pytest.raises(ValueError, match="^no folder /none, which the fleet file names as data; copy the set there, "):
        workload(ReplicaSpec("torch", job.text, job=job))


@needs("tensorflow")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_dataset", r"its train is a value of type tuple; give a tf\.data\.Dataset"),
        ("outputs_only", "its forward returns a value of type EagerTensor; it must return outputs and targets"),
        ("halves", "its model's variable 0_kernel is float16, and weights are float32 here"),
        ("other_test_samples", "expected axis -1 of input shape to have value 1"),
    ],
)
def test_so_is_one_of_tensorflow(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, name, "tensorflow")


@needs("tensorflow")
def test_what_a_generator_raises_is_said_and_not_the_node_of_the_graph(tmp_path) -> None:
    found = loaded(tmp_path, "breaks_later", "tensorflow")
    with pytest.raises(JobFailure, match=r"OSError: no such row, at .*task\.py:\d+"), code_of(found.spec):
        learned(found)


def test_a_data_set_that_raises_in_the_middle_is_named_with_its_line(tmp_path) -> None:
    found = loaded(tmp_path, "breaks_later")
    with pytest.raises(JobFailure, match=r"OSError: no such picture, at .*task\.py:\d+"), code_of(found.spec):
        learned(found)


def test_what_the_framework_cannot_use_is_the_jobs_fault(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a GPU notices later, and says less
    found = loaded(tmp_path, "labels_beyond")
    failure = pytest.raises(JobFailure, match=r"IndexError: Target 12 is out of bounds.*, at .*torch.*\.py:\d+")
    with failure, code_of(found.spec):
        learned(found)


def test_a_value_that_a_gpu_cannot_use_is_the_jobs_fault(tmp_path) -> None:
    """In a process of its own, for which the GPU is lost then."""
    if not importlib.import_module("torch").cuda.is_available():
        pytest.skip("no GPU here")
    code = (
        "import pathlib, sys\n"
        "from tests.backends.test_jobs import code_of, learned, loaded\n"
        "found = loaded(pathlib.Path(sys.argv[1]), 'labels_beyond')\n"
        "with code_of(found.spec): learned(found)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert "JobFailure: the job cannot be used: task.py:labels_beyond gave the GPU a value that is out" in ran.stderr


def test_an_error_in_none_of_the_users_files_names_the_jobs_function(tmp_path) -> None:
    message = r"^RuntimeError: mat1 and mat2 .*, with what task\.py:wrong_width gave, at .*linear\.py:\d+$"
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, "wrong_width")
