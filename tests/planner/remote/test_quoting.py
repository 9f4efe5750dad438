"""Every login shell reads the words of a command as they were given."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import characters, lists, text

from planner.remote.quoting import command_line

SHELLS = ["sh", "dash", "bash", "zsh", "csh", "tcsh", "fish", "mksh"]
PRINT = "import sys; print(ascii(sys.argv[1:]))"
SIGNS = [
    "it's",
    "a!b",
    "!!",
    "\\'",
    "\\\\n",
    "$HOME",
    "~",
    "`id`",
    "*",
    "{a,b}",
    "=ls",
    "%self",
    "",
    "#",
    "^a^b",
    "-n",
    "\t",
    "ü",
]


def not_at_home(word: str) -> bool:
    return not word.startswith("~/")


def read_by(shell: str, words: list[str]) -> str:
    line = command_line([sys.executable, "-c", PRINT, *words])
    return subprocess.run([shell, "-c", line], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return shutil.which(request.param) or pytest.skip(f"not installed: {request.param}")


def test_signs_that_mean_something_to_a_shell_are_read_as_they_are(shell: str) -> None:
    assert read_by(shell, SIGNS) == ascii(SIGNS)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=lists(text(characters(codec="ascii", exclude_categories=["Cc"])).filter(not_at_home), min_size=1, max_size=20)
)
def test_any_words_are_read_as_they_are(shell: str, words: list[str]) -> None:
    assert read_by(shell, words) == ascii(words)


def test_the_home_is_left_to_the_shell_and_the_rest_of_the_path_is_not(shell: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", PRINT, "~/it's $HOME/x", "~/", "x~/y"]
    line = command_line(words)
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)})
    assert done.stdout.strip() == ascii([f"{tmp_path}/it's $HOME/x", f"{tmp_path}/", "x~/y"])
