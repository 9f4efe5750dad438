"""The modules that a job's own text imports from its project, directly or through one another."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.errors import PlanError


def imported_modules(sources: Mapping[str, bytes], module: str, folder: Path) -> dict[str, ast.Module]:
    """Syntax trees by path: of the module, of those it imports, and of the packages they are in.

    sources: contents of the project's files by path. folder: of the project, for errors.
    Import statements are read and not executed. Raises PlanError for a file that is not Python.
    """
    waiting, found = [module], dict[str, ast.Module]()
    while waiting:
        name = waiting.pop()
        stem = name.replace(".", "/")
        path = next((each for each in (f"{stem}.py", f"{stem}/__init__.py") if each in sources), None)
        if path is None or path in found:
            continue
        found[path] = parsed(sources[path], folder / path)
        parts = name.split(".")
        waiting += (".".join(parts[:count]) for count in range(1, len(parts)))
        waiting += imports(path, found[path])
    return found


def imports(path: str, tree: ast.Module) -> Iterator[str]:
    """The dotted names that the import statements of a project's file may mean."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            stem = [*above, *(node.module.split(".") if node.module else [])]
            yield ".".join(stem)
            yield from (".".join([*stem, alias.name]) for alias in node.names)


def parsed(content: bytes, path: Path) -> ast.Module:
    """Raises PlanError for what is not Python."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise PlanError(f"{path}:{getattr(error, 'lineno', None) or 1}: not Python: {error}") from error
