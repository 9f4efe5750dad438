"""A real lab: built, measured, hurt, healed and removed. Needs Linux, root and a lab's programs."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lab import network, programs, state
from benchmarks.lab.__main__ import main
from planner.fleet.file import load_fleet
from tests.quick import NUMPY_ALONE
from tests.running import Command, Ran, call, run

#: All of these tests hurt and heal one lab.
pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]
#: What tcp carries of a shaped rate.
PAYLOAD = 0.957
#: Limits of memory are whole pages.
PAGE = os.sysconf("SC_PAGE_SIZE")
#: Measurements of a rate before it counts as too low.
TRIES = 20

SPEC = """\
[devices.a]
cpus = 0.5
rate = "40mbit"

[devices.b]
kind = "tx2"
cpus = 0.4
rate = "20mbit"
memory = "500mb"

[devices.c]
cpus = 0.4
rate = "20mbit"

[[links]]
from = "a"
to = "c"
rate = "10mbit"
one_way = true

[[schedule]]
at = "0s"
device = "c"
cpus = 0.1

[[schedule]]
at = "10min"
device = "c"
cpus = 0.2
"""


class LabCommand(Command):
    """``python -m benchmarks.lab`` as a process of its own."""

    program = "from benchmarks.lab.__main__ import main; main()"


class Bench:
    """A lab of this test's own, driven by the command line."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.names = folder, name, state.LabNames(name)
        (folder / "spec.toml").write_text(SPEC)

    def lab(self, *arguments: str) -> Ran:
        called = call(self.folder, *arguments, "--name", self.name, program=main)
        assert called.code == 0, called.err
        return called

    def status(self) -> dict[str, Any]:
        devices: dict[str, Any] = json.loads(self.lab("status", "--json").out)["devices"]
        return devices

    def over_ssh(self, name: str, *command: str, connect_s: int = 60) -> str | None:
        """What a command prints on a device; None where the device does not answer."""
        device = load_fleet(self.folder / "fleet.toml").device(name)
        login = ["ssh", "-F", str(device.ssh.ssh_config), "-i", str(device.ssh.key), "-oBatchMode=yes"]
        login.append(f"-oConnectTimeout={connect_s}")
        try:
            done = subprocess.run(
                [*login, f"root@{device.ssh.host}", *command],
                check=False,
                capture_output=True,
                text=True,
                timeout=4 * connect_s,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def carries(self, source: str, target: str, rate_mbit: float) -> None:
        """The link carries this rate, and no more.

        Whatever else runs on this machine takes from a rate and never adds to it, so that a slow
        try is made again.
        """
        address = load_fleet(self.folder / "fleet.toml").device(target).ssh.host
        carried = rate_mbit * PAYLOAD
        for _ in range(TRIES):
            said = self.over_ssh(source, "iperf3", "-J", "-t", "1", "-O", "0.3", "-c", str(address))
            assert said is not None
            measured = float(json.loads(said)["end"]["sum_received"]["bits_per_second"]) / 1e6
            assert measured < 1.05 * carried
            if measured > 0.95 * carried:
                return
        raise AssertionError(f"{source} to {target}: {measured:.3g} Mbit/s in the last of {TRIES} tries")

    def sshd_numbers(self) -> list[str]:
        return [(self.names.of(name) / "sshd.pid").read_text() for name in "abc"]

    def asked(self, name: str, code: str) -> str | None:
        """What Python prints on a device, with this tree on its path."""
        environment = load_fleet(self.folder / "fleet.toml").device(name).interpreter.environment
        exports = [f"{key}={value}" for key, value in environment.items()]
        path = f"import sys; sys.path.insert(0, '{Path(programs.__file__).parents[2]}')"
        return self.over_ssh(name, "env", *exports, sys.executable, "-c", f'"{path}; {code}"')

    def memory_bytes(self, name: str) -> int:
        """Main memory of a device, as its facts tell it."""
        ask = "from profilers import device_facts, file_tree; tree = file_tree.FileTree('/')"
        return int(self.asked(name, ask + "; print(device_facts.memory(tree, tree)[0])") or 0)

    def leftovers(self) -> list[str]:
        """Whatever of this machine has the lab's name."""
        mark = str(self.names.folder).encode()
        lines = {entry.name: _command_line(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        places = (self.names.folder, Path("/sys/class/net") / self.names.interface)
        return [
            *(namespace for namespace in network.namespaces() if namespace.startswith(self.names.switch)),
            # os.walk bears that another test removes its lab meanwhile.
            *(root for root, _, _ in os.walk("/sys/fs/cgroup") if Path(root).name == self.names.switch),
            *(str(path) for path in places if path.exists()),
            *(f"process {number}" for number, line in lines.items() if mark in line),
        ]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def bench(lab_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("lab"), f"t{os.getpid()}")
    try:
        made.lab("up", "spec.toml")
        yield made
    finally:
        LabCommand.run(made.folder, "down", "--name", made.name)


def test_every_device_is_up_and_can_take_part(bench: Bench) -> None:
    status = bench.status()
    assert {name: (seen["state"], seen["sshd"]) for name, seen in status.items()} == dict.fromkeys("abc", ("up", True))
    fleet, path = (bench.folder / "fleet.toml").read_text(), json.dumps(NUMPY_ALONE["PYTHONPATH"])
    (bench.folder / "numpy.toml").write_text(fleet.replace("environment = {", f"environment = {{ PYTHONPATH = {path},"))
    checked = json.loads(run(bench.folder, "check", "--fleet", "numpy.toml", "--framework", "torch", "--json").output)
    assert checked["able"] == dict.fromkeys("abc", True)


def test_a_device_sees_its_own_network_and_quota(bench: Bench) -> None:
    assert bench.asked("b", "from profilers.cpu_quota import usable_cores; print(usable_cores())") == "0.4\n"
    assert bench.over_ssh("b", "ls", "/sys/class/net") == "eth0\nlo\n"


def test_links_carry_what_was_set_in_both_directions(bench: Bench) -> None:
    bench.lab("set", "b", "--rate", "5mbit")
    bench.carries("b", "a", 5)
    bench.carries("a", "b", 5)
    bench.lab("up", "spec.toml")
    bench.carries("a", "b", 20)


def test_a_processor_gives_what_was_set(bench: Bench) -> None:
    bench.lab("set", "a", "--cpus", "0.2")
    code = "import time; start, began = time.monotonic(), time.process_time()"
    busy = f"{code}\\nwhile time.process_time() < began + 0.4: pass\\nprint(time.monotonic() - start)"
    said = bench.over_ssh("a", sys.executable, "-c", f"$'{busy}'")
    assert said is not None
    assert float(said) > 1.7  # 2 s less one period; more where the machine is busy
    bench.lab("up", "spec.toml")


@pytest.mark.parametrize(("verb", "state"), [("stop", "stopped"), ("kill", "killed"), ("cut", "cut")])
def test_what_is_broken_is_seen_and_can_be_restored(bench: Bench, verb: str, state: str) -> None:
    bench.lab(verb, "b")
    bench.lab(verb, "b")
    seen = bench.status()["b"]
    assert (seen["state"], seen["sshd"]) == (state, verb != "kill")
    assert bench.over_ssh("b", "true", connect_s=1) is None
    assert bench.over_ssh("a", "true") == ""
    bench.lab("restore", "b")
    assert bench.over_ssh("b", "true") == ""
    assert bench.status()["b"]["state"] == "up"


def test_memory_is_limited_and_freed_while_a_device_is_up(bench: Bench) -> None:
    whole = bench.memory_bytes("a")
    assert bench.memory_bytes("b") == 500_000_000 // PAGE * PAGE
    other = SPEC.replace('memory = "500mb"\n', "").replace("cpus = 0.5", 'cpus = 0.5\nmemory = "700mb"')
    (bench.folder / "other.toml").write_text(other)
    bench.lab("up", "other.toml")
    assert (bench.memory_bytes("a"), bench.memory_bytes("b")) == (700_000_000 // PAGE * PAGE, whole)
    bench.lab("up", "spec.toml")


def test_a_schedule_is_played_until_it_is_interrupted(bench: Bench) -> None:
    command = LabCommand(bench.folder, "play", "spec.toml", "--name", bench.name)
    command.says("0 s: c 0.1 cpus")
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    assert "after 1 of 2 changes" in command.errors
    assert bench.status()["c"]["cpus"] == 0.1


def test_after_a_crash_everything_is_found_and_removed(bench: Bench) -> None:
    shutil.rmtree(bench.names.folder)
    refused = LabCommand.run(bench.folder, "status", "--name", bench.name)
    assert refused.popen.returncode == 1 and "benchmarks.lab up" in refused.last_line
    assert bench.leftovers()
    assert bench.lab("down").out == "removed\n"
    assert bench.leftovers() == []
    assert bench.lab("down").out == "there was nothing to remove\n"
