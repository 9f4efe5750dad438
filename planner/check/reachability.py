"""Every device's data plane must be reachable from every other device."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from backends.protocol.orders import AwaitReachability, ProbeReachability
from planner.agents.addresses import try_addresses
from planner.agents.client import AgentClient, Call
from planner.check import findings
from planner.check.findings import Finding
from planner.errors import AgentError, PlannerError
from planner.fleet.device import Device

OPEN_S = 10.0
KNOCK_S = 30.0


class _Listener(NamedTuple):
    """A port on which a device listens for the probes of others."""

    call: Call
    address: str
    port: int
    token: str


def reachability(devices: Mapping[str, Device], agents: Mapping[str, AgentClient]) -> dict[str, Finding]:
    """Whether all other devices connect to each device's data address; one finding a device."""
    addresses, failed = try_addresses(devices, agents)
    listeners: dict[str, _Listener] = {}
    for name, address in addresses.items():
        with _attributed_to(name, failed):
            listeners[name] = _open(agents[name], address)
    answers = _probe_all(agents, listeners, failed)
    for name, listener in listeners.items():
        with _attributed_to(name, failed):
            listener.call.stop()
    return {
        name: findings.of_error(device, "data plane", failed[name]) if name in failed
        else findings.of_reach(name, [source for source, target in answers if target == name],
                               {source: why for (source, target), why in answers.items() if target == name and why})
        for name, device in devices.items()
    }  # fmt: skip


def _open(agent: AgentClient, address: str) -> _Listener:
    call = agent.start(AwaitReachability(address))
    event = call.event(OPEN_S)
    if event is None:
        call.result(0.0)  # raises what went wrong
        raise AgentError(f"{agent.name}: listen: it ended before anyone had knocked")
    return _Listener(call, address, event.port, event.token)


def _probe_all(
    agents: Mapping[str, AgentClient], listeners: Mapping[str, _Listener], failed: dict[str, PlannerError]
) -> dict[tuple[str, str], str | None]:
    """(source, target) -> why the source does not reach the target, or None. All probe at once."""
    calls: dict[tuple[str, str], Call] = {}
    for source, agent in agents.items():
        with _attributed_to(source, failed):
            for target, listener in listeners.items():
                if target != source:
                    calls[source, target] = agent.start(
                        ProbeReachability(listener.address, listener.port, listener.token)
                    )
    answers: dict[tuple[str, str], str | None] = {}
    for (source, target), call in calls.items():
        with _attributed_to(source, failed):
            answers[source, target] = call.result(KNOCK_S)
    return answers


@contextmanager
def _attributed_to(name: str, failed: dict[str, PlannerError]) -> Iterator[None]:
    """Record a failure within the block as that of this device alone."""
    try:
        yield
    except PlannerError as error:
        failed.setdefault(name, error)
