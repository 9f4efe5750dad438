"""A user's own model is a function in a file, named ``path/to/file.py:function``."""

import contextlib
import importlib
import importlib.util
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Iterator, Tuple

from backends.models.layers import Shape
from backends.models.user_source import locate, source_files

#: Package name given to a model's folder, for imports such as ``from . import block``.
PACKAGE = "user_model"
_LOADING = threading.RLock()


def is_user_model(model: str) -> bool:
    """Whether a model is named by file and function, and not by a name of ``MODELS``."""
    return ":" in model


@contextlib.contextmanager
def loaded(model: str) -> Iterator[Callable[[], Any]]:
    """Give the user's function, with the modules of its folder importable until the block ends.

    They are then removed from ``sys.modules``, for those of another model may have the same names.
    Raises ValueError if the file defines no such function; the file's own exceptions are passed on.
    """
    path, name = locate(model)
    folder = os.path.dirname(os.path.abspath(path))
    names = [source.name for source in source_files(model)]
    with _LOADING:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            _package(folder, "__init__.py" in names)
            module = _executed("%s.%s" % (PACKAGE, os.path.basename(path)[: -len(".py")]), path)
            function = getattr(module, name, None)
            if not callable(function):
                raise ValueError("model %r: %s defines no function %s" % (model, path, name))
            yield function
        finally:
            sys.path.remove(folder)
            _forget({os.path.join(folder, *each.split("/")) for each in names})


def _package(folder: str, has_init: bool) -> None:
    """Make the folder a package, and execute its ``__init__.py`` if the model's imports need it."""
    if has_init:
        _executed(PACKAGE, os.path.join(folder, "__init__.py"), folder)
        return
    package = ModuleType(PACKAGE)
    package.__path__ = [folder]
    sys.modules[PACKAGE] = package


def _executed(name: str, path: str, *folder: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=list(folder) or None)
    assert spec is not None and spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _forget(paths: Any) -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE or getattr(module, "__file__", None) in paths:
            del sys.modules[name]


def returned(model: str, kind: str, fits: Callable[[Any], bool]) -> Tuple[Any, Shape]:
    """The module and input shape that the user's function returns.

    kind: the expected type, for the error message.
    fits: whether a module has that type.
    Raises ValueError for anything else.
    """
    with loaded(model) as function:
        result = function()
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
    """The number of classes, from the module's output for one image.

    Raises ValueError where the output is not (batch, classes).
    """
    shape = getattr(output, "shape", None)
    if shape is None or len(shape) != 2:
        found = type(output).__name__ if shape is None else tuple(shape)
        raise ValueError("model %r: the module's output must be (batch, classes), is %s" % (model, found))
    return int(shape[1])
