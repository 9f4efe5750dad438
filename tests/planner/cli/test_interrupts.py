"""Ctrl-C, SIGTERM and SIGHUP, as they come to a program of its own."""

import os
import signal
import subprocess
import sys

import pytest

CHILD = """
import signal, sys, time
{prepare}
from planner.cli import interrupts
interrupts.once()
caught = 0
for pause_s in {pauses}:
    try:
        signal.raise_signal(signal.{name})
    except KeyboardInterrupt:
        caught += 1
    time.sleep(pause_s)
print(caught, interrupts.status())
"""


def _caught(pauses: tuple[float, ...], prepare: str = "", name: str = "SIGINT") -> int:
    text = CHILD.format(pauses=pauses, prepare=prepare, name=name)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    caught, status = map(int, done.stdout.split())
    assert not caught or status == 128 + signal.Signals[name]
    return caught


@pytest.mark.parametrize("module", ["planner.cli.main", "typer", "planner.cli.interrupts"])
def test_ctrl_c_while_the_program_is_imported_is_one_line(module: str) -> None:
    program = (
        "import signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from planner.cli.entry import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "planner: stopped\n")


def test_no_import_swallows_ctrl_c() -> None:
    """Python swallows what is raised while an object is removed, for example."""
    program = (
        "import signal, sys\n"
        "class Removed:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'planner.cli.main': Removed()\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from planner.cli.entry import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "planner: stopped\n")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_others_are_taken_for_it(name: str) -> None:
    assert _caught((0.0, 0.3, 0.0), name=name) == 2


def test_what_nohup_ignores_stays_ignored() -> None:
    assert _caught((0.0,), "signal.signal(signal.SIGHUP, signal.SIG_IGN)", "SIGHUP") == 0


def test_what_would_go_to_a_terminal_that_has_hung_up_goes_nowhere() -> None:
    controller, terminal = os.openpty()
    text = CHILD.format(pauses=(0.0,), prepare="", name="SIGHUP")
    with subprocess.Popen([sys.executable, "-c", text], stdout=terminal, stderr=terminal) as child:
        assert child.wait() == 0
    os.close(terminal)
    with pytest.raises(OSError, match="Input/output error"):  # nothing was written, and nobody is there
        os.read(controller, 100)
    os.close(controller)


@pytest.fixture(autouse=True)
def _as_in_the_foreground() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children ignore it


def test_one_that_comes_twice_at_once_interrupts_once() -> None:
    assert _caught((0.0, 0.0, 0.0)) == 1


def test_pressing_it_again_interrupts_again() -> None:
    assert _caught((0.3, 0.0)) == 2


def test_where_it_is_ignored_it_stays_ignored() -> None:
    assert _caught((0.0,), "signal.signal(signal.SIGINT, signal.SIG_IGN)") == 0
