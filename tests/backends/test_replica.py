"""What every framework's replicas must do (backends.frameworks.base.Replica)."""

import numpy as np
import pytest

from backends import models
from backends.data import dataset as data
from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks import base
from backends.frameworks.optimizer import ADAM, ADAMW, MOMENTUM, SGD, GradientSettings, OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.models import shapes
from backends.optimizers import registry, sgd
from backends.training.step import gradient
from tests.backends.fakes import split
from tests.backends.replicas import NORMALISED, SMALL, batch_for, by_every_framework, close

pytestmark = by_every_framework


@pytest.fixture(autouse=True)
def _full_precision(framework, monkeypatch):
    if framework == "torch":
        monkeypatch.setattr("torch.backends.cudnn.allow_tf32", False)


def build(framework, *args, **options):
    return base.framework(framework).build(*args, **options)


def rounding(replica) -> float:
    """A GPU adds in no fixed order."""
    return 0.0 if replica.accelerator == "cpu" else 1e-4


def gradients(replica, *args):
    replica.gradient(*args)
    replica.fetch()
    return replica.gradients.copy()


@pytest.mark.parametrize("name", [*SMALL, "resnet50"])
def test_a_model_has_the_variables_its_description_promises(framework, name):
    description = models.model(name, (32, 32, 3), 10)
    replica = build(framework, name, (32, 32, 3), 10, seed=1)
    trace = shapes.trace(description)
    assert tuple((place.name, place.shape) for place in replica.variables) == trace.variables
    assert tuple((place.name, place.shape) for place in replica.state_variables) == trace.state
    assert replica.weights.shape == replica.gradients.shape == (models.parameter_count(description),)
    ends = [place.start + place.size for place in replica.variables]
    assert [place.start for place in replica.variables] == [0] + ends[:-1]
    np.testing.assert_array_equal(replica.weights, models.initial_weights(description, 1))


def test_the_state_that_was_kept_does_not_change_with_the_next_gradient(framework):
    replica = build(framework, NORMALISED)
    for step in range(3):  # the first is kept before any gradient
        replica.keep_state()
        replica.fetch()
        expected = replica.state.copy()
        replica.gradient(batch_for(replica, seed=step))
        replica.fetch()
        assert not np.array_equal(replica.state, expected)
        np.testing.assert_array_equal(replica.kept_state(), expected)
        replica.update(OptimizerSettings())


def test_the_host_buffers_stay_where_they_are(framework):
    replica = build(framework, "resnet")
    buffers = replica.weights, replica.gradients, replica.state
    for _ in range(2):
        replica.gradient(batch_for(replica))
        replica.update(OptimizerSettings(momentum=0.9))
        replica.fetch()
        replica.load()
    assert all(
        now is before for now, before in zip((replica.weights, replica.gradients, replica.state), buffers, strict=True)
    )
    assert all(buffer.flags.writeable and buffer.dtype == np.float32 for buffer in buffers)


def test_gradients_are_scaled_by_the_rate_and_hold_the_decay(framework):
    replica = build(framework, "cipher", seed=2)
    batch = batch_for(replica)
    plain = gradients(replica, batch)
    close(gradients(replica, batch, 0.3), 0.3 * plain, 1e-5)
    close(gradients(replica, batch, 0.3, 0.02), 0.3 * (plain + 0.02 * replica.weights), 1e-5)


def test_gradients_of_parts_add_up_to_those_of_the_batch_and_are_clipped_by_their_norm(framework):
    replica = build(framework, "cipher", seed=2)
    batch = batch_for(replica, 10)
    whole = gradients(replica, batch)
    assert replica.gradient_norm() == pytest.approx(np.linalg.norm(whole), rel=1e-4)
    for settings in (GradientSettings(), GradientSettings(0.3, 0.02, np.linalg.norm(whole) / 2)):
        loss = gradient(replica, split(batch, 4), settings)
        replica.fetch()
        clipped = whole if settings.clip_norm is None else whole / 2
        close(replica.gradients, settings.rate * (clipped + settings.weight_decay * replica.weights), 1e-4)
        assert loss == pytest.approx(replica.gradient(batch), rel=1e-4)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_native_update_is_what_a_server_does(framework, momentum):
    replica = build(framework, "resnet", seed=3)
    weights, velocity = replica.weights.copy(), np.zeros_like(replica.weights)
    for seed in range(3):
        applied = gradients(replica, batch_for(replica, seed=seed), 0.05)
        sgd.apply(weights, velocity, applied, momentum)
        replica.update(OptimizerSettings(momentum=momentum))
        replica.fetch()
        close(replica.weights, weights, 1e-6)
    if momentum:
        close(replica.slots(SGD)[MOMENTUM], velocity, 1e-6)


@pytest.mark.parametrize("kind", [ADAM, ADAMW])
def test_a_native_adam_is_what_a_server_does_and_goes_on_from_its_slots(framework, kind):
    replica, other = build(framework, "cipher", seed=3), build(framework, "cipher", seed=4)
    optimizer = OptimizerSettings(0.01, 0.0, 0.02, kind, 0.8, 0.95, 1e-6)
    weights, server = replica.weights.copy(), registry.build(kind, replica.variables)
    for step in range(6):
        applied = gradients(replica, batch_for(replica, seed=step)).copy()
        server.apply(weights, applied, optimizer)
        replica.update(optimizer)
        replica.fetch()
        close(replica.weights, weights, 1e-5)
        if step == 2:
            other.weights[:], other.state[:] = replica.weights, replica.state
            other.load()
            other.set_slots(replica.slots(kind))
            replica = other
    for name, values in server.slots.items():
        close(replica.slots(kind)[name], values, 1e-4)


def test_an_update_is_what_the_next_step_computes_with(framework):
    replica, other = (build(framework, "cipher", seed=1) for _ in range(2))
    replica.gradient(batch_for(replica), 0.1)
    replica.update(OptimizerSettings(momentum=0.9))
    replica.fetch()
    other.weights[:] = replica.weights
    other.load()
    batch = batch_for(replica, seed=5)
    close(gradients(replica, batch), gradients(other, batch), rounding(replica))


def test_a_loaded_state_is_what_is_evaluated_and_fetched(framework):
    replica = build(framework, "resnet", seed=1)
    images, labels = batch_for(replica, 16)
    replica.gradient((images, labels))
    replica.fetch()
    seen = replica.evaluate((images, labels))
    moved = replica.state.copy()
    replica.state[:] = 1
    replica.load()
    assert replica.evaluate((images, labels)) != seen
    replica.fetch()
    np.testing.assert_array_equal(replica.state, 1)
    replica.state[:] = moved
    replica.load()
    assert replica.evaluate((images, labels)) == seen


def test_the_same_seed_starts_and_steps_alike(framework):
    results = []
    for seed in (4, 4, 5):
        replica = build(framework, "squeezenet", (28, 28, 1), 10, seed)  # has dropout
        losses = [replica.gradient(batch_for(replica)) for _ in range(2)]
        replica.fetch()
        results.append((losses, replica.gradients.copy()))
    assert results[0][0][0] == results[1][0][0] != results[2][0][0]
    assert results[0][0][0] != results[0][0][1], "each step drops other values"
    close(results[0][1], results[1][1], rounding(replica))


def test_a_small_model_learns_real_images(framework, request):
    dataset = data.load(str(request.config.rootpath / "examples" / "fashion-mnist"))
    replica = build(framework, "cipher", dataset.input_shape, dataset.classes, seed=1)
    batches = BatchLoader(ArraySamples(dataset.train_images, dataset.train_labels), 32, 1)
    test = dataset.test_images[:300], dataset.test_labels[:300]
    _, before = replica.evaluate(test)
    for _ in range(30):
        replica.gradient(next(batches), rate=0.01)
        replica.update(OptimizerSettings(momentum=0.9))
    _, after = replica.evaluate(test)
    assert before[ACCURACY] < 0.25 and after[ACCURACY] > 0.4


def test_model_and_data_must_fit(framework):
    with pytest.raises(ValueError, match="resnet takes images of"):
        build(framework, models.model("resnet"), (28, 28, 1))
    with pytest.raises(ValueError, match="resnet has 10 outputs, the data 7 classes"):
        build(framework, models.model("resnet"), None, 7)


#: Modules in a user's file: one with five outputs, and one whose output is an image.
MODULES = {
    "torch": """
from torch.nn import Flatten, Identity, Linear, Sequential
flat, image = Sequential(Flatten(), Linear(12, 5)), Identity()
""",
    "tensorflow": """
from tensorflow.keras import Sequential, layers
flat, image = Sequential([layers.Flatten(), layers.Dense(5)]), Sequential([layers.ReLU()])
""",
}

FUNCTIONS = """
constant = 3
def build(): return flat, (2, 2, 3)
def no_tuple(): return flat
def no_module(): return 3, (2, 2, 3)
def no_shape(): return flat, (12,)
def no_classes(): return image, (2, 2, 3)
"""


@pytest.fixture
def own(framework, tmp_path):
    (tmp_path / "net.py").write_text(MODULES[framework] + FUNCTIONS)
    return f"{tmp_path}/net.py"


@pytest.mark.parametrize(
    "function, complaint",
    [
        ("constant", "defines no function constant"),
        ("no_tuple", "returned Sequential; it must return"),
        ("no_module", "returned tuple; it must return .*, .height, width, channels"),
        ("no_shape", r"returned input shape \(12,\); it must be \(height, width, channels\)"),
        ("no_classes", r"output must be \(batch, classes\), is \(1, "),
    ],
)
def test_a_users_mistake_is_named(framework, own, function, complaint):
    with pytest.raises(ValueError, match=complaint):
        build(framework, f"{own}:{function}")


def test_a_users_model_and_data_must_fit(framework, own):
    with pytest.raises(ValueError, match=r"takes images of \(2, 2, 3\), the data are \(28, 28, 1\)"):
        build(framework, f"{own}:build", (28, 28, 1))
    with pytest.raises(ValueError, match="has 5 outputs, the data 10 classes"):
        build(framework, f"{own}:build", (2, 2, 3), 10)


def test_it_tells_errors_for_want_of_memory_from_others(framework):
    backend = base.framework(framework)
    own = __import__(framework)
    with pytest.raises(Exception) as short:  # noqa: B017, PT011 - each framework has its own
        own.zeros([1 << 25, 1 << 25])
    assert backend.is_out_of_memory(short.value) and backend.is_out_of_memory(MemoryError())
    assert not backend.is_out_of_memory(RuntimeError("shapes differ"))


def test_memory_of_an_accelerator_is_told_where_there_is_one(framework):
    backend = base.framework(framework)
    backend.forget_peak_memory()
    assert (backend.accelerator_memory() is None) == (backend.accelerator()[0] == "cpu")
