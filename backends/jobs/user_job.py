"""A user's job is what a function of theirs returns; no class of this program is needed for it.

The function is called in the folder of its project, whose files it can import and read.
"""

import importlib
import inspect
import numbers
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from backends.jobs.job import Metric
from backends.jobs.metric_names import HIGHER, LOSS, LOWER
from backends.protocol.member_specs import JobSpec

#: The variable that holds the folder with the data set on a device, as its fleet file names it.
DATA_VARIABLE = "PLANNER_DATA"
REQUIRED = ("model", "train", "test", "loss")
OPTIONAL = ("metrics", "optimizer", "scheduler", "collate", "forward", "classes", "blocks", "state")
#: What the functions of a job are called with.
ARGUMENTS = {
    "loss": ("outputs", "targets"),
    "optimizer": ("parameters",),
    "scheduler": ("optimizer",),
    "collate": ("samples",),
    "forward": ("model", "batch"),
    "state": ("batch",),
}
#: Those of a forward that carries a state.
WITH_STATE = ("model", "batch", "state")
#: Keywords besides, for functions that take them.
KEYWORDS = {"forward": ("training",)}

#: The third of a metric's tuple: its function takes the outputs and targets of all test samples.
WHOLE = "epoch"

#: The project whose modules this process can import, if any.
_entered: List[str] = []


class UserJob(NamedTuple):
    """The attributes of what a user's function returned; None for those it lacks.

    forward: of model and batch; gives outputs and targets. TensorFlow's may take ``training``.
    collate: of a list of samples; gives a batch.
    optimizer: of the model's parameters. scheduler: of the optimizer.
    blocks: modules of the model, for activation checkpointing.
    state: of a batch; forward then gets the state as well, and returns the next one as third.
    """

    model: Any
    train: Any
    test: Any
    loss: Callable[[Any, Any], Any]
    metrics: Dict[str, Metric]
    optimizer: Optional[Callable[[Any], Any]] = None
    scheduler: Optional[Callable[[Any], Any]] = None
    collate: Optional[Callable[[Any], Any]] = None
    forward: Optional[Callable[..., Any]] = None
    classes: Any = None
    blocks: Any = None
    state: Optional[Callable[[Any], Any]] = None

    @property
    def class_names(self) -> Tuple[str, ...]:
        """Names of the classes; numbers where the job tells how many; none where nothing."""
        if isinstance(self.classes, numbers.Integral):
            return tuple(map(str, range(int(self.classes))))
        return () if self.classes is None else tuple(map(str, self.classes))


def call(spec: JobSpec) -> Any:
    """What the user's function returns.

    The process then is in the folder of the project. Modules of another project, which may have
    the same names, are forgotten. Raises ValueError where there is no such function; the user's own
    exceptions are passed on.
    """
    _enter(spec.folder)
    if spec.data is not None:
        os.environ[DATA_VARIABLE] = spec.data
    function = getattr(_imported(spec), spec.function, None)
    if not callable(function):
        raise ValueError("module %s has no function %s" % (spec.module, spec.function))
    require_arguments("the function %s" % spec.function, function, ())
    return function()


def checked(returned: Any) -> UserJob:
    """The job's attributes. Raises ValueError that names the one that is missing or of no use."""
    missing = [name for name in REQUIRED if getattr(returned, name, None) is None]
    if missing:
        raise ValueError(
            "it returned %s without %s; return an object with %s, for example types.SimpleNamespace(model=..., ...)"
            % (type_in_words(returned), ", ".join(missing), ", ".join(REQUIRED))
        )
    has_state = getattr(returned, "state", None) is not None
    if has_state and getattr(returned, "forward", None) is None:
        raise ValueError("it has a state, and no forward that takes it; give forward(model, batch, state)")
    for name, arguments in ARGUMENTS.items():
        value = getattr(returned, name, None)
        arguments = WITH_STATE if name == "forward" and has_state else arguments
        if value is not None and not callable(value):
            raise ValueError("its %s is %s, and must be a function" % (name, type_in_words(value)))
        if name == "loss" and inspect.isclass(value):
            raise ValueError("its loss is the class %s; give an instance of it" % value.__name__)
        if value is not None:
            require_arguments("its %s" % name, value, arguments, KEYWORDS.get(name, ()))
    _check_classes(getattr(returned, "classes", None))
    values: Dict[str, Any] = {name: getattr(returned, name, None) for name in REQUIRED + OPTIONAL}
    return UserJob(**dict(values, metrics=_metrics(values["metrics"])))


def _metrics(given: Any) -> Dict[str, Metric]:
    """Metrics by name from functions, or from tuples with a direction and what they are of."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError("its metrics are %s, and must be a dictionary of functions" % type_in_words(given))
    metrics = {str(name): _metric(str(name), value) for name, value in given.items()}
    if LOSS in metrics:
        raise ValueError("its metric %s has the name of the loss itself, which an evaluation gives; rename it" % LOSS)
    return metrics


def _metric(name: str, value: Any) -> Metric:
    given = value if isinstance(value, tuple) else (value,)
    function, better, of = (given + (None, None, None))[:3]
    is_known = len(given) <= 3 and better in (None, HIGHER, LOWER) and (of in (None, WHOLE) or callable(of))
    if not callable(function) or not is_known:
        raise ValueError(
            'its metric %s must be a function of outputs and targets, or (function, "higher" or "lower"), '
            'with "%s" or a function of the mean as the third' % (name, WHOLE)
        )
    require_arguments("its metric %s" % name, function, ARGUMENTS["loss"])
    return Metric(function, better or "", of == WHOLE, of if callable(of) else None)


def _check_classes(classes: Any) -> None:
    """Raises ValueError for what is neither a number of classes nor their names."""
    is_number = isinstance(classes, numbers.Integral) and int(classes) > 0
    if classes is not None and not is_number and not isinstance(classes, (list, tuple)):
        raise ValueError("its classes are %r, and must be a list of names, or how many there are" % (classes,))


def type_in_words(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "None"
    return "a value of type %s" % type(value).__name__


def require_arguments(what: str, function: Any, arguments: Tuple[str, ...], keywords: Tuple[str, ...] = ()) -> None:
    """Raises ValueError where a function cannot be called with these arguments.

    keywords: it is called with those of them that it takes.
    """
    if not takes(function, arguments, keywords):
        wanted = " and ".join(arguments) or "no argument"
        raise ValueError("%s takes %s, and must take %s" % (what, inspect.signature(function), wanted))


def takes(function: Any, arguments: Tuple[str, ...], keywords: Tuple[str, ...] = ()) -> bool:
    """Whether a function can be called as ``require_arguments`` says."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return True
    try:
        signature.bind(*arguments, **{name: name for name in keywords if name in signature.parameters})
    except TypeError:
        return False
    return True


def _enter(folder: str) -> None:
    """Make this the project whose modules are imported."""
    while _entered:
        before = _entered.pop()
        sys.path.remove(before)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(os.path.join(before, "")):
                del sys.modules[name]
    _entered.append(folder)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    os.chdir(folder)


def _imported(spec: JobSpec) -> ModuleType:
    path = os.path.join(spec.folder, *spec.module.split("."))
    if not os.path.isfile(path + ".py") and not os.path.isfile(os.path.join(path, "__init__.py")):
        raise ValueError("there is no %s.py in its project" % spec.module.replace(".", "/"))
    return importlib.import_module(spec.module)
