"""The agent as its controller sees it: lines in, lines out, and nothing left when the controller is
gone.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.agent.main import parsed
from backends.agent.verbs import ORDERS
from backends.protocol.json_messages import decode
from tests.mutations import MUTATIONS, damaged
from tests.running import HANG_S, ROOT, lives, until

#: The real agent with a few orders more.
PROGRAM = """
import os, subprocess, sys, time
from typing import NamedTuple
from backends.agent import main, verbs

class Noisy(NamedTuple): pass
class Child(NamedTuple): pass
class Stubborn(NamedTuple): pass
class Patient(NamedTuple): pass
class Fails(NamedTuple):
    how: str
class Said(NamedTuple):
    what: str

def noisy(task, order):
    print("to sys.stdout", flush=True)
    os.write(1, b'{"id": 1, "result": "a forgery"}\\n')
    subprocess.run(["echo", "from a child"])
    return "done"

def child(task, order):
    return subprocess.Popen(["sleep", "1000"]).pid

def stubborn(task, order):
    task.emit(Said("busy"))
    time.sleep(1000)

def patient(task, order):
    task.emit(Said("waiting"))
    task.go.wait()
    task.emit(Said("going"))
    task.stopping.wait()
    return "stopped"

def fails(task, order):
    raise KeyError(order.how)

verbs.ORDERS.update({Noisy: noisy, Child: child, Stubborn: stubborn, Patient: patient, Fails: fails})
main.SILENCE_S = float(sys.argv[1])
main.main()
"""


class Controller:
    """Talks to an agent in its own words."""

    def __init__(self, folder: Path, silence_s: float) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(silence_s)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.line()["hello"]["pid"] == self.popen.pid

    def say(self, number: int | None, order: str, blob: bytes = b"", **fields: Any) -> None:
        line = json.dumps({"id": number, "order": {"type": order, **fields}}).encode()
        self.popen.stdin.write(line + b"\n" + blob)
        self.popen.stdin.flush()

    def line(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.popen.stdout.readline())
        return answer

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            with suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    made = Controller(tmp_path, 20.0)
    yield made
    made.close()


def test_orders_are_carried_out_side_by_side(controller: Controller) -> None:
    controller.say(1, "patient")
    assert controller.line() == {"id": 1, "event": {"type": "said", "what": "waiting"}}
    controller.say(2, "read_clock")
    assert controller.line()["id"] == 2
    controller.say(None, "go", id=1)
    assert controller.line() == {"id": 1, "event": {"type": "said", "what": "going"}}
    controller.say(None, "stop", id=1)
    assert controller.line() == {"id": 1, "result": "stopped"}


def test_a_failure_says_what_where_and_of_which_kind(controller: Controller) -> None:
    controller.say(1, "fails", how="badly")
    error = controller.line()["error"]
    assert error["kind"] == "KeyError" and error["message"] == "'badly'" and "line" in error["traceback"]
    controller.say(2, "no_such_order")
    assert controller.line()["error"]["message"].startswith("unknown message 'no_such_order'")
    controller.say(3, "fails")
    assert controller.line()["error"]["message"] == "fails: missing 'how'"


def test_files_travel_byte_for_byte(controller: Controller) -> None:
    content = bytes(range(256)) * 5000 + b"\n{}\n"
    controller.say(1, "store_file", blob=content, name="some.bin", size=len(content))
    path = controller.line()["result"]
    controller.say(2, "fetch_file", path=path)
    assert controller.line() == {"id": 2, "result": None, "blob": len(content)}
    assert controller.popen.stdout.read(len(content)) == content
    controller.say(3, "find_file", name="another.bin", digest="0" * 64)
    assert controller.line()["result"] is None


def test_a_file_keeps_to_its_folder(controller: Controller) -> None:
    controller.say(1, "store_file", blob=b"x", name="../outside", size=1)
    assert "plain file name" in controller.line()["error"]["message"]


@pytest.mark.parametrize("busy", ["stubborn", None])
def test_it_ends_with_its_children_when_its_input_ends(controller: Controller, busy: str | None) -> None:
    controller.say(1, "child")
    child = controller.line()["result"]
    if busy is not None:
        controller.say(2, busy)
        controller.line()
    assert lives(child)
    controller.popen.stdin.close()
    controller.popen.wait(HANG_S)
    until(lambda: not lives(child), lambda: "its child is left behind")


def test_it_ends_when_its_input_ends_within_a_file(controller: Controller) -> None:
    controller.say(1, "store_file", blob=b"half", name="some.bin", size=8)
    controller.popen.stdin.close()
    controller.popen.wait(HANG_S)


def test_it_ends_when_the_pings_stop(tmp_path: Path) -> None:
    controller = Controller(tmp_path, 3.0)
    controller.say(1, "child")
    child = controller.line()["result"]
    for _ in range(16):
        time.sleep(0.25)
        controller.say(None, "ping")
    assert lives(child)
    controller.popen.wait(HANG_S)
    until(lambda: not lives(child), lambda: "its child is left behind")
    controller.close()


def test_ctrl_c_is_the_controllers_to_handle(controller: Controller) -> None:
    controller.popen.send_signal(signal.SIGINT)
    controller.say(1, "read_clock")
    assert controller.line()["result"] > 0


@pytest.mark.parametrize(
    "line", [b"nonsense", b"[1]", b"{}", b'"ping"', b"[" * 100_000, b'{"id": [], "order": {"type": "ping"}}', b"\xff"]
)
def test_a_line_that_is_no_order_ends_the_agent_with_one_line(controller: Controller, line: bytes) -> None:
    controller.popen.stdin.write(line + b"\n")
    controller.popen.stdin.flush()
    (said,) = controller.popen.stderr.read().decode().splitlines()
    assert said.startswith("the agent ends: ")


def test_an_order_whose_fields_do_not_fit_is_refused_and_the_agent_goes_on(controller: Controller) -> None:
    controller.say(1, "store_file", name="x", size=-1)
    assert "store_file.size: expected a whole number from 0 on" in controller.line()["error"]["message"]
    controller.say(2, "read_clock")
    assert controller.line()["id"] == 2


KINDS = tuple(ORDERS)
LINES = [
    json.dumps({"id": 1, "order": {"type": kind, **fields}}).encode()
    for kind, fields in (
        ("ping", {}), ("store_file", {"name": "x", "size": 3}), ("find_missing", {"digests": ["0" * 64]}),
        ("measure_idle", {"seconds": 1.0}), ("collect_facts", {"frameworks": None}),
    )
]  # fmt: skip


@MUTATIONS
@given(st.sampled_from(LINES).flatmap(damaged))
def test_whatever_line_comes_is_an_order_or_refused(line: bytes) -> None:
    with suppress(ValueError):
        decode(parsed(line)[1], KINDS)
