"""A job holds a model with its loss and metrics; known models become jobs as well."""

import math
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from backends.jobs.metric_names import HIGHER, direction_of

#: The metric of known models: the share of right answers.
ACCURACY = "accuracy"


class Metric(NamedTuple):
    """A mean over the samples of a batch, of a model's outputs and the targets.

    direction: HIGHER or LOWER, as the job states it; empty where its name is to tell.
    of_whole: the function takes the outputs and targets of the whole test set at once instead.
    finish: a function of the mean, as exp is for a perplexity.
    """

    function: Callable[[Any, Any], Any]
    direction: str = ""
    of_whole: bool = False
    finish: Optional[Callable[[float], float]] = None

    def of_mean(self, mean: float) -> float:
        """The metric, of its mean over all samples; not finite where that is no number any more."""
        try:
            return mean if self.finish is None else float(self.finish(mean))
        except (ArithmeticError, ValueError):  # too large for exp, or out of the domain of log
            return math.nan


class Job(NamedTuple):
    """What a replica computes.

    model: a framework's module, or what ``forward`` takes in its place.
    forward: of model and batch; gives outputs and targets. TensorFlow's gets two arguments more:
        whether it is called in training, and the number of the step.
    state: of a batch, the initial one, where a state is carried from batch to batch; ``forward``
        then gets it as its last argument, and gives outputs, targets and the next state.
    loss: of outputs and targets, a mean over the samples of the batch.
    optimizer: of the trained parameters. scheduler: of the optimizer; makes a step after each.
    blocks: parts of the model for activation checkpointing and for shares; none for those that are
        found in it.
    initial_weights: (parameters,) float32 that a replica begins with, the same in every framework;
        None for those of the model.
    """

    model: Any
    forward: Callable[..., Any]
    loss: Callable[[Any, Any], Any]
    metrics: Dict[str, Metric]
    input_shape: Optional[Tuple[int, ...]] = None  # (height, width, channels) of known models' images
    classes: Optional[int] = None  # of known models
    optimizer: Optional[Callable[[Any], Any]] = None
    scheduler: Optional[Callable[[Any], Any]] = None
    initial_weights: Optional[Any] = None
    blocks: Sequence[Any] = ()
    state: Optional[Callable[[Any], Any]] = None

    @property
    def of_batches(self) -> Dict[str, Callable[[Any, Any], Any]]:
        """The functions of the metrics that are computed of each batch."""
        return {name: metric.function for name, metric in self.metrics.items() if not metric.of_whole}

    @property
    def higher_is_better(self) -> Tuple[str, ...]:
        """Names of the metrics of which this holds."""
        directions = {name: metric.direction or direction_of(name) for name, metric in self.metrics.items()}
        return tuple(sorted(name for name, direction in directions.items() if direction == HIGHER))


class LoadedJob(NamedTuple):
    """A user's job with its data, in a framework's types.

    train, test: a ``data.loader.SampleSet`` or a ``data.streams.SampleStream`` each.
    classes: names, where the job has some.
    note: what the user should know of how the data are read.
    """

    job: Job
    train: Any
    test: Any
    classes: Tuple[str, ...] = ()
    note: str = ""
