"""The source of a user's model is its file and the files of its folder that it imports."""

import ast
import os
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

#: Limits of what is sent to a device: a model is a few files, not a project with its data.
MOST_FILES = 100
MOST_BYTES = 4 << 20


class SourceFile(NamedTuple):
    """One file; ``name`` is its path relative to the model's folder, with slashes."""

    name: str
    content: bytes


def locate(model: str) -> Tuple[str, str]:
    """(file, function) of ``path/to/file.py:function``.

    Raises ValueError if there is no such file.
    """
    path, _, function = model.rpartition(":")
    if not path.endswith(".py") or not function.isidentifier():
        raise ValueError("model %r is not of the form path/to/file.py:function" % model)
    if not os.path.isfile(path):
        raise ValueError("model %r: no file %s" % (model, os.path.abspath(path)))
    return path, function


def source_files(model: str) -> List[SourceFile]:
    """The model's file and the files of its folder that it imports, also indirectly, by name.

    Import statements are read, not executed, so that files imported by other means are not found.
    Raises ValueError for a file that is not Python, and above MOST_FILES or MOST_BYTES.
    """
    path, _ = locate(model)
    folder, name = os.path.split(os.path.abspath(path))
    found: Dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        with open(os.path.join(folder, *name.split("/")), "rb") as stream:
            found[name] = stream.read()
        if len(found) > MOST_FILES or sum(map(len, found.values())) > MOST_BYTES:
            raise ValueError(
                "model %r imports more than %d files or %d MiB of its folder; keep what the model needs "
                "apart from other code" % (model, MOST_FILES, MOST_BYTES >> 20)
            )
        waiting += _imported(folder, name, found[name])
    own = os.path.basename(path)
    return [SourceFile(own, found.pop(own))] + [SourceFile(*each) for each in sorted(found.items())]


def _imported(folder: str, name: str, content: bytes) -> List[str]:
    """Names of the folder's files that one of them imports."""
    package = name.split("/")[:-1]
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ValueError("%s:%d: not Python: %s" % (os.path.join(folder, name), line, error)) from error
    found: List[str] = []
    for place, module in _modules(tree, package):
        found += _files(folder, place, module)
    return found


def _modules(tree: ast.AST, package: List[str]) -> Iterator[Tuple[List[str], List[str]]]:
    """(folder, module), in parts, of every import.

    In ``from x import y``, y may be a module of x.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield [], alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            up = node.level or 0
            place = package[: len(package) - up + 1] if up else []
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield place, ([""] if up else []) + module + [alias.name]


def _files(folder: str, place: Sequence[str], module: Sequence[str]) -> List[str]:
    """Files that importing a module executes: the packages on its path, and the module itself."""
    found = []
    for count in range(1, len(module) + 1):
        parts = [*place, *(part for part in module[:count] if part)]
        for name in ("/".join([*parts, "__init__.py"]), "/".join(parts) + ".py"):
            if os.path.isfile(os.path.join(folder, *name.split("/"))):
                found.append(name)
                break
    return found
