"""A launch on local devices: what a script is told, what is shown of it, and how it ends."""

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.running import Command, agents, fleet_file, gone, plan_file, run, signal_all

NAMES = ("tx2", "nano")
#: Where a rank waits for the end of the launch.
WAIT = "import time; time.sleep(600)"
#: The same, and says that it has begun.
HERE = f"print('here', file=sys.stderr, flush=True); {WAIT}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fleet of two local devices, a plan of both, and an empty project."""
    fleet_file(tmp_path, {name: {"python": sys.executable} for name in NAMES})
    plan_file(tmp_path / "plan.json", "cipher", NAMES, 10, fingerprint="none")
    (tmp_path / "net").mkdir()
    return tmp_path


def script(folder: Path, rank0: str, rank1: str) -> tuple[str, ...]:
    """Write a script that does something else on either rank; the words that launch it."""
    indented = ("\n".join(f"    {line}" for line in code.splitlines()) for code in (rank0, rank1))
    (folder / "net/train.py").write_text(
        "import os, signal, sys\nif os.environ['RANK'] == '0':\n{}\nelse:\n{}\n".format(*indented)
    )
    return ("launch", "plan.json", "--project", "net", "--", "python", "train.py")


def launched(folder: Path, rank0: str, rank1: str, *options: str) -> Command:
    """Launch a script to its end, after which nothing of it is left."""
    words = script(folder, rank0, rank1)
    command = run(folder, *words[:2], *options, *words[2:])
    gone(folder)
    return command


def test_every_rank_runs_in_a_copy_of_the_project_and_knows_its_place(folder: Path) -> None:
    (folder / "net/parts.py").write_text("WIDTH = 8")
    tell = (
        "from parts import WIDTH\n"
        "names = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'PLANNER_BATCH_SIZE', 'PLANNER_DEVICES'\n"
        "print(WIDTH, *map(os.environ.get, names))\n"
        "print(os.environ['MASTER_PORT'], file=sys.stderr)\n"
        "open('made', 'w').close()"
    )
    command = launched(folder, tell, tell)
    assert command.popen.returncode == 0, command.errors
    assert sorted(command.output.splitlines()) == [
        "[nano] 8 1 2 1 127.0.0.1 8 tx2,nano",
        "[tx2] 8 0 2 0 127.0.0.1 8 tx2,nano",
    ]
    ports = {line.split()[1] for line in command.errors.splitlines() if line.startswith("[")}
    assert len(ports) == 1
    assert "all 2 ranks ended with exit code 0" in command.last_line
    assert not (folder / "net/made").exists()
    assert len(list(folder.glob("cache-*/planner/project-*/made"))) == 2


@pytest.mark.parametrize(
    ("its_own", "words", "is_ours"),
    [
        ("old", ["python", "-W", "ignore", "src/train.py"], True),
        ("src", ["python", "src/train.py"], False),
        ("old", ["./src/start.sh"], True),
    ],
)
def test_the_file_of_batches_is_beside_the_script_unless_one_is_there(
    folder: Path, its_own: str, words: list[str], is_ours: bool
) -> None:
    for name in {"src", its_own}:
        (folder / "net" / name).mkdir()
    (folder / "net" / its_own / "planner_batches.py").touch()
    (folder / "net/src/train.py").write_text(
        "import importlib.util, os\n"
        "found = importlib.util.find_spec('planner_batches').origin\n"
        "print(os.environ['PLANNER_BATCH_SIZES'], os.path.getsize(found) > 0)"
    )
    (folder / "net/src/start.sh").write_text(f"#!/bin/sh\ncp src/train.py .\nexec {sys.executable} train.py")
    (folder / "net/src/start.sh").chmod(0o755)
    command = run(folder, "launch", "plan.json", "--project", "net", "--", *words)
    assert sorted(command.output.splitlines()) == [f"[nano] 8,8 {is_ours}", f"[tx2] 8,8 {is_ours}"]
    gone(folder)


def test_the_first_rank_that_fails_ends_all_with_its_exit_code(folder: Path) -> None:
    command = launched(folder, WAIT, "sys.exit(7)", "--json")
    assert command.popen.returncode == 7
    assert command.last_line == "planner: nano (rank 1) ended with exit code 7; tx2 was ended"
    result = json.loads(command.output)
    assert (result["exit_code"], result["failed"]) == (7, "nano")
    waiting, failed = result["ranks"]
    assert (waiting["name"], waiting["rank"], waiting["exit_code"]) == ("tx2", 0, 128 + signal.SIGTERM)
    assert waiting["ended_by"] == "the end of nano"
    assert (failed["name"], failed["exit_code"], failed["ended_by"]) == ("nano", 7, None)
    assert failed["seconds"] <= result["seconds"]


def test_an_exception_is_shown_with_the_users_own_file(folder: Path) -> None:
    command = launched(folder, WAIT, "raise ValueError('no such\\nlayer')")
    assert command.popen.returncode == 1
    assert f'[nano]   File "{folder}/net/train.py", line 5, in <module>' in command.errors
    last = command.errors.splitlines()[-1]  # there is a traceback, the script's
    assert last == "planner: nano (rank 1) ended with exit code 1: ValueError: no such; tx2 was ended"


def test_a_rank_that_a_signal_ends_is_told_as_a_shell_would(folder: Path) -> None:
    command = launched(folder, "os.kill(os.getpid(), signal.SIGKILL)", WAIT)
    assert command.popen.returncode == 128 + signal.SIGKILL
    assert command.last_line.startswith("planner: tx2 (rank 0) was ended by SIGKILL")


def test_ctrl_c_ends_all_ranks_and_says_so(folder: Path) -> None:
    command = Command(folder, *script(folder, WAIT, HERE))
    command.says("[nano] here")
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    assert "stopping all ranks" in command.errors
    assert command.last_line == "planner: all ranks were ended by Ctrl-C"
    gone(folder)


def test_a_second_ctrl_c_does_not_wait_for_a_rank_that_will_not_end(folder: Path) -> None:
    stubborn = "signal.signal(signal.SIGTERM, lambda *_: print('no', file=sys.stderr, flush=True))\n"
    command = Command(folder, *script(folder, stubborn + HERE, HERE))
    command.says("[tx2] here")
    command.popen.send_signal(signal.SIGINT)
    command.says("[tx2] no")
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    gone(folder)


def test_a_lost_device_ends_all(folder: Path) -> None:
    command = Command(folder, *script(folder, WAIT, HERE))
    command.says("[nano] here")
    signal_all(agents(folder, "nano")[:1], signal.SIGKILL)  # the oldest is the agent
    assert command.ended() == 1
    assert command.last_line.startswith("planner: nano: the agent ended")
    assert command.last_line.endswith("; tx2 was ended")
    gone(folder)


def test_a_program_that_is_not_on_a_device_is_named(folder: Path) -> None:
    command = run(folder, "launch", "plan.json", "--project", "net", "--", "no-such-program")
    assert command.popen.returncode == 1
    assert "no-such-program: No such file or directory" in command.last_line
    gone(folder)
