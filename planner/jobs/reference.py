"""A job is named FILE.py:function or package.module:function; its project is sent whole."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from planner.agents.project import Project
from planner.errors import PlanError, suggest

#: Frameworks by the packages that a job imports.
IMPORTED = {"torch": "torch", "tensorflow": "tensorflow", "keras": "tensorflow"}


@dataclass(frozen=True)
class JobReference:
    """A job on this machine.

    text: as it was named.
    module: dotted, as it is imported from the project's folder.
    """

    text: str
    project: Project
    module: str
    function: str

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with any Python file of the project."""
        sources = [(file.path, file.digest) for file in self.project.files if file.path.endswith(".py")]
        return sha256(repr((self.module, self.function, sorted(sources))).encode()).hexdigest()[:12]

    @property
    def framework(self) -> str | None:
        """The framework that its sources import; None where that is none or both."""
        found = {IMPORTED[name] for name in self._imports() if name in IMPORTED}
        return found.pop() if len(found) == 1 else None

    def _imports(self) -> Iterator[str]:
        """The packages that its module imports, and those of the project that it imports itself."""
        waiting, seen = [self.module], set[str]()
        while waiting:
            module = waiting.pop()
            path = _file_of(self.project.folder, module)
            if module in seen or path is None:
                continue
            seen.add(module)
            for name in _imported(path, module):
                yield name.partition(".")[0]
                waiting.append(name)


def find_job(text: str, here: Path | None = None) -> JobReference:
    """The job that a text names, seen from a folder, by default the present one.

    The project of a file is its folder, or the folder above its outermost package; that of a
    module is the present folder. Raises PlanError where there is no such file or function.
    """
    where, _, function = text.rpartition(":")
    if not where or not function.isidentifier():
        raise PlanError(f"--job {text}: write FILE.py:function or package.module:function")
    here = Path() if here is None else here
    if where.endswith(".py"):
        folder, module = _of_file((here / where).absolute(), text)
    else:
        folder, module = here.absolute(), where
    path = _file_of(folder, module)
    if path is None:
        raise PlanError(f"--job {text}: there is no module {where} in {folder}; start in the folder of your project")
    _require_function(path, function, text)
    return JobReference(text, Project.of(folder), module, function)


def _of_file(path: Path, text: str) -> tuple[Path, str]:
    """The folder of a file's project, and the file's module in it."""
    if not path.is_file():
        raise PlanError(f"--job {text}: there is no file {path}")
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    return folder, ".".join(parts)


def _file_of(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise PlanError(f"{path}:{getattr(error, 'lineno', None) or 1}: not Python: {error}") from error


def _require_function(path: Path, function: str, text: str) -> None:
    """Raises PlanError where a module's own text binds no such name."""
    names, tree = set[str](), _parsed(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    if function not in names and "*" not in names:
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        raise PlanError(f"--job {text}: {path} has no function {function}; {suggest(function, functions)}")


def _imported(path: Path, module: str) -> Iterator[str]:
    """The modules that a file's import statements name."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            stem = [*above, *(node.module.split(".") if node.module else [])]
            yield ".".join(stem)
            yield from (".".join([*stem, alias.name]) for alias in node.names)
