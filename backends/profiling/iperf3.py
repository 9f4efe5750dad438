"""iperf3 runs as a child process of the agent."""

import contextlib
import errno
import math
import socket
import subprocess
import time
from typing import Any, Tuple

from backends.network import framing
from backends.protocol.events import ThroughputListening
from profilers import goodput
from profilers.goodput import SILENCE_LIMIT_S, LinkError, LinkThroughput

#: As a tool that probes throughput.
NAME = "iperf3"
_ATTEMPTS = 3


def serve(task: Any, address: str, count: int, seconds: float) -> None:
    """``count`` servers for one test each, to the end of the last; emits their ports."""
    with contextlib.ExitStack() as stack:
        children, ports = [], []
        for _ in range(count):
            child, port = _start(address)
            stack.callback(_end, child)
            children.append(child)
            ports.append(port)
        task.emit(ThroughputListening(tuple(ports)))
        deadline = time.monotonic() + seconds + 2 * SILENCE_LIMIT_S
        while any(child.poll() is None for child in children):
            if time.monotonic() > deadline:
                raise LinkError("an iperf3 test at %s, ports %s, never began or ended" % (address, ports))
            if task.stopping.wait(0.05):
                return


def send(address: str, port: int, seconds: float) -> LinkThroughput:
    """One test towards a server. Raises LinkError."""
    command = goodput.iperf3_client_command(address, port, seconds)
    limit_s = math.ceil(seconds) + 2 * SILENCE_LIMIT_S
    nowhere = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, check=False, timeout=limit_s, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere
        )
    except subprocess.TimeoutExpired as error:
        raise LinkError(
            "iperf3 to %s:%d did not end within %g s; is a firewall in between?" % (address, port, limit_s)
        ) from error
    except OSError as error:
        raise LinkError("cannot start iperf3: %s" % error) from error
    report = done.stdout.decode(errors="replace")
    rates, reason = goodput.parse_iperf3(report)
    if reason is not None:
        raise LinkError("iperf3 to %s:%d: %s" % (address, port, reason))
    return LinkThroughput(NAME, tuple(rates), *goodput.iperf3_cpu_s(report))


def _start(address: str) -> Tuple["subprocess.Popen[bytes]", int]:
    """A server that listens, and its port.

    Another program may take a free port first: then another port.
    """
    nowhere = subprocess.DEVNULL  # standard input and output are the agent's
    for _ in range(_ATTEMPTS):
        with framing.listen(address) as listener:
            port = listener.getsockname()[1]
        command = goodput.iperf3_server_command(port, address)
        try:
            child = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        except OSError as error:
            raise LinkError("cannot start iperf3: %s" % error) from error
        if _listens(child, address, port):
            return child, port
        _end(child)
    raise LinkError("iperf3 does not start; try it by hand: %s" % " ".join(command))


def _listens(child: "subprocess.Popen[bytes]", address: str, port: int) -> bool:
    """Wait until the port is taken. To connect and see would use up the one test it serves."""
    deadline = time.monotonic() + SILENCE_LIMIT_S
    family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    while child.poll() is None and time.monotonic() < deadline:
        with socket.socket(family, kind) as probe:
            try:
                probe.bind(where)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return True
                raise
        time.sleep(0.01)
    return False


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
