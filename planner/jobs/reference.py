"""A job is named FILE.py:function or package.module:function; its project is sent whole."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from planner.agents.exported import MARK, has_mark
from planner.agents.project import Project
from planner.errors import PlanError, suggest
from planner.jobs.imports import imported_modules, imports, parsed
from planner.jobs.named_files import named_files
from planner.jobs.step_code import is_dynamic, step_code, texts

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

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with the code that its steps depend on.

        That is of the modules that it imports, or of all in the project where they are not known,
        and of other files that this code names.
        """
        trees = self._trees
        if is_dynamic(trees.values()):
            trees = dict(self._all_trees())
        code = sorted(step_code(trees, self.function).items())
        others = {file.path: file.digest for file in self.project.files if not file.path.endswith(".py")}
        named = named_files(others, texts(trees.values()))
        used = [(path, others[path]) for path in named if not has_mark(self.project.contents[others[path]])]
        return sha256(repr((self.module, self.function, code, used)).encode()).hexdigest()[:12]

    @property
    def framework(self) -> str | None:
        """The framework that its sources import; None where that is none or both."""
        packages = {name.partition(".")[0] for path, tree in self._trees.items() for name in imports(path, tree)}
        found = {IMPORTED[name] for name in packages if name in IMPORTED}
        return found.pop() if len(found) == 1 else None

    @property
    def _sources(self) -> dict[str, bytes]:
        files = (file for file in self.project.files if file.path.endswith(".py"))
        return {file.path: self.project.contents[file.digest] for file in files}

    @property
    def _trees(self) -> dict[str, ast.Module]:
        """The syntax trees of its modules, made anew."""
        return imported_modules(self._sources, self.module, self.project.folder)

    def _all_trees(self) -> Iterator[tuple[str, ast.Module]]:
        """Those of all files but exported ones; one that is not of this Python counts as it is."""
        for path, content in self._sources.items():
            if content.startswith(b'"""' + MARK):
                continue
            try:
                yield path, parsed(content, self.project.folder / path)
            except PlanError:
                yield path, ast.Module([ast.Expr(ast.Constant(content))], [])


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


def _require_function(path: Path, function: str, text: str) -> None:
    """Raises PlanError where a module's own text binds no such name."""
    names, tree = set[str](), parsed(path.read_bytes(), path)
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
