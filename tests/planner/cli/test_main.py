"""The command line as a whole: help, wrong usage, exit codes, pipes and locales."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planner import json_records
from planner.cli import main
from planner.errors import InterruptedRunError
from tests.planner.cli.commands import HEAVY, LOCAL, Planner, fleet


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_the_commands_are_listed_without_being_cut(planner: Planner, arguments: tuple[str, ...]) -> None:
    shown = planner(*arguments)
    assert (shown.code, shown.err) == (0, "")
    assert all(f"  {command} " in shown.out for command in main.COMMANDS)
    assert "..." not in shown.out.partition("Commands:")[2]


def test_help_loads_nothing_heavy() -> None:
    program = "import sys, planner.cli.main as c\ntry: c.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    assert "Usage: planner" in done.stdout
    assert HEAVY.isdisjoint(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("recomend",), "recomend"),
        (("recommend", "--metrics", "edp"), "--metrics"),
        (("recommend", "--steps", "0"), "--steps"),
        (("recommend", "--steps", "many"), "--steps"),
        (("recommend", "--top", "-1"), "--top"),
        (("trust",), "device"),
        (("init", "a", "b"), "b"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(planner: Planner, arguments: tuple[str, ...], named: str) -> None:
    problem = planner(*arguments).problem(code=2)
    assert named in problem
    assert problem.endswith("--help`")


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "models", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_traceback(tmp_path: Path, closed: str) -> None:
    json_records.save(fleet(), tmp_path / "profile.json")
    program = f"exec '{sys.executable}' -c 'from planner.cli.entry import main; main()' recommend {closed}"
    done = subprocess.run(["sh", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "plan.json").exists()


def test_a_locale_without_the_signs_is_no_traceback(tmp_path: Path) -> None:
    json_records.save(fleet(), tmp_path / "profile.json")
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "recommend"]
    root = str(Path(main.__file__).parent.parent)
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": root}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_one_line_and_130(profiled: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.plan.strategy_search.best_strategy", interrupt)
    assert profiled("recommend").problem(code=130) == "stopped"


def test_a_thread_that_cannot_be_started_is_one_line(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    Path("fleet.toml").write_text(LOCAL)
    assert planner("check").problem(code=1).startswith("this machine starts no more threads; ")


def test_a_run_that_the_operator_stopped_says_how_to_go_on(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise InterruptedRunError("stopped after step 5 of 10;\ngo on with `planner train --resume runs/x`")

    monkeypatch.setattr("planner.train.train.train", stopped)
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--data", "x").problem(code=130)
    assert problem == "stopped after step 5 of 10; go on with `planner train --resume runs/x`"
