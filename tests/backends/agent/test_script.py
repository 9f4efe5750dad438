"""One rank of a user's script: what it is given, and that nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from backends.agent import script
from backends.agent.main import AgentTask
from backends.protocol.orders import RunScript
from tests.running import HANG_S, ROOT, lives, until

#: Starts a child that ignores SIGTERM, tells both numbers, and waits.
FAMILY = """
import os, signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


class KeptTask(AgentTask):
    """A task whose events are kept."""

    def __init__(self):
        self.events = []
        super().__init__(self.events.append)

    def text(self, stream="out"):
        return "".join(event.text for event in self.events if event.stream == stream)


def order(code, environment=None, folder="/", address="127.0.0.1"):
    return RunScript(("python", "-c", code), str(folder), environment or {}, address)


def printed(code, environment=None, **of_order):
    task = KeptTask()
    assert script.run_script(task, order(code, environment, **of_order)) == 0
    return task.text()


def variables(environment=None, **of_order):
    """The environment of a rank."""
    return json.loads(printed("import json, os; print(json.dumps(dict(os.environ)))", environment, **of_order))


def gone(*pids):
    until(lambda: not any(map(lives, pids)), lambda: f"one of {pids} is left behind")


def test_it_runs_in_its_folder_with_the_agents_own_python(tmp_path):
    assert printed("import os, sys; print(os.getcwd(), sys.executable)", folder=tmp_path) == (
        f"{tmp_path} {sys.executable}\n"
    )


def test_what_it_prints_comes_as_events_and_its_exit_code_as_the_result():
    task = KeptTask()
    code = script.run_script(task, order("import sys; print('ü'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (code, task.text("out"), task.text("err")) == (3, "ü\n", "err\n")


def test_a_signal_that_ends_it_is_told():
    assert script.run_script(KeptTask(), order("import os; os.kill(os.getpid(), 9)")) == -9


def test_its_variables_are_those_of_the_order_and_the_interface_of_its_address(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(script, "usable_cores", lambda: 2.5)
    found = variables({"RANK": "1"})
    assert found["RANK"] == "1"
    assert (found["GLOO_SOCKET_IFNAME"], found["NCCL_SOCKET_IFNAME"]) == ("lo", "=lo")
    assert (found["OMP_NUM_THREADS"], found["PYTHONUNBUFFERED"]) == ("2", "1")


def test_what_the_fleet_file_sets_holds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    found = variables()
    assert (found["OMP_NUM_THREADS"], found["GLOO_SOCKET_IFNAME"]) == ("3", "eth7")
    assert found["NCCL_SOCKET_IFNAME"] == "=eth7"


def test_no_variable_of_torchrun_reaches_it(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("TORCH_ELASTIC_WORKER_IDENTICAL", "1")
    assert not [name for name in variables() if "ELASTIC" in name]


def test_an_address_of_no_interface_is_named():
    with pytest.raises(ValueError, match="192.0.2.1 is the address of no interface here"):
        script.run_script(KeptTask(), order("pass", address="192.0.2.1"))


def test_a_folder_of_data_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"no folder {tmp_path}/set, which the fleet file names as data; copy the"):
        script.run_script(KeptTask(), order("pass", {"PLANNER_DATA": str(tmp_path / "set")}))
    assert printed("import os; print(os.environ['PLANNER_DATA'])", {"PLANNER_DATA": str(tmp_path)}).strip() == str(
        tmp_path
    )


def test_told_to_stop_before_it_began_it_does_not_begin():
    task = KeptTask()
    task.stopping.set()
    with pytest.raises(InterruptedError):
        script.run_script(task, order("print(1)"))
    assert task.text() == ""


def family(task):
    """The process ids of a script and of its child, once both run."""
    until(lambda: "\n" in task.text(), lambda: f"nothing was printed: {task.text('err')}")
    return [int(pid) for pid in task.text().split()]


def test_told_to_stop_it_ends_with_its_children():
    task, codes = KeptTask(), []
    thread = threading.Thread(target=lambda: codes.append(script.run_script(task, order(FAMILY))))
    thread.start()
    pids = family(task)
    task.stopping.set()
    thread.join(HANG_S)
    assert codes == [-signal.SIGTERM]
    gone(*pids)


@pytest.mark.parametrize("has_waitid", [True, False])  # a Mac has none before Python 3.13
def test_what_it_leaves_running_ends_with_it(monkeypatch, has_waitid):
    if not has_waitid:
        monkeypatch.delattr(os, "waitid")
    task = KeptTask()
    assert script.run_script(task, order(FAMILY.replace("time.sleep(600)\n", "", 1))) == 0
    gone(*family(task))


def test_when_the_agent_ends_all_scripts_end():
    task = KeptTask()
    thread = threading.Thread(target=script.run_script, args=(task, order(FAMILY)))
    thread.start()
    pids = family(task)
    script.end_all()
    thread.join(HANG_S)
    gone(*pids)


def test_a_script_ends_with_an_agent_that_is_killed():
    # The process under test stands in for the agent.
    code = (
        "from tests.backends.agent.test_script import *\n"
        "task = KeptTask(); task.emit = lambda event: print(event.text, flush=True)\n"
        "script.run_script(task, order('import os, time; print(os.getpid(), flush=True); time.sleep(600)'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as agent:
        pid = int(agent.stdout.readline())
        agent.kill()
    gone(pid)
