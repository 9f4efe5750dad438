"""What devices, scripts and files send is shown, and commands no terminal."""

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import Progress
from rich.text import Text

import planner
from planner import console
from planner.console import SafeConsole
from planner.errors import PlannerError
from planner.terminal import agrees, echo, visible
from planner.views.tables import TextTable

TITLE, CLIPBOARD, CLEAR = "\x1b]0;owned\x07", "\x1b]52;c;cm0gLXJm\x07", "\x1b[2J\x1b[H"
C1, OVERWRITTEN, TURNED = "\x9b31m", "failed\rdone", "\u202etxt.exe"
HOSTILE = (TITLE, CLIPBOARD, CLEAR, C1, OVERWRITTEN, TURNED, "[red]x[/red]", ":smile:", "\x7f\x00")


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (TITLE, r"\x1b]0;owned\x07"),
        (C1, r"\x9b31m"),
        (OVERWRITTEN, r"failed\rdone"),
        (TURNED, r"\u202etxt.exe"),
        ("two\r\nlines\tand é☃", "two\nlines\tand é☃"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
    ],
)
def test_control_characters_are_spelt_out_and_all_else_stays(sent: str, shown: str) -> None:
    assert visible(sent) == shown


@given(st.text(st.characters(max_codepoint=0x2100)))
def test_what_is_shown_stays_as_it_is_when_shown_again(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert visible(shown) == shown


def test_text_is_shown_in_every_way_as_it_is_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        table = TextTable("", ["a", "b"], left=["a", "b"])
        table.add_row(text, Text(text))
        echo(text)
        echo(text, err=True)
        for shown in (text, Text(text), table):
            console.show(shown)
        with console.progress(console.Detail.VERBOSE) as on_progress:
            on_progress(text, text, None)
        for shown in capsys.readouterr():
            assert visible(shown) == shown and visible(text) in shown


def test_rich_itself_still_commands_the_terminal() -> None:
    screen = SafeConsole(file=io.StringIO(), force_terminal=True, width=200, markup=False)
    with Progress(console=screen) as bars:
        bars.add_task("\x1b]0;owned\x07")
        bars.refresh()
        screen.print(Text("red", style="red"))
    shown = screen.file.getvalue()
    assert "\x1b[?25l" in shown and "\x1b[31mred\x1b[0m" in shown
    assert "\x1b]0;" not in shown and r"\x1b]0;" in shown


def test_columns_stand_below_one_another_whatever_a_cell_holds() -> None:
    table = TextTable("", ["a", "b"], left=["a", "b"])
    table.add_row("\x1b[31mred", "x")
    table.add_row("plain", "y")
    screen = SafeConsole(file=io.StringIO(), width=80)
    screen.print(table)
    *_, first, second = screen.file.getvalue().splitlines()
    assert first.index("x", 6) == second.index("y")


#: Who prints by other means has a reason.
OTHERS = {
    "terminal.py": "is the one place",
    "console.py": "JSON has its own escaping",
    "views/launch.py": "--raw",
}


def test_nothing_else_writes_to_the_terminal() -> None:
    root = Path(str(planner.__file__)).parent
    by_typer = r".*\b(?:typer|click)\.(?:echo|secho|confirm|prompt)\("
    prints = re.compile(rf"^\s*(?:print\(|{by_typer}|.*\bConsole\((?!quiet))", re.MULTILINE)
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if prints.search(path.read_text())}
    assert found == set(OTHERS)


@pytest.mark.parametrize(("said", "agreed"), [("y\n", True), ("Yes \n", True), ("n\n", False), ("\n", False)])
def test_yes_is_an_answer_and_all_else_is_no(said: str, agreed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    assert agrees("Remove it?", "--yes") == agreed


def test_where_nobody_answers_the_option_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(PlannerError, match="Remove it.* --yes answers yes"):
        agrees("Remove it?", "--yes")
