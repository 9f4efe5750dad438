"""Hosts in network namespaces around one switch, every port shaped in both directions.

Needs root, ip and tc.
"""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from lab import network, traffic_control

SUBNET = "10.77.0"
BYTES_PER_S_MBIT = 125_000


class Star:
    """Hosts by name, each on a port of ``rates_mbit`` Mbit/s.

    A context manager: all is gone after it.
    """

    def __init__(self, rates_mbit: Mapping[str, float]) -> None:
        self._rates_mbit = dict(rates_mbit)
        self._switch = f"planner-{os.getpid()}-switch"
        self._stack = ExitStack()

    def __enter__(self) -> "Star":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # which cleans up, as Ctrl-C does
        with ExitStack() as stack:
            stack.callback(network.remove_namespace, self._switch)
            network.add_switch(self._switch)
            for name, rate_mbit in self._rates_mbit.items():
                stack.callback(network.remove_namespace, self._namespace(name))
                network.add_namespace(self._namespace(name))
                network.plug(self._switch, f"to-{name}", self._namespace(name), self.address(name))
                self._shape(name, rate_mbit)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prefix(self, name: str) -> tuple[str, ...]:
        """What to put before a command that is to run on this host."""
        return ("ip", "netns", "exec", self._namespace(name))

    def address(self, name: str) -> str:
        """The host's address on the switch."""
        return f"{SUBNET}.{1 + list(self._rates_mbit).index(name)}"

    def reshape(self, rate_mbit: float) -> None:
        """Give all ports another rate."""
        for name in self._rates_mbit:
            self._shape(name, rate_mbit)

    def _namespace(self, name: str) -> str:
        return f"planner-{os.getpid()}-{name}"

    def _shape(self, name: str, rate_mbit: float) -> None:
        traffic_control.shape(self._switch, f"to-{name}", self._namespace(name), rate_mbit * BYTES_PER_S_MBIT, {})
