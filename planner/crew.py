"""Agents on several devices at once: opened in parallel, closed together."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from planner.agents import Agent
from planner.errors import DeviceLostError, PlannerError
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
        self._closed = False
        self._lock = threading.Lock()
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
        remote = connect(self.devices[name])
        with self._lock:
            if self._closed:  # while this connected
                remote.close()
                raise DeviceLostError(f"{name}: closed")
            self._remotes[name] = remote
        return Agent.launch(self.devices[name], remote, self._log)

    def another(self, name: str) -> Agent:
        """One more agent on a device, over the connection that is there: a process of its own."""
        agent = Agent.launch(self.devices[name], self._remotes[name], self._log)
        self._extra.append(agent)
        return agent

    def close(self) -> None:
        """End all agents and connections, and those that are still being opened."""
        with self._lock:
            self._closed = True
            remotes = list(self._remotes.values())
        agents = [*list(self.agents.values()), *self._extra]
        for close in [agent.close for agent in agents] + [remote.close for remote in remotes]:
            close()


def in_parallel(names: Iterable[str], work: Callable[[str], None]) -> None:
    """Call ``work`` for each name in a few threads; the first exception, if any, is raised when all have ended.

    Ctrl-C is raised at once: closing the crew is what ends the threads.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    futures = [pool.submit(work, name) for name in names]
    try:
        wait(futures)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for future in futures:
        future.result()
