"""What the README and docs/frameworks.md show can be typed as it stands; the README is short."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import typer

from planner.cli.main import app
from planner.fleet.file import load_fleet

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text()
INDENTED = re.findall(r"^    (?:\$ )?(.*)$", TEXT, re.MULTILINE)


def test_every_command_shown_exists_with_its_options() -> None:
    commands = typer.main.get_command(app).commands
    shown = [shlex.split(line, comments=True) for line in INDENTED if line.startswith("planner ")]
    assert {"trust", "check", "profile", "recommend", "train", "launch"} <= {words[1] for words in shown}
    for _, name, *words in shown:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        own = words[: words.index("--")] if "--" in words else words  # what follows is a user's command
        assert {word for word in own if word.startswith("-")} <= known, words


def test_the_fleet_file_shown_is_one(tmp_path: Path) -> None:
    start = next(index for index, line in enumerate(INDENTED) if line.startswith("[devices."))
    lines = [line for line in INDENTED[start:] if re.match(r"\[devices\.|\w+ = ", line)]
    path = tmp_path / "fleet.toml"
    path.write_text("\n".join(lines))
    assert [device.name for device in load_fleet(path).devices] == ["desktop", "tx2", "nano"]


def test_every_file_linked_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (README.parent / target).exists(), target


def test_every_test_that_shows_what_security_says_is_there() -> None:
    shown = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", (README.parent / "docs" / "security.md").read_text())
    assert shown
    for path, name in shown:
        assert f"def {name}" in (Path(__file__).parent / path).read_text(), (path, name)


def test_prose_of_every_document_fits_100_columns() -> None:
    """Rows of tables and lines of code may be longer."""
    folders = (".", "docs", "benchmarks", "examples/*")
    documents = [path for folder in folders for path in README.parent.glob(f"{folder}/*.md")]
    assert {"README.md", "CHANGELOG.md", "architecture.md"} <= {path.name for path in documents}
    for path in documents:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if len(line) > 100 and not line.startswith(("|", "    "))] == [], path


def test_the_lines_that_read_trained_weights_give_them_to_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = (README.parent / "docs" / "frameworks.md").read_text()
    lines = document.split("## Trained weights")[1].split("## ")[0].splitlines()
    run = README.parent / "tests" / "golden" / "runs" / "parameter-server"
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "net-1").symlink_to(run)
    monkeypatch.chdir(tmp_path)

    got: list[numpy.ndarray] = []
    module = SimpleNamespace(trainable_variables=[SimpleNamespace(assign=got.append)] * 2)
    exec("\n".join(line[4:] for line in lines if line.startswith("    ")), {"module": module})

    with numpy.load(run / "checkpoint.npz") as saved:
        assert [*map(numpy.shape, got)] == [saved[name].shape for name in saved if name.startswith("weights/")][:2]
        assert (got[0] == saved["weights/0.weight"]).all()
