"""Pieces of output become lines, and tracebacks name the user's own files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.launch.output import LONGEST, LastError, LineSplitter, with_own_paths


def lines(*pieces: str) -> list[str]:
    splitter = LineSplitter()
    return [line for piece in pieces for line in splitter.add(piece)] + splitter.end()


def test_of_a_progress_bar_the_last_state_counts() -> None:
    assert lines("0 %\r", "50 %\r100", " %\ndone\r\n") == ["100 %", "done"]
    assert lines("0 %\r50 %\r") == ["50 %"]


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    splitter = LineSplitter()
    assert splitter.add("x" * LONGEST) == []
    assert splitter.add("x") == ["x" * (LONGEST + 1)]


@given(st.lists(st.text("ab\n")))
def test_no_character_is_lost_and_none_is_shown_twice(pieces: list[str]) -> None:
    assert lines(*pieces) == "".join(pieces).removesuffix("\n").split("\n") * ("".join(pieces) != "")


def test_a_traceback_names_the_file_of_this_machine() -> None:
    there, here = "/root/.cache/planner/project-1", "/home/user/net"
    line = f'  File "{there}/train.py", line 3, in main'
    assert with_own_paths(line, there, here) == '  File "/home/user/net/train.py", line 3, in main'
    assert with_own_paths(f"[rank1]:{line}", there, here).startswith('[rank1]:  File "/home/user/net/train.py"')


@pytest.mark.parametrize(
    "line", ["saved /cache/project-1/model.pt", '  File "/cache/project-12/a.py", line 3', '  File "/usr/a.py", line 3']
)
def test_other_paths_stay_as_they_are(line: str) -> None:
    assert with_own_paths(line, "/cache/project-1", "/home/user/net") == line


RAISED = """Traceback (most recent call last):
  File "train.py", line 3, in main
    load()
ValueError: no such file
"""


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("", ""),
        ("warning: a\n\nwarning: b\n \n", "warning: b"),
        (RAISED, "ValueError: no such file"),
        (RAISED + "warning: not destroyed\n", "ValueError: no such file"),
        (RAISED + "\nDuring handling of the above exception, another exception occurred:\n\n"
         + RAISED.replace("ValueError", "OSError"), "OSError: no such file"),
        ("".join(f"[rank1]: {line}\n" for line in RAISED.splitlines()), "ValueError: no such file"),
    ],
)  # fmt: skip
def test_the_last_error_is_the_last_exception_else_the_last_line(text: str, last: str) -> None:
    error = LastError()
    for line in text.splitlines():
        error.add(line)
    assert error.text == last
