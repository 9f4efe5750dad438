"""A user's job in TensorFlow: a model, its data sets, a loss and metrics."""

import functools
import inspect
import itertools
from typing import Any, Callable, Dict, List, Optional, Tuple

import tensorflow as tf

from backends.jobs.carried_state import CarriedState, require_plain
from backends.jobs.job import Job, LoadedJob, Metric
from backends.jobs.kept_outputs import KeptOutputs
from backends.jobs.trial import (
    TRIED,
    require_batch,
    require_metrics,
    require_one,
    require_pair,
    require_tensor,
    require_whole,
)
from backends.jobs.user_job import WHOLE, UserJob, type_in_words
from backends.tensorflow.datasets import DatasetSamples
from backends.tensorflow.user_model import UserNetwork, call_arguments, is_module


def load_job(user: UserJob) -> LoadedJob:
    """The job with its data, tried with a first batch, with which the model makes its variables.

    Raises ValueError for a model or data of another kind; the user's own exceptions are passed on.
    """
    if not is_module(user.model):
        raise ValueError(
            "its model is %s; with --framework tensorflow it must be a Keras model or a tf.Module"
            % type_in_words(user.model)
        )
    if user.collate is not None:
        raise ValueError("it has a collate, which tf.data.Datasets have no use for; map or pad in the data set instead")
    train, test = (_samples(name, data) for name, data in (("train", user.train), ("test", user.test)))
    train.in_lanes = test.in_lanes = user.state is not None
    metrics = {
        name: metric._replace(function=_in_order(metric.function, metric.of_whole))
        for name, metric in user.metrics.items()
    }
    loss = _in_order(user.loss)
    for data in (train, test):
        _try(user, data, loss, metrics)
    network = UserNetwork(user.model)
    if not network.trained:
        raise ValueError("its model has no variable that is trained: trainable is false for all, or there is none")
    _require_float32(network)
    if user.scheduler is not None:
        raise ValueError("it has a scheduler; in Keras, give its optimizer a learning rate schedule instead")
    job = Job(network, _forward_in_graph(user), loss, metrics, optimizer=user.optimizer, state=user.state)
    return LoadedJob(job, train, test, user.class_names)


def _samples(name: str, data: Any) -> DatasetSamples:
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            "its %s is %s; give a tf.data.Dataset, for example tf.data.Dataset.from_tensor_slices((x, y))"
            % (name, type_in_words(data))
        )
    samples = DatasetSamples(data)
    if samples.is_empty:
        raise ValueError("its %s is empty" % name)
    return samples


def _in_order(function: Callable[..., Any], of_whole: bool = False) -> Callable[[Any, Any], Any]:
    """A function of outputs and targets; Keras's own take the targets first."""
    if isinstance(function, tf.keras.metrics.Metric):
        if not of_whole:
            raise ValueError(
                'its metric %s keeps a state; give (metric, "higher" or "lower", "%s")' % (function.name, WHOLE)
            )
        return functools.partial(_anew, function)
    if isinstance(function, tf.keras.losses.Loss) or getattr(function, "__module__", "").startswith("keras."):
        return lambda outputs, targets: tf.reduce_mean(function(targets, outputs))
    return function


def _anew(metric: tf.keras.metrics.Metric, outputs: Any, targets: Any) -> Any:
    """The value of a metric of Keras, without what it has seen before."""
    (metric.reset_state if hasattr(metric, "reset_state") else metric.reset_states)()
    metric.update_state(targets, outputs)
    return metric.result()


def joined(parts: List[Any]) -> Any:
    """Tensors of all batches as one, along their first axis and in main memory.

    Raises ValueError for shapes that do not fit.
    """

    def concatenated(*tensors: Any) -> Any:
        return tf.concat(tensors, 0) if tensors[0].shape.rank else list(tensors)

    try:
        with tf.device("CPU"):
            return tf.nest.map_structure(concatenated, *parts)
    except tf.errors.InvalidArgumentError as error:
        shapes = {str(tuple(each.shape)) for part in parts for each in tf.nest.flatten(part)}
        raise ValueError("tensors of %s do not fit" % " and ".join(sorted(shapes))) from error


def _forward_in_graph(user: UserJob) -> Callable[..., Tuple[Any, Any]]:
    """``Job.forward``; a user's own is traced as its model is: with its Python control flow."""
    forward = tf.function(_forward(user))
    return lambda network, batch, training, step, *state: forward(batch, training, *state)


def _forward(user: UserJob) -> Callable[..., Any]:
    """Outputs and targets of a batch, in training or not, and the next state where there is one."""
    own = user.forward
    if own is not None:
        if "training" in inspect.signature(own).parameters:
            return lambda batch, training, *state: own(user.model, batch, *state, training=training)
        return lambda batch, training, *state: own(user.model, batch, *state)
    for_training, for_evaluation = call_arguments(user.model)

    def forward(batch: Any, training: bool) -> Tuple[Any, Any]:
        require_batch(batch, tuple)
        inputs = batch[0] if len(batch) == 2 else list(batch[:-1])
        return user.model(inputs, **(for_training if training else for_evaluation)), batch[-1]

    return forward


def _try(user: UserJob, data: DatasetSamples, loss: Callable[[Any, Any], Any], metrics: Dict[str, Metric]) -> None:
    first = next(batch for _, batch in data.batches(TRIED))
    found = _tried(user, first)
    found_loss = loss(*found)
    require_tensor(found_loss, tf.is_tensor(found_loss))
    require_one(found_loss, _elements(found_loss), "loss")
    require_metrics(metrics, found, _elements)
    batches = [batch for size in (TRIED, 1) for _, batch in itertools.islice(data.batches(size), 1)]
    require_whole(KeptOutputs(metrics, joined), (_tried(user, batch) for batch in batches), _elements)


def _tried(user: UserJob, batch: Any) -> Tuple[Any, Any]:
    if user.state is None:
        found = _forward(user)(batch, False)
        require_pair(found)
        return found[0], found[1]
    carried = CarriedState(user.state, shapes_of)
    found = _forward(user)(batch, False, carried.before(batch))
    carried.require(found, batch)
    return found[0], found[1]


def shapes_of(state: Any) -> List[Tuple[int, ...]]:
    """Shapes of all tensors of a state, in their order. Raises JobFailure for other objects."""
    parts = tf.nest.flatten(state)
    for each in parts:
        if not hasattr(each, "shape"):
            require_plain(each)
    return [tuple(each.shape) for each in parts if hasattr(each, "shape")]


def _elements(value: Any) -> Optional[int]:
    try:
        return int(tf.size(tf.cast(value, tf.float32)).numpy())
    except (TypeError, ValueError, tf.errors.OpError):
        return None


def _require_float32(network: UserNetwork) -> None:
    """Raises ValueError for a model whose variables another type holds: they would be rounded."""
    for name, variable in network.trained + network.kept:
        if variable.dtype != tf.float32:
            raise ValueError(
                "its model's variable %s is %s, and weights are float32 here; give its layers the dtype float32"
                % (name, variable.dtype.name)
            )
