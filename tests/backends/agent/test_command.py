"""Any command on a device, between two windows of its sensors."""

import os
import signal
import sys

import pytest

from backends.agent.command import measure
from backends.agent.main import AgentTask
from backends.protocol.orders import MeasureCommand


class RecordingTask(AgentTask):
    """A task whose events are kept."""

    def __init__(self):
        self.events = []
        super().__init__(self.events.append)

    def text(self, stream):
        return "".join(event.text for event in self.events if event.stream == stream)


def run(task, command, idle_s=0.0):
    return measure(task, MeasureCommand(tuple(command), idle_s))


def python(code):
    return [sys.executable, "-c", code]


def test_what_it_prints_comes_as_events_and_its_code_in_the_result():
    job = RecordingTask()
    found = run(job, python("import sys; print('out, ü'); print('err', file=sys.stderr); sys.exit(3)"), 0.0)
    assert found.returncode == 3
    assert (job.text("out"), job.text("err")) == ("out, ü\n", "err\n")


def test_sensors_and_counters_are_in_both_windows():
    found = run(RecordingTask(), python("pass"), 0.1)
    assert set(found.idle.counters) == set(found.busy.counters)
    assert found.busy.counters["u_mem"].mean > 0


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no-such-program: No such file"):
        run(RecordingTask(), ["no-such-program"], 0.0)


def test_told_to_stop_it_ends_the_command():
    job = RecordingTask()
    job.emit = lambda event: job.stopping.set()
    found = run(job, python("import time; print('on', flush=True); time.sleep(3600)"), 0.0)
    assert found.returncode == -15


def test_what_it_leaves_running_does_not_hold_up_the_result():
    sleeper = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])"
    job = RecordingTask()
    run(job, python(f"import subprocess, sys; print({sleeper}.pid)"), 0.0)
    os.kill(int(job.text("out")), signal.SIGKILL)
