"""Hosts in network namespaces around one switch, every port shaped in both directions. Needs root, ip and tc."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack

#: What passes unshaped, in seconds of the line rate: more lets small messages through for free, less makes tbf miss
#: its rate and cost more processor time.
BUCKET_S = 0.56e-3
#: Below two packets a bucket passes nothing.
BUCKET_BYTES = 3200
QUEUE = "20ms"
SUBNET = "10.77.0"


def bucket_bytes(rate_mbit: float) -> int:
    """What a shaper of that rate lets through at once after a pause."""
    return max(BUCKET_BYTES, round(rate_mbit * 125_000 * BUCKET_S))


class Star:
    """Hosts by name, each on a port of ``rates_mbit`` Mbit/s. A context manager: all is gone after it."""

    def __init__(self, rates_mbit: Mapping[str, float]) -> None:
        self._rates_mbit = dict(rates_mbit)
        self._switch = f"planner-{os.getpid()}-switch"
        self._stack = ExitStack()

    def __enter__(self) -> "Star":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # which cleans up, as Ctrl-C does
        with ExitStack() as stack:
            self._add(stack, self._switch)
            _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "bridge", "up")
            for name in self._rates_mbit:
                self._add(stack, self._space(name))
                self._attach(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prefix(self, name: str) -> tuple[str, ...]:
        """What to put before a command that is to run on this host."""
        return ("ip", "netns", "exec", self._space(name))

    def address(self, name: str) -> str:
        """The host's address on the switch."""
        return f"{SUBNET}.{1 + list(self._rates_mbit).index(name)}"

    def reshape(self, rate_mbit: float) -> None:
        """Give all ports another rate."""
        for name in self._rates_mbit:
            self._shape(name, rate_mbit)

    def _space(self, name: str) -> str:
        return f"planner-{os.getpid()}-{name}"

    @staticmethod
    def _add(stack: ExitStack, space: str) -> None:
        _ip("netns", "add", space)
        stack.callback(_ip, "netns", "del", space)  # its interfaces go with it

    def _attach(self, name: str) -> None:
        space, port = self._space(name), f"to-{name}"
        _ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", space, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "link", "set", "eth0", "up")
        # A namespace inherits the machine's congestion control; devices at the edge use the kernel's default.
        source = self.address(name)
        _ip("-n", space, "route", "change", f"{SUBNET}.0/24", "dev", "eth0", "src", source, "congctl", "cubic")
        self._shape(name, self._rates_mbit[name])

    def _shape(self, name: str, rate_mbit: float) -> None:
        for space, device in ((self._space(name), "eth0"), (self._switch, f"to-{name}")):
            shape = ("root", "tbf", "rate", f"{rate_mbit}mbit", "burst", str(bucket_bytes(rate_mbit)), "latency", QUEUE)
            _run("tc", "-n", space, "qdisc", "replace", "dev", device, *shape)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
