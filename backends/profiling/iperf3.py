"""iperf3 runs as a child process of the agent; its report in JSON tells bytes/s."""

import contextlib
import errno
import json
import math
import re
import socket
import subprocess
import time
from typing import Any, Dict, List, Optional, Tuple

from backends.network import framing
from backends.profiling.probing import INTERVAL_S, SILENCE_LIMIT_S, LinkError, checked_rate
from backends.protocol.events import ThroughputListening
from profilers.records.links import LinkThroughput

#: As a tool that probes throughput.
NAME = "iperf3"
#: Share of empty intervals beyond which the total counts: what is left after a ramp-up could have a
#: median of nothing.
MOST_EMPTY = 0.25
_ATTEMPTS = 3
#: A report begins a line, or follows a warning that does not end its own.
_BEGINNING = re.compile(r"\{\s*\"(?:start|error|intervals|end|title)\"")
_NO_NUMBER = re.compile(r"(:\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_LOST_SIGN = re.compile(r"(:\s*-?\d+(?:\.\d+)?e) (\d)", re.IGNORECASE)
_COMMAND = (NAME, "--json", "--interval", str(INTERVAL_S))


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
    command = client_command(address, port, seconds)
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
    rates, reason = parse_report(report)
    if reason is not None:
        raise LinkError("iperf3 to %s:%d: %s" % (address, port, reason))
    return LinkThroughput(NAME, tuple(rates), *cpu_s_per_byte(report))


def _start(address: str) -> Tuple["subprocess.Popen[bytes]", int]:
    """A server that listens, and its port.

    Another program may take a free port first: then another port.
    """
    nowhere = subprocess.DEVNULL  # standard input and output are the agent's
    for _ in range(_ATTEMPTS):
        with framing.listen(address) as listener:
            port = listener.getsockname()[1]
        command = server_command(port, address)
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


def server_command(port: int, address: str) -> List[str]:
    """The command that serves one test on one address of this device, then ends."""
    return [*_COMMAND, "--port", str(port), "--server", "--one-off", "--bind", address]


def client_command(address: str, port: int, seconds: float) -> List[str]:
    """The command that sends for whole seconds, rounded up, and prints what the server received."""
    test = ["--client", address, "--time", str(math.ceil(seconds)), "--get-server-output"]
    return [*_COMMAND, "--port", str(port), *test]


def parse_report(text: str) -> Tuple[List[float], Optional[str]]:
    """Parse ``iperf3 --json``: (bytes/s received in each interval, None), or ([], error).

    The sender's figures count bytes in its own buffers, so that only the receiver's are used: its
    total where a link is so slow that nothing arrives in many intervals.
    """
    try:
        report = _json_in(text)
        if report.get("error"):  # the exit code is 0 all the same
            return [], str(report["error"])
        values = _intervals(report.get("server_output_json") or report)
        if not values or values.count(0.0) > MOST_EMPTY * len(values):
            values = [_rate(report["end"]["sum_received"])]
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return [], "iperf3 gave no complete report; it ended with %r" % text[-200:]
    return (values, None) if max(values) > 0 else ([], "nothing arrived")


def _json_in(text: str) -> Dict[str, Any]:
    """The report among warnings around it, also where iperf3 prints it twice. Raises ValueError.

    iperf3 writes nan where it divided by nothing, and before 3.1.3 5.9e 06 for 5.9e+06.
    """
    mended = _NO_NUMBER.sub(r"\1null", _LOST_SIGN.sub(r"\1+\2", text))
    for begin in _BEGINNING.finditer(mended):
        if mended[: begin.start()].rstrip()[-1:] in (":", ",", "["):
            continue  # a part of a report that is cut off
        try:
            report: Dict[str, Any] = json.JSONDecoder().raw_decode(mended, begin.start())[0]
        except ValueError:  # braces of a warning
            continue
        return report
    raise ValueError("no report")


def cpu_s_per_byte(text: str) -> Tuple[Optional[float], Optional[float]]:
    """Processor seconds of a byte at the sender and the receiver of ``iperf3 --json``, if told."""
    try:
        end = _json_in(text)["end"]
        percent, total = end["cpu_utilization_percent"], end["sum_sent"]
        s_per_byte = [
            0.01 * percent[name] * total["seconds"] / total["bytes"] for name in ("host_total", "remote_total")
        ]
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None, None
    send_s, receive_s = (value if 0 < value < math.inf else None for value in s_per_byte)
    return send_s, receive_s


def _intervals(report: Dict[str, Any]) -> List[float]:
    sums = [interval["sum"] for interval in report["intervals"]]
    received = [total for total in sums if total.get("sender") is False]
    longest_s = max((total["seconds"] for total in received), default=0.0)
    return [_rate(total) for total in received if total["seconds"] > longest_s / 2]  # the last one may be shorter


def _rate(total: Dict[str, Any]) -> float:
    return checked_rate(total["bytes"] / total["seconds"])
