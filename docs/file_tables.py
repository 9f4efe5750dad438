"""This script writes the tables of files in docs/architecture.md: ``python docs/file_tables.py``.

A file's job is the first sentence of its docstring.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "architecture.md"
#: A table replaces what stands between two such lines.
MARKED = re.compile(r"(<!-- files of (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def written(document: str) -> str:
    """The document with a table of today's files between each pair of marks."""
    return MARKED.sub(lambda found: f"{found[1]}{table(ROOT / found[2])}{found[3]}", document)


def table(package: Path) -> str:
    """A row a file of a package, those of a folder together."""
    paths = sorted(package.rglob("*.py"), key=lambda path: (path.parent.parts, path.name))
    rows = [_row(path, package) for path in paths if path.name != "__init__.py"]
    return "".join(["| file | job |\n|---|---|\n", *rows])


def _row(path: Path, package: Path) -> str:
    return f"| `{path.relative_to(package).as_posix()}` | {job(path.read_text(encoding='utf-8'))} |\n"


def job(source: str) -> str:
    """The first sentence of a module's docstring, on one line; empty without one."""
    text = ast.get_docstring(ast.parse(source)) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return (
        re.split(r"(?<=[.?])(?<!\bEq\.)(?<!\bal\.)\s", paragraph)[0].rstrip(".").replace("|", r"\|").replace("``", "`")
    )


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
