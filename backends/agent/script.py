"""The agent runs one rank of a user's own script, which finds the others by its environment."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Set

from backends.agent import libc
from backends.agent.command import GRACE_S, LEFT_S, TICK_S, pass_on
from backends.data.folder_content import require_folder
from backends.jobs.user_job import DATA_VARIABLE
from backends.protocol.orders import RunScript
from profilers.addresses_and_ports import interface_with
from profilers.cpu_quota import usable_cores

#: Variables of torchrun, which would have the ranks wait for a store that torchrun keeps.
_TORCHRUN = ("TORCHELASTIC_", "TORCH_ELASTIC_")

#: The process groups of scripts that run now.
_groups: Set[int] = set()


def run_script(task: Any, order: RunScript) -> int:
    """Run the script to its end, or until told to stop; emits what it prints.

    Returns its exit code, negative for the signal that ended it. No process of its group is left.
    Raises ValueError where it cannot be started, InterruptedError where it was told to stop before.
    """
    environment = _environment(order)
    first, arguments = order.command[0], order.command[1:]
    if task.stopping.is_set():
        raise InterruptedError("stopped before the script began")
    try:
        process = subprocess.Popen(
            (sys.executable if first == "python" else first,) + tuple(arguments),
            cwd=order.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=_die_with_the_agent,  # noqa: PLW1509 - it takes no lock: one call of the system
        )  # fmt: skip
    except OSError as error:
        raise ValueError("%s: %s" % (first, error.strerror)) from None
    _groups.add(process.pid)
    assert process.stdout is not None and process.stderr is not None, "both are pipes"
    printing = [pass_on(task, process.stdout, "out"), pass_on(task, process.stderr, "err")]
    ended = threading.Event()
    threading.Thread(target=_end_when_told, args=(task, process.pid, ended), daemon=True).start()
    if hasattr(os, "waitid"):  # until it is reaped no other group has its number
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:  # a Mac before Python 3.13
        process.wait()
    _signal(process.pid, signal.SIGKILL)
    ended.set()
    _groups.discard(process.pid)
    returncode = process.wait()
    until_s = time.monotonic() + LEFT_S
    for thread in printing:
        thread.join(max(0.0, until_s - time.monotonic()))
    return returncode


def end_all() -> None:
    """Kill all scripts that run, with their processes."""
    for group in list(_groups):
        _signal(group, signal.SIGKILL)


def _environment(order: RunScript) -> Dict[str, str]:
    """The agent's variables and those of the rank.

    What the fleet file sets for the interface and the threads holds. Raises ValueError where no
    interface has the address, or the folder of its data is missing.
    """
    if DATA_VARIABLE in order.environment:
        require_folder(order.environment[DATA_VARIABLE])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_TORCHRUN)}
    environment.update(order.environment)
    environment.setdefault("PYTHONUNBUFFERED", "1")  # lines are seen as they are printed
    environment.setdefault("OMP_NUM_THREADS", str(max(1, int(usable_cores()))))
    if order.address is not None:
        interface = environment.get("GLOO_SOCKET_IFNAME") or interface_with(order.address)
        environment["GLOO_SOCKET_IFNAME"] = interface
        environment.setdefault("NCCL_SOCKET_IFNAME", "=" + interface)  # without the sign, also eth01 for eth0
    return environment


def _die_with_the_agent() -> None:
    """The system kills the script when the agent is killed, which then cannot do so itself."""
    libc.signal_when_parent_ends(signal.SIGKILL)


def _end_when_told(task: Any, group: int, ended: threading.Event) -> None:
    while not ended.wait(TICK_S):
        if task.stopping.is_set():
            _signal(group, signal.SIGTERM)
            if not ended.wait(GRACE_S):
                _signal(group, signal.SIGKILL)
            return


def _signal(group: int, number: int) -> None:
    # All have ended, or run as another user by now.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
