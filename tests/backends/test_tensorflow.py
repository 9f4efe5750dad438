"""TensorFlow replicas: what is copied and what is not, graphs, plain Keras, users' models."""

import numpy as np
import pytest

from backends import models
from backends.frameworks.base import framework
from backends.frameworks.optimizer import MOMENTUM, SGD, OptimizerSettings
from backends.models.layers import (
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Depthwise,
    Dropout,
    Flatten,
    MaxPool,
    Model,
    Relu,
    Residual,
    Subsample,
)
from tests.backends.replicas import batch_for, close, learns
from tests.installed import computes_with, needs

pytestmark = computes_with("tensorflow")

#: A bit of everything, of sizes that come out even nowhere.
ODD = Model(
    "odd",
    (13, 18, 3),
    5,
    (
        Conv(8, 3, 2, 1),
        BatchNorm(1e-3, 0.3),
        Relu(),
        Depthwise(3, 2, 1),
        Residual((Conv(12, 1, 2, bias=False),), (Subsample(12, 2),)),
        Concat(((AveragePool(3, 1, 1),), (MaxPool(3, 1, 1), Conv(4, 1)))),
        Flatten(),
        Dense(7),
        Relu(),
        Dense(5),
    ),
    "nowhere",
)


@pytest.fixture
def tensorflow():
    """The backend; only a process that runs these tests imports it."""
    return framework("tensorflow")


@pytest.fixture
def on_cpu(tensorflow):
    if tensorflow.accelerator()[0] != "cpu":
        pytest.skip("on a CPU variables use host memory")


def fetched(replica, *batch):
    loss = replica.gradient(batch)
    replica.fetch()
    return loss, replica.gradients.copy(), replica.state.copy()


def memory(variable):
    """What a variable holds, not copied."""
    return variable.read_value().__array__()


def address(variable):
    return memory(variable).ctypes.data


def test_variables_use_the_host_buffer_where_it_is_aligned(tensorflow, on_cpu):
    replica = tensorflow.build("resnet", seed=0)
    for place, variable in zip(replica.variables, replica._trained, strict=True):
        assert place.start % 16 or address(variable) == replica.weights.ctypes.data + 4 * place.start
    first = replica._trained[0]
    replica.weights[0] = 42
    assert memory(first).flat[0] == 42


def test_an_update_leaves_the_host_buffer_and_the_next_load_returns_to_it(tensorflow, on_cpu):
    replica = tensorflow.build("resnet", seed=0)
    first, before = replica._trained[0], replica.weights.copy()
    for _ in range(2):
        replica.gradient(batch_for(replica), rate=0.01)
        replica.update(OptimizerSettings(momentum=0.9))
    np.testing.assert_array_equal(replica.weights, before, "or TensorFlow would copy it before each update")
    replica.fetch()
    np.testing.assert_array_equal(replica.weights[: replica.variables[0].size], memory(first).ravel())
    assert not np.array_equal(replica.weights, before)
    replica.load()
    assert address(first) == replica.weights.ctypes.data


def test_there_is_one_graph_for_each_size_of_batch(tensorflow):
    replica = tensorflow.build("cipher", seed=0)
    for step in range(6):
        replica.gradient(batch_for(replica, 8 if step % 2 else 4), 0.1 / (step + 1), 0.01 * (step + 1))
        replica.update(OptimizerSettings(momentum=0.9))
        replica.fetch()
        replica.load()
        replica.evaluate(batch_for(replica, 8))
    assert replica._learn.experimental_get_tracing_count() == 2
    assert replica._judge.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_device_with_memory_of_its_own_computes_the_same(tensorflow, momentum):
    """Its way through the graph, which is the same on a CPU."""
    description = models.model("resnet")
    near = tensorflow.build(description, seed=3)
    network = tensorflow.layers.Described(description, 3)
    from backends.tensorflow.images import image_job

    far = tensorflow.TensorFlowReplica(image_job(network, description.input_shape, description.classes), "cuda")
    far.weights[:] = near.weights
    far.load()
    velocity = np.linspace(-1e-3, 1e-3, near.weights.size, dtype=np.float32)
    for replica in (near, far):
        replica.set_slots({MOMENTUM: velocity})
        for seed in range(2):
            replica.gradient(batch_for(replica, seed=seed), 0.05, 0.01)
            replica.update(OptimizerSettings(momentum=momentum))
        replica.fetch()
    for kind in ("weights", "gradients", "state"):
        close(getattr(far, kind), getattr(near, kind), 1e-5)
    close(far.slots(SGD)[MOMENTUM], near.slots(SGD)[MOMENTUM], 1e-5)


def keras_cifar10():
    """The CIFAR10 model, written once more in plain Keras, for 32x32x3."""
    import tensorflow as tf

    norm = tf.keras.layers.Lambda(lambda x: tf.nn.local_response_normalization(x, 4, 1.0, 0.001 / 9, 0.75))
    pad = [tf.keras.layers.ZeroPadding2D(1) for _ in range(2)]  # of what ReLU leaves: no zero wins a maximum
    conv = [tf.keras.layers.Conv2D(64, 5, padding="same", activation="relu") for _ in range(2)]
    pool = [tf.keras.layers.MaxPooling2D(3, 2) for _ in range(2)]
    return tf.keras.Sequential(
        [
            tf.keras.Input((32, 32, 3)),
            *(conv[0], pad[0], pool[0], norm),
            *(conv[1], norm, pad[1], pool[1]),
            tf.keras.layers.Permute((3, 1, 2)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(384, activation="relu"),
            tf.keras.layers.Dense(192, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )


def as_keras(values):
    """Kernels and dense weights as Keras has them."""
    return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values.T


def test_gradients_are_those_of_plain_keras(tensorflow):
    import tensorflow as tf

    replica, plain = tensorflow.build("cifar10", seed=3), keras_cifar10()
    arrays = [replica.weights[at.start : at.start + at.size].reshape(at.shape) for at in replica.variables]
    plain.set_weights([as_keras(values) for values in arrays])
    images, labels = batch_for(replica)
    with tf.GradientTape() as tape:
        logits = plain(images.astype(np.float32) * 2 / 255 - 1, training=True)
        expected = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    loss, gradients, _ = fetched(replica, images, labels)
    assert loss == pytest.approx(float(expected), rel=1e-4)
    for at, found in zip(replica.variables, tape.gradient(expected, plain.trainable_variables), strict=True):
        close(as_keras(gradients[at.start : at.start + at.size].reshape(at.shape)), found.numpy())


@needs("torch")
def test_sizes_that_come_out_even_nowhere_are_the_same_as_in_torch(tensorflow):
    expected, found = (backend.build(ODD, seed=2) for backend in (framework("torch"), tensorflow))
    batch = batch_for(expected, 6)
    for got, wanted in zip(fetched(found, *batch), fetched(expected, *batch), strict=True):
        close(np.atleast_1d(got), np.atleast_1d(wanted), 1e-4)
    loss, metrics = expected.evaluate(batch)
    assert found.evaluate(batch) == (pytest.approx(loss, rel=1e-4), pytest.approx(metrics))


def test_dropout_keeps_the_mean_and_drops_the_share(tensorflow):
    import tensorflow as tf

    description = Model("dropping", (10, 10, 10), 1000, (Flatten(), Dropout(0.25)), "nowhere")
    network = tensorflow.layers.Described(description, 1)
    images = tf.ones((50, 10, 10, 10))
    kept = network(images, True, tf.constant(0)).numpy()
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1 / 0.75)}
    assert np.mean(kept == 0) == pytest.approx(0.25, abs=0.01)
    assert not np.array_equal(kept, network(images, True, tf.constant(1)).numpy())
    np.testing.assert_array_equal(network(images, False, tf.constant(0)), 1)


def test_a_second_build_with_other_threads_goes_on_with_the_first_ones(tensorflow):
    """TensorFlow takes no other number of threads once it has computed."""
    import tensorflow as tf

    tensorflow.build(ODD, threads=1)
    first = tf.config.threading.get_intra_op_parallelism_threads()
    replica = tensorflow.build(ODD, threads=first + 1)
    replica.gradient(batch_for(replica))
    assert tf.config.threading.get_intra_op_parallelism_threads() == first


OWN = """
import tensorflow as tf

class Frozen(tf.Module):
    def __init__(self):
        super().__init__()
        self.first = tf.Variable(tf.random.normal((12, 12)), name="first")
        self.bias = tf.Variable(tf.zeros(12), trainable=False, name="bias")
        self.last = tf.Variable(tf.random.normal((12, 5), dtype=tf.float64), name="last")
        self.unused = tf.Variable(tf.ones(2), name="unused")
        self.mask = tf.Variable([0.0, float("-inf")], trainable=False)
        self.count = tf.Variable(0, trainable=False)
    def __call__(self, x):
        y = tf.tanh(tf.reshape(x, (-1, 12)) @ self.first + self.bias)
        return tf.cast(y, tf.float64) @ self.last

class Clipped(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((12, 5)))
    def __call__(self, x):
        return tf.reshape(x, (-1, 12)) @ clipped(self.weight)

@tf.custom_gradient
def clipped(weight):
    return tf.identity(weight), lambda gradient: tf.clip_by_value(gradient, -1e-3, 1e-3)

def keras():
    layers = tf.keras.layers
    normal = layers.BatchNormalization(momentum=0.5)
    stack = [layers.Flatten(), layers.Dense(8), normal, layers.Dropout(0.5), layers.Dense(5)]
    return tf.keras.Sequential(stack), (2, 2, 3)
def module(): return Frozen(), (2, 2, 3)
def clips(): return Clipped(), (2, 2, 3)
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "net.py").write_text(OWN)
    return f"{tmp_path}/net.py"


def test_a_users_module_is_built_with_frozen_unused_and_double_variables(tensorflow, own):
    replica = tensorflow.build(f"{own}:module", (2, 2, 3), 5, seed=1)
    assert (replica.input_shape, replica.classes) == ((2, 2, 3), 5)
    assert [place.name for place in replica.variables] == ["0_first", "1_last", "2_unused"]
    assert [place.name for place in replica.state_variables] == ["0_bias"], "neither counters nor infinities"
    assert learns(replica)
    replica.fetch()
    assert not replica.gradients[-2:].any()


def test_a_users_keras_model_trains_and_tells_its_running_statistics(tensorflow, own):
    replica = tensorflow.build(f"{own}:keras", seed=1)
    assert [place.name for place in replica.variables] == [
        "0_kernel", "1_bias", "2_gamma", "3_beta", "4_kernel", "5_bias",
    ]  # fmt: skip
    assert [place.name for place in replica.state_variables] == ["0_moving_mean", "1_moving_variance"]
    batch = batch_for(replica, 32)
    scores = replica.evaluate(batch)
    assert scores == replica.evaluate(batch), "nothing is dropped when it is judged"
    losses = {replica.gradient(batch) for _ in range(3)}
    assert len(losses) == 3, "each step drops other values"
    before = replica.state.copy()
    replica.fetch()
    assert (replica.state != before).all()
    assert replica.evaluate(batch) != scores
    replica.state[:] = before
    replica.load()
    assert replica.evaluate(batch) == scores


@pytest.mark.parametrize("function", ["keras", "module"])
def test_a_users_model_starts_from_its_seed_and_has_the_same_names_again(tensorflow, own, function):
    replicas = [tensorflow.build(f"{own}:{function}", seed=seed) for seed in (1, 1, 2)]
    assert replicas[0].variables == replicas[1].variables
    np.testing.assert_array_equal(replicas[0].weights, replicas[1].weights)
    assert not np.array_equal(replicas[0].weights, replicas[2].weights)


def test_a_users_own_gradient_sees_them_as_they_are_whatever_the_rate(tensorflow, own):
    replica = tensorflow.build(f"{own}:clips", seed=1)
    batch = batch_for(replica, 32)
    _, plain, _ = fetched(replica, *batch)
    assert np.abs(plain).max() == pytest.approx(1e-3)
    replica.gradient(batch, rate=1e-4)
    replica.fetch()
    np.testing.assert_allclose(replica.gradients, 1e-4 * plain, rtol=1e-5)


def test_a_batch_of_a_dataset_is_split_and_not_read_again_in_parts(tensorflow):
    import tensorflow as tf

    from backends.data.micro_batches import in_parts
    from backends.tensorflow.datasets import DatasetSamples

    numbers = np.arange(10)
    loader = in_parts(
        DatasetSamples(tf.data.Dataset.from_tensor_slices((numbers, {"twice": 2 * numbers}))).loader(5), 2
    )
    for expected in ([[0, 1], [2, 3], [4]], [[5, 6], [7, 8], [9]], [[0, 1], [2, 3], [4]]):
        parts = next(loader).parts
        assert [part.samples for part in parts] == [2, 2, 1]
        assert [part.batch[0].numpy().tolist() for part in parts] == expected
        assert [(part.batch[1]["twice"].numpy() // 2).tolist() for part in parts] == expected


@pytest.mark.parametrize(
    "made",
    [
        lambda data: data.batch(4),
        lambda data: data.batch(4, drop_remainder=True).map(lambda *each: each).prefetch(1),
        lambda data: data.padded_batch(4, drop_remainder=True),
        lambda data: data.batch(4, drop_remainder=True).unbatch(),
    ],
)
def test_a_batched_dataset_is_taken_apart_however_it_was_batched(tensorflow, made):
    import tensorflow as tf

    from backends.tensorflow.datasets import DatasetSamples

    pairs = tf.data.Dataset.from_tensor_slices((np.arange(16).reshape(8, 2), np.arange(8)))
    for samples, batch in DatasetSamples(made(pairs)).batches(3):
        assert batch[0].shape == (samples, 2) and batch[1].shape == (samples,)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_the_native_adam_is_that_of_keras_where_its_epsilon_does_not_count(tensorflow, kind):
    from tensorflow import keras

    replica = tensorflow.build("cipher", seed=3)
    theirs = [keras.Variable(replica.weights[place.part].reshape(place.shape).copy()) for place in replica.variables]
    choose = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW}[kind]
    options = {"weight_decay": 0.1} if kind == "adamw" else {}
    keras_adam = choose(0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-12, **options)
    counts = np.ones(len(replica.weights), bool)
    for seed in range(4):
        replica.gradient(batch_for(replica, seed=seed))
        replica.fetch()
        counts &= abs(replica.gradients) > 1e-6
        given = [replica.gradients[place.part].reshape(place.shape).copy() for place in replica.variables]
        keras_adam.apply(given, theirs)
        replica.update(OptimizerSettings(0.01, 0.0, options.get("weight_decay", 0.0), kind, 0.8, 0.95, 1e-12))
    replica.fetch()
    assert counts.sum() > 10_000
    close(replica.weights[counts], np.concatenate([np.asarray(each).ravel() for each in theirs])[counts], 1e-4)
