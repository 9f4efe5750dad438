"""Whether each device's data plane is reached from every other one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from backends.protocol.orders import AwaitKnocks, Knock
from planner.agents.addresses import try_addresses
from planner.agents.client import AgentClient, Call
from planner.check import findings
from planner.check.findings import Finding
from planner.errors import AgentError, PlannerError
from planner.fleet.device import Device

OPEN_S = 10.0
KNOCK_S = 30.0


class _Door(NamedTuple):
    """A port at which a device listens, and who answers there."""

    call: Call
    address: str
    port: int
    token: str


def reachability(devices: Mapping[str, Device], agents: Mapping[str, AgentClient]) -> dict[str, Finding]:
    """Every device listens on its data address and all others connect; one finding a device."""
    addresses, failed = try_addresses(devices, agents)
    doors: dict[str, _Door] = {}
    for name, address in addresses.items():
        with _blaming(name, failed):
            doors[name] = _open(agents[name], address)
    answers = _knock_everywhere(agents, doors, failed)
    for name, door in doors.items():
        with _blaming(name, failed):
            door.call.stop()
    return {
        name: findings.of_error(device, "data plane", failed[name]) if name in failed
        else findings.of_reach(name, [guest for guest, host in answers if host == name],
                               {guest: why for (guest, host), why in answers.items() if host == name and why})
        for name, device in devices.items()
    }  # fmt: skip


def _open(agent: AgentClient, address: str) -> _Door:
    call = agent.start(AwaitKnocks(address))
    event = call.event(OPEN_S)
    if event is None:
        call.result(0.0)  # raises what went wrong
        raise AgentError(f"{agent.name}: listen: it ended before anyone had knocked")
    return _Door(call, address, event.port, event.token)


def _knock_everywhere(
    agents: Mapping[str, AgentClient], doors: Mapping[str, _Door], failed: dict[str, PlannerError]
) -> dict[tuple[str, str], str | None]:
    """(guest, host) -> why the guest does not reach the host, or None. All at once."""
    calls: dict[tuple[str, str], Call] = {}
    for guest, agent in agents.items():
        with _blaming(guest, failed):
            for host, door in doors.items():
                if host != guest:
                    calls[guest, host] = agent.start(Knock(door.address, door.port, door.token))
    answers: dict[tuple[str, str], str | None] = {}
    for (guest, host), call in calls.items():
        with _blaming(guest, failed):
            answers[guest, host] = call.result(KNOCK_S)
    return answers


@contextmanager
def _blaming(name: str, failed: dict[str, PlannerError]) -> Iterator[None]:
    """A failure in here is this device's and nobody else's."""
    try:
        yield
    except PlannerError as error:
        failed.setdefault(name, error)
