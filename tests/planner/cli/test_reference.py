"""The CLI reference holds what --help says."""

import runpy
from pathlib import Path

from planner.cli import main

DOCS = Path(__file__).parents[3] / "docs"
reference = runpy.run_path(str(DOCS / "cli_reference.py"))["reference"]


def test_the_reference_in_docs_is_up_to_date() -> None:
    assert (DOCS / "cli.md").read_text() == reference(), "run: python docs/cli_reference.py > docs/cli.md"


def test_every_command_has_a_section_with_an_example() -> None:
    text = reference()
    for name in main.COMMANDS:
        section = text.partition(f"## `planner {name}`\n")[2].partition("\n## ")[0]
        assert f"planner {name} [OPTIONS]" in section
        assert f"Example: `planner {name}" in section
    assert "## `planner power fit`" in text
