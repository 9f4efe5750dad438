"""A user's own model, named ``path/to/file.py:function``."""

import importlib.util
import os
from typing import Any, Callable, Tuple, cast


def is_user_model(model):
    # type: (str) -> bool
    """Whether a model is named by file and function and not by one of our names."""
    return ":" in model


def locate(model):
    # type: (str) -> Tuple[str, str]
    """(file, function) of ``path/to/file.py:function``. Raises ValueError if there is no such file."""
    path, _, function = model.rpartition(":")
    if not path.endswith(".py") or not function.isidentifier():
        raise ValueError("model %r is not of the form path/to/file.py:function" % model)
    if not os.path.isfile(path):
        raise ValueError("model %r: no file %s" % (model, os.path.abspath(path)))
    return path, function


def load(model):
    # type: (str) -> Callable[[], Any]
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
