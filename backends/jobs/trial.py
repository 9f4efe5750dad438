"""A job is tried with a first batch: what its functions return is refused alike in each framework.

All functions raise ValueError.
"""

from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from backends.jobs.job import Metric
from backends.jobs.kept_outputs import KeptOutputs
from backends.jobs.user_job import type_in_words

#: Samples of the batch that a job is tried with: batch normalisation cannot learn from one.
TRIED = 2


def require_batch(batch: Any, kind: Any) -> None:
    """A batch is (inputs ..., targets), of this kind; others need the job's own forward."""
    if not isinstance(batch, kind) or len(batch) < 2:
        raise ValueError(
            "a batch of its data is %s and not (inputs, targets); "
            "give the job forward(model, batch), which returns outputs and targets" % type_in_words(batch)
        )


def require_pair(found: Any) -> None:
    """A forward returns outputs and targets."""
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise ValueError("its forward returns %s; it must return outputs and targets" % type_in_words(found))


def require_tensor(loss: Any, is_tensor: bool) -> None:
    """A loss is a tensor of the framework, from which gradients are taken."""
    if not is_tensor:
        raise ValueError("its loss gives %s; it must give a tensor, the mean over the samples" % type_in_words(loss))


#: How many numbers a value of a framework is; None where it is none at all.
Elements = Callable[[Any], Optional[int]]


def require_metrics(metrics: Dict[str, Metric], found: Tuple[Any, Any], elements: Elements) -> None:
    """Metrics of a batch are one number each, which a function of the mean takes.

    found: outputs and targets.
    """
    for name, metric in metrics.items():
        if not metric.of_whole:
            value = metric.function(*found)
            require_one(value, elements(value), "metric %s" % name)
            try:
                metric.of_mean(float(value))
            except TypeError as error:
                raise ValueError(
                    "the function of the mean of its metric %s takes no number (%s); give one as math.exp is"
                    % (name, str(error).splitlines()[0])
                ) from error


def require_whole(kept: KeptOutputs, results: Iterable[Tuple[Any, Any]], elements: Elements) -> None:
    """Metrics of the whole test set are one number each, of a few samples at least.

    results: outputs and targets of batches of different sizes, whose parts must fit together.
    """
    if not kept.is_needed:
        return
    for outputs, targets in results:
        kept.add(outputs, targets)
    try:
        found = kept.of_whole()
    except ValueError:  # few samples may be too few, as those of one class are for an AUC
        return
    for name, value in found.items():
        require_one(value, elements(value), "metric %s" % name)


def require_one(value: Any, elements: Optional[int], what: str) -> None:
    """A loss or a metric is one number; elements: None where it is none at all."""
    if elements is None:
        raise ValueError("its %s gives %s; it must give one number" % (what, type_in_words(value)))
    if elements != 1:
        raise ValueError(
            "its %s gives %d numbers for a batch; it must give one, the mean over the samples" % (what, elements)
        )
