"""A pool opens agents on several devices in parallel and closes them together."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from planner.agents.call import TICK_S
from planner.agents.client import AgentClient
from planner.errors import DeviceLostError, PlannerError, RunError
from planner.fleet.device import Device
from planner.remote import connect
from planner.remote.base import Remote

Done = TypeVar("Done")

#: sshd drops connections when many begin at once (its MaxStartups).
AT_ONCE = 8


class AgentPool:
    """One connection and one agent a device. ``errors`` says why a device has none."""

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._remotes: dict[str, Remote] = {}
        self._extra: list[AgentClient] = []
        self._closed = False
        self._lock = threading.Lock()
        self.devices: dict[str, Device] = {}
        self.agents: dict[str, AgentClient] = {}
        self.errors: dict[str, PlannerError] = {}

    def __enter__(self) -> "AgentPool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def open(self, devices: Iterable[Device]) -> None:
        """Reach the devices that have no agent, or whose agent is lost, all at once.

        Failures go into ``errors``.
        """
        by_name = {device.name: device for device in devices if not self._is_there(device.name)}
        self.devices.update(by_name)
        in_parallel(by_name, self._open)

    def open_all(self, devices: Iterable[Device]) -> None:
        """Reach devices of which none may be missing. Raises RunError naming those that are."""
        self.open(devices)
        if self.errors:
            raise RunError("; ".join(str(error) for error in self.errors.values()))

    def _is_there(self, name: str) -> bool:
        return name in self.agents and not self.agents[name].lost

    def _open(self, name: str) -> None:
        try:
            self.agents[name] = self.reopen(name)
            self.errors.pop(name, None)
        except PlannerError as error:
            self.errors[name] = error

    def reopen(self, name: str) -> AgentClient:
        """Connect to a device anew and start a new agent there. Raises RemoteError.

        The device's old connection is closed first.
        """
        stale = self._remotes.pop(name, None)
        if stale is not None:
            stale.close()
        remote = connect(self.devices[name])
        with self._lock:
            if self._closed:  # while this connected
                remote.close()
                raise DeviceLostError(f"{name}: closed")
            self._remotes[name] = remote
        return AgentClient.launch(self.devices[name], remote, self._log)

    def another(self, name: str) -> AgentClient:
        """One more agent on a device, over the connection that is there: a process of its own."""
        agent = AgentClient.launch(self.devices[name], self._remotes[name], self._log)
        self._extra = [*(each for each in self._extra if not each.lost), agent]
        return agent

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Lend the pool to a part of the work.

        At its end only those agents end that ``another`` started during it.
        """
        before = list(self._extra)
        try:
            yield
        finally:
            for agent in self._extra:
                if agent not in before:
                    agent.close()
            self._extra = before

    def close(self) -> None:
        """End all agents and connections, and those that are still being opened."""
        with self._lock:
            self._closed = True
            remotes = list(self._remotes.values())
        agents = [*list(self.agents.values()), *self._extra]
        for close in [agent.close for agent in agents] + [remote.close for remote in remotes]:
            close()


def in_parallel(names: Iterable[str], work: Callable[[str], Done], at_once: int = AT_ONCE) -> dict[str, Done]:
    """Call ``work`` for each name in a few threads; returns what it returned, by name.

    When all have ended, the first exception is raised.

    Ctrl-C is raised at once. The threads are daemons, so that none that still waits for a device
    holds up the end of the program; closing the pool ends the others.
    """
    futures: dict[str, Future[Done]] = {name: Future() for name in names}
    waiting = iter(list(futures.items()))
    taking = threading.Lock()

    def serve() -> None:
        while True:
            with taking:
                name, future = next(waiting, ("", None))
            if future is None:
                return
            try:
                future.set_result(work(name))
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
                future.set_exception(error)

    for _ in range(min(at_once, len(futures))):
        threading.Thread(target=serve, daemon=True).start()
    while wait(futures.values(), TICK_S).not_done:
        pass
    return {name: future.result() for name, future in futures.items()}
