"""A user's own model, named ``path/to/file.py:function``."""

import importlib.util
import os
from typing import Any, Callable, Tuple, cast

from backends.models.layers import Shape


def is_user_model(model: str) -> bool:
    """Whether a model is named by file and function and not by one of our names."""
    return ":" in model


def locate(model: str) -> Tuple[str, str]:
    """(file, function) of ``path/to/file.py:function``. Raises ValueError if there is no such file."""
    path, _, function = model.rpartition(":")
    if not path.endswith(".py") or not function.isidentifier():
        raise ValueError("model %r is not of the form path/to/file.py:function" % model)
    if not os.path.isfile(path):
        raise ValueError("model %r: no file %s" % (model, os.path.abspath(path)))
    return path, function


def load(model: str) -> Callable[[], Any]:
    """The user's function. Raises ValueError if the file defines none of that name; what the
    file itself raises comes through as it is."""
    path, name = locate(model)
    spec = importlib.util.spec_from_file_location("user_model", path)
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError("model %r: %s defines no function %s" % (model, path, name))
    return cast(Callable[[], Any], function)


def returned(model: str, kind: str, fits: Callable[[Any], bool]) -> Tuple[Any, Shape]:
    """(module, input shape) as the user's function returns them.

    kind: what the module must be, as the user is told; fits: whether it is that. Raises ValueError for anything else.
    """
    result = load(model)()
    if not (isinstance(result, tuple) and len(result) == 2 and fits(result[0])):
        raise ValueError(
            "model %r returned %s; it must return (%s, (height, width, channels))"
            % (model, type(result).__name__, kind)
        )
    shape = tuple(result[1])
    if len(shape) != 3 or not all(isinstance(length, int) and length > 0 for length in shape):
        raise ValueError("model %r returned input shape %s; it must be (height, width, channels)" % (model, shape))
    return result[0], shape


def outputs(model: str, output: Any) -> int:
    """Classes, from what the module makes of one image. Raises ValueError where that is not (batch, classes)."""
    shape = getattr(output, "shape", None)
    if shape is None or len(shape) != 2:
        found = type(output).__name__ if shape is None else tuple(shape)
        raise ValueError("model %r: the module's output must be (batch, classes), is %s" % (model, found))
    return int(shape[1])
