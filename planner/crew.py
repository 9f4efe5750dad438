"""Agents on several devices at once: opened in parallel, closed together."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from planner.agents import Agent
from planner.errors import PlannerError
from planner.fleet import Device
from planner.remote import connect
from planner.remote.base import Remote

#: sshd drops connections when many begin at once (its MaxStartups).
AT_ONCE = 8


class Crew:
    """One connection and one agent a device. ``errors`` says why a device has none."""

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._remotes: dict[str, Remote] = {}
        self._extra: list[Agent] = []
        self.devices: dict[str, Device] = {}
        self.agents: dict[str, Agent] = {}
        self.errors: dict[str, PlannerError] = {}

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def open(self, devices: Iterable[Device]) -> None:
        """Reach the devices, all at once; failures go into ``errors``."""
        self.devices.update({device.name: device for device in devices})
        in_parallel(self.devices, self._open)

    def _open(self, name: str) -> None:
        try:
            self.agents[name] = self.reopen(name)
        except PlannerError as error:
            self.errors[name] = error

    def reopen(self, name: str) -> Agent:
        """A new connection and agent for a device, in place of what was there. Raises RemoteError."""
        stale = self._remotes.pop(name, None)
        if stale is not None:
            stale.close()
        remote = self._remotes[name] = connect(self.devices[name])
        return Agent.launch(self.devices[name], remote, self._log)

    def another(self, name: str) -> Agent:
        """One more agent on a device, over the connection that is there: a process of its own."""
        agent = Agent.launch(self.devices[name], self._remotes[name], self._log)
        self._extra.append(agent)
        return agent

    def close(self) -> None:
        """End all agents and connections."""
        for agent in (*self.agents.values(), *self._extra):
            agent.close()
        for remote in self._remotes.values():
            remote.close()


def in_parallel(names: Iterable[str], work: Callable[[str], None]) -> None:
    """Call ``work`` for each name in a few threads; the first exception, if any, is raised when all have ended."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for future in [pool.submit(work, name) for name in names]:
            future.result()
