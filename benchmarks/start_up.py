"""Seconds until the tool answers: the command line, an agent on a device, and a recommendation.

The agent is timed from nothing to its first answer, framework import apart: over a real sshd on
this machine, with a login each time, and locally; ``first`` hands the agent over, ``cached`` finds
it on the device.
"""

import getpass
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import synthetic
from reporting import Spread, parser, show

from backends.protocol.orders import ReadClock
from planner.agents.bundle import agent_archive
from planner.agents.client import AgentClient
from planner.fleet.device import Device, Interpreter, SshLogin
from planner.json_records import save
from planner.plan.recommend import recommend
from planner.predict.request import RecommendRequest
from planner.profile.file import Profile
from planner.remote import connect
from profilers.records.readings import Samples

COMMAND = "from planner.cli.main import main; main()"
DEVICES = 12


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=7, help="repeats of everything")
    options = arguments.parse_args()
    agent_archive()  # packed once in a controller's life
    rows = [*_command_line(options.rounds), *_agents(options.rounds), *_recommendations(options.rounds)]
    show("Start-up", rows, options.json)


def _command_line(rounds: int) -> list[dict[str, object]]:
    pairs = [(_python("pass"), _python(COMMAND, "--help")) for _ in range(rounds)]
    return [
        _row("python -c pass", [bare for bare, _ in pairs]),
        _row("planner --help", [asked for _, asked in pairs], Spread.of(asked / bare for bare, asked in pairs)),
    ]


def _python(code: str, *arguments: str) -> float:
    command = [sys.executable, "-c", code, *arguments]
    return _timed(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL))


def _agents(rounds: int) -> list[dict[str, object]]:
    rows = [_agent_rows("local", Device(name="here", interpreter=Interpreter(sys.executable)), rounds)]
    if shutil.which("sshd") and shutil.which("ssh-keygen"):
        with tempfile.TemporaryDirectory() as folder, _sshd(Path(folder)) as device:
            rows.append(_agent_rows("ssh", device, rounds))
    return [row for pair in rows for row in pair]


def _agent_rows(way: str, device: Device, rounds: int) -> list[dict[str, object]]:
    first, cached = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            empty = replace(device, interpreter=device.interpreter._replace(environment={"XDG_CACHE_HOME": cache}))
            first.append(_timed(partial(_start, empty)))
            cached.append(_timed(partial(_start, empty)))
    return [_row(f"agent, {way}, first", first), _row(f"agent, {way}, cached", cached)]


def _start(device: Device) -> None:
    remote = connect(device)
    try:
        AgentClient.launch(device, remote).call(ReadClock(), timeout_s=10.0)
    finally:
        remote.close()


@contextmanager
def _sshd(folder: Path) -> Iterator[Device]:
    """OpenSSH's server on this machine for this user, and the device it makes."""
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public = (folder / "host.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
    (folder / "ssh_config").write_text(f"UserKnownHostsFile {folder}/known_hosts\nIdentitiesOnly yes\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/client.pub\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n"
    )
    command = [str(shutil.which("sshd")), "-D", "-e", "-f", str(folder / "sshd_config")]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _await_port(port)
        yield Device(
            name="device",
            ssh=SshLogin("127.0.0.1", port, getpass.getuser(), folder / "client", ssh_config=folder / "ssh_config"),
            interpreter=Interpreter(sys.executable),
        )  # fmt: skip
    finally:
        server.terminate()
        server.wait()


def _await_port(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"sshd does not listen on port {port}")


def _recommendations(rounds: int) -> list[dict[str, object]]:
    """In one process, and as the whole command that reads a file and prints a table."""
    made = _made_up()
    inside = [_timed(partial(recommend, made, RecommendRequest({"edp": 1.0}))) for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        save(made, path)
        arguments = ("recommend", str(path), "--out", str(Path(folder) / "plan.json"))
        command = [_python(COMMAND, *arguments) for _ in range(rounds)]
    what = f"among 2^{DEVICES} sets of devices"
    return [_row(f"recommend {what}", inside), _row(f"planner recommend {what}", command)]


def _made_up() -> Profile:
    names = [f"device{number}" for number in range(DEVICES)]
    service_s = Samples("s", (1e-3,) * 20)
    devices = {name: synthetic.device(0.02 * (2 + i), 1_000_000, service_s) for i, name in enumerate(names)}
    links = (synthetic.link(a, b, 1e9 if a == b else 1e7) for a in names for b in names)
    return synthetic.profile(devices, links)


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _row(what: str, seconds: list[float], ratio: object = "-") -> dict[str, object]:
    return {"what": what, "seconds": Spread.of(seconds), "ratio to python -c pass": ratio}


if __name__ == "__main__":
    main()
