"""A user's job is what a function of theirs returns; no class of this program is needed for it.

The function is called in the folder of its project, whose files it can import and read.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from backends.jobs.job import Metric
from backends.protocol.orders import JobSpec

#: The variable that holds the folder with the data set on a device, as its fleet file names it.
DATA_VARIABLE = "PLANNER_DATA"
REQUIRED = ("model", "train", "test", "loss")
OPTIONAL = ("metrics", "optimizer", "scheduler", "collate", "forward", "classes")
#: Words in a metric's name by which lower values are better.
LOWER = ("loss", "error", "mae", "mse", "rmse", "perplexity", "wer", "cer")

#: The project whose modules this process can import, if any.
_entered: List[str] = []


class UserJob(NamedTuple):
    """The attributes of what a user's function returned; None for those it lacks.

    forward: of model and batch; gives outputs and targets.
    collate: of a list of samples; gives a batch.
    optimizer: of the model's parameters. scheduler: of the optimizer.
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

    @property
    def class_names(self) -> Tuple[str, ...]:
        """Names of the classes; numbers where the job tells how many; none where nothing."""
        if isinstance(self.classes, int):
            return tuple(map(str, range(self.classes)))
        return tuple(map(str, self.classes or ()))


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
        raise ValueError("job %s: module %s has no function %s" % (spec.text, spec.module, spec.function))
    return function()


def checked(spec: JobSpec, returned: Any) -> UserJob:
    """The job's attributes. Raises ValueError that names the one that is missing or of no use."""
    missing = [name for name in REQUIRED if getattr(returned, name, None) is None]
    if missing:
        raise ValueError(
            "job %s returned %s without %s; return an object with %s, for example types.SimpleNamespace(model=..., ...)"
            % (spec.text, _kind(returned), ", ".join(missing), ", ".join(REQUIRED))
        )
    for name in ("loss", "optimizer", "scheduler", "collate", "forward"):
        value = getattr(returned, name, None)
        if value is not None and not callable(value):
            raise ValueError("job %s: its %s is %s, and must be a function" % (spec.text, name, _kind(value)))
    values: Dict[str, Any] = {name: getattr(returned, name, None) for name in REQUIRED + OPTIONAL}
    return UserJob(**dict(values, metrics=_metrics(spec, values["metrics"])))


def _metrics(spec: JobSpec, given: Any) -> Dict[str, Metric]:
    """Metrics by name from functions, or from pairs of a function and "higher" or "lower"."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(
            "job %s: its metrics are %s, and must be a dictionary of functions" % (spec.text, _kind(given))
        )
    return {str(name): _metric(spec, str(name), value) for name, value in given.items()}


def _metric(spec: JobSpec, name: str, value: Any) -> Metric:
    function, better = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not callable(function) or better not in (None, "higher", "lower"):
        raise ValueError(
            'job %s: metric %s must be a function of outputs and targets, or (function, "higher" or "lower")'
            % (spec.text, name)
        )
    if better is None:
        better = "lower" if any(word in name.lower() for word in LOWER) else "higher"
    return Metric(function, better == "higher")


def _kind(value: Any) -> str:
    return "None" if value is None else "a %s" % type(value).__name__


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
        raise ValueError("job %s: there is no %s.py in its project" % (spec.text, spec.module.replace(".", "/")))
    return importlib.import_module(spec.module)
