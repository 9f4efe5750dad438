"""The part of a job's code that its steps depend on: the rest may change without a new profile.

Comments, docstrings and formatting are left out, and so are the job's metrics and names of classes,
what only they use, and what a file does only as a script. Nothing is executed.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_METRICS, _CLASSES = "metrics", "classes"
#: Attributes of the object that a job's function returns, by which it is known.
_OF_JOBS = {"model", "loss"}
#: They reach code by names that are computed, or may do so: as attributes, and as other names too.
_DYNAMIC_ATTRIBUTES = {"__dict__", "__init_subclass__", "__subclasses__", "attrgetter", "hub", "methodcaller"}
_DYNAMIC = _DYNAMIC_ATTRIBUTES | {
    "__import__", "dir", "eval", "exec", "globals", "hydra", "importlib", "inspect", "locals", "pkgutil", "pydoc",
    "runpy", "site", "vars",
}  # fmt: skip
#: Of the module ``sys``: what is on its path may be imported as well.
_OF_SYS = ("path", "modules")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_dynamic(trees: Iterable[ast.Module]) -> bool:
    """Whether modules may import others, or use names, that their text does not tell."""
    return any(_computes_names(node) for tree in trees for node in ast.walk(tree))


def step_code(trees: Mapping[str, ast.Module], function: str) -> dict[str, str]:
    """Texts, by path, of what steps depend on, without modules of which nothing is left.

    trees: of the job's modules, by path; they are changed. function: the name of the job's.
    """
    unused = _Unused(is_dynamic(trees.values()), function)
    stripped = _Stripped()
    kept = [stripped.visit(tree) for tree in trees.values()]
    unused.once_mentioned |= stripped.once_mentioned
    while unused.removed_from(kept):
        pass
    texts = {path: ast.unparse(tree) for path, tree in trees.items()}
    return {path: text for path, text in texts.items() if text}


def texts(trees: Iterable[ast.Module]) -> set[str]:
    """Constants in code that are texts, such as names of files."""
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in nodes if isinstance(node.value, str)}


def _computes_names(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        return len(node.args) < 2 or not isinstance(node.args[1], ast.Constant)
    if isinstance(node, ast.Attribute):
        of_sys = isinstance(node.value, ast.Name) and node.value.id == "sys" and node.attr in _OF_SYS
        return of_sys or node.attr in _DYNAMIC_ATTRIBUTES
    if isinstance(node, ast.ClassDef):  # its metaclass or its base may keep a register
        return bool(node.keywords)
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        is_sys = modules[0] == "sys" or any(each.name == "sys" and each.asname for each in node.names)
        return is_sys or any(name.partition(".")[0] in _DYNAMIC for name in modules)
    if isinstance(node, _Function):
        return node.name in _DYNAMIC_ATTRIBUTES
    return isinstance(node, ast.Name) and node.id in _DYNAMIC


class _Stripped(ast.NodeTransformer):
    """Removes metrics, names of classes, docstrings and what runs in a script only.

    Imports get a statement each. once_mentioned: names in the values that were removed.
    """

    def __init__(self) -> None:
        self.once_mentioned = set[str]()
        self._in_job = False  # a class whose objects are jobs
        self._given: set[str] = set()  # variables that this function, or module, gives as metrics

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node) is not None:
            del node.body[0]
        outer = self._given, self._in_job
        if isinstance(node, ast.Module | _Function):
            self._given = {*_given_as_metrics(node)}
        if isinstance(node, ast.ClassDef):
            self._in_job = {*_attributes(node)} >= _OF_JOBS
        visited = super().visit(node)
        self._given, self._in_job = outer
        return visited

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if self._in_job:
            node.body = [each for each in node.body if not _gives_metrics(each) or self._keep_out(each)]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        out = _left_out({each.arg: each.value for each in node.keywords})
        node.keywords = [each for each in node.keywords if each.arg not in out or self._keep_out(each.value)]
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        out = _left_out(dict(zip(keys, node.values, strict=True)))
        kept = [at for at, key in enumerate(keys) if key not in out or self._keep_out(node.values[at])]
        node.keys, node.values = [node.keys[at] for at in kept], [node.values[at] for at in kept]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """``job.metrics = ...`` is removed, and ``given["one"] = ...`` of metrics."""
        target, is_out = node.targets[0], False
        if isinstance(target, ast.Subscript):
            is_out = _id(target.value) in self._given
        elif isinstance(target, ast.Attribute) and target.attr == _METRICS:
            is_out = self._in_job or _id(target.value) != "self"  # which else may be a layer
        if not is_out:
            return self.generic_visit(node)
        self._keep_out(node.value)
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        as_script = ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")
        return None if as_script and not node.orelse else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> list[ast.AST]:
        return [ast.Import([alias]) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.AST]:
        return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]

    def _keep_out(self, node: ast.AST) -> bool:
        self.once_mentioned |= set(_mentions(node))
        return False


def _left_out(given: Mapping[Any, ast.expr]) -> set[str]:
    """Metrics, and the classes of a job: those of other objects count, as in ``Net(classes=10)``.

    A number or a text is a setting, and no metrics.
    """
    settings = {name for name, value in given.items() if isinstance(value, ast.Constant)}
    return {_METRICS, _CLASSES} if {*given} - settings >= _OF_JOBS else {_METRICS} - settings


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    """Names that a class defines, or gives its objects."""
    yield from (name for name in map(_name, node.body) if name is not None)
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _id(each.value) == "self":
            yield each.attr


def _gives_metrics(node: ast.stmt) -> bool:
    return _name(node) == _METRICS and not isinstance(getattr(node, "value", None), ast.Constant)


def _given_as_metrics(node: ast.AST) -> Iterator[str]:
    """Variables that are given as metrics, by a keyword or as an attribute."""
    for each in ast.walk(node):
        if isinstance(each, ast.keyword | ast.Assign) and isinstance(each.value, ast.Name):
            name = each.arg if isinstance(each, ast.keyword) else getattr(each.targets[0], "attr", None)
            if name == _METRICS:
                yield each.value.id


def _id(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


class _Unused:
    """Removes definitions whose names nothing mentions.

    dynamic: names may also be used without being mentioned. function: a name that is used.
    once_mentioned: names that only removed code has used.
    """

    def __init__(self, dynamic: bool, function: str) -> None:
        self._dynamic = dynamic
        self._function = function
        self.once_mentioned = set[str]()

    def removed_from(self, trees: Iterable[ast.Module]) -> bool:
        """Whether any was found."""
        mentions = Counter(name for tree in trees for name in _mentions(tree))
        mentions[self._function] += 1
        unused = []
        for block in (block for tree in trees for node in ast.walk(tree) for block in _blocks(node)):
            unused += (found := [each for each in block if self._is_unused(each, mentions)])
            block[:] = [each for each in block if each not in found]
        for each in unused:
            self.once_mentioned |= set(_mentions(each))
        return bool(unused)

    def _is_unused(self, node: ast.stmt, mentions: Counter[str]) -> bool:
        name = _name(node)
        if name is None or mentions[name] > sum(each == name for each in _mentions(node)):
            return False
        return name in self.once_mentioned or not (self._dynamic or _may_do_more(node))


def _may_do_more(node: ast.stmt) -> bool:
    """Whether an assignment may do more than to give a name to a value."""
    does = ast.Call | ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await
    return isinstance(node, ast.Assign | ast.AnnAssign) and any(isinstance(each, does) for each in ast.walk(node))


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Blocks in which a definition that nothing mentions has no effect: not those of classes."""
    if not isinstance(node, ast.ClassDef):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _name(node: ast.stmt) -> str | None:
    """The name that a statement defines; None where it defines several, or may do more."""
    if isinstance(node, _Function | ast.ClassDef):
        is_plain = not node.decorator_list and not node.name.startswith("__")  # Python calls __getattr__
        return node.name if is_plain else None
    if isinstance(node, ast.Import | ast.ImportFrom) and node.names[0].name != "*":
        return node.names[0].asname or node.names[0].name.partition(".")[0]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[-1]
        is_alone = isinstance(node, ast.AnnAssign) or len(node.targets) == 1
        return target.id if is_alone and isinstance(target, ast.Name) else None
    return None


def _mentions(node: ast.AST) -> Iterator[str]:
    """The names that code uses, also as texts."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
        elif isinstance(each, ast.ImportFrom):
            yield from (alias.name for alias in each.names)
