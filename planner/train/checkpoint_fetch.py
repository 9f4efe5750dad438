"""The checkpoints of a run are fetched from the server's device into the run folder."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backends.protocol.events import CheckpointFailed, CheckpointWritten
from backends.protocol.orders import RemoveFile
from backends.training import checkpoint
from planner.agents.call import TICK_S, Event
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool
from planner.errors import RemoteError
from planner.paths import RunFolder
from planner.train.event_log import EventReporter
from planner.train.events import SlowFetch
from planner.train.orders import BETWEEN_S
from profilers.whole_file import private

#: A fetch that takes longer is told: with the rest after it, a minute is not enough.
SLOW_S = BETWEEN_S / 2.0
REMOVE_S = 10.0
#: Longest wait for a fetch whose agent has been closed to take note of it.
CLOSE_S = 5.0


@dataclass
class CheckpointFetcher:
    """Fetches the server's newest checkpoint into the run folder, whole or not at all.

    Each is fetched as soon as it is written, or else as soon as the one before is here. After a
    fetch the device is left alone for as long as that took. So a device that is lost takes with it
    what was trained in one interval of checkpoints, and while one was carried.

    before: the folder of the run that is resumed.
    agent: fetches the files; the server's own agent goes on reporting events meanwhile.
    unsaved: why the newest checkpoint is not in the run folder.
    """

    pool: AgentPool
    server: str
    folder: RunFolder
    before: Path | None
    reporter: EventReporter
    keep_weights: bool = True
    agent: AgentClient | None = field(default=None, init=False)
    unsaved: str = field(default="the server wrote none", init=False)
    clock: Callable[[], float] = time.monotonic
    _fetching: threading.Thread | None = field(default=None, init=False)
    _ending: threading.Event = field(default_factory=threading.Event, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _missing: CheckpointWritten | None = field(default=None, init=False)  # the newest, unless it is here
    _closed: bool = field(default=False, init=False)
    _has_said_slow: bool = field(default=False, init=False)

    def hear(self, event: Event) -> None:
        """Fetch what the server has written in the background, after the fetch under way."""
        if not isinstance(event, CheckpointWritten):
            return
        with self._lock:
            self._missing = event
            if self._fetching is None and not self._ending.is_set():
                self._fetching = threading.Thread(target=self._catch_up, daemon=True)
                self._fetching.start()

    def _catch_up(self) -> None:
        """Fetch until nothing newer has been written, a fetch fails, or the end is waited for."""
        while True:
            began_s = self.clock()
            fetched = self._fetch()
            if fetched:
                self._rest(self.clock() - began_s)
            with self._lock:
                if self.up_to_date or not fetched or self._ending.is_set():
                    self._fetching = None
                    return

    def _rest(self, seconds: float) -> None:
        """Leave the device alone after a fetch of so many seconds."""
        if seconds > SLOW_S and not self._has_said_slow:
            self._has_said_slow = True
            self.reporter.report("planner", SlowFetch(self.server, seconds))
        self._ending.wait(seconds)

    def finish(self) -> None:
        """Fetch the last checkpoint that the server has written, after the fetch under way."""
        self._ending.set()
        while (fetching := self._fetching) is not None and fetching.is_alive():
            fetching.join(TICK_S)
        if not self.up_to_date:
            self._fetch()

    def remove(self, agent: AgentClient, files: Iterable[str]) -> None:
        """Remove a run's files from the device.

        agent: of the server, which may be lost. A device that cannot be reached keeps the files
        until its cache is pruned.
        """
        with suppress(RemoteError):
            agent = self.agent or agent
            if agent.lost:
                agent = self.pool.another(self.server)
            for path in files:
                agent.call(RemoveFile(path), REMOVE_S)

    def close(self) -> None:
        """End what is under way; nothing unfinished stays."""
        self._closed = True
        self._ending.set()
        if (agent := self.agent) is not None:
            agent.close()
        if (fetching := self._fetching) is not None:
            fetching.join(CLOSE_S)
        with suppress(OSError):
            self.folder.unfinished_checkpoint.unlink(missing_ok=True)

    def _fetch(self) -> bool:
        """Fetch the newest one; whether that has succeeded."""
        newest, temporary = self._missing, self.folder.unfinished_checkpoint
        assert newest is not None, "one was announced"
        try:
            if self.agent is None:
                self.agent = self.pool.another(self.server)
            with open(temporary, "wb", opener=private) as file:
                self.agent.fetch(newest.path, file.write)
            if temporary.stat().st_size:
                os.replace(temporary, self.folder.checkpoint)
            with self._lock:
                self._missing = None if self._missing is newest else self._missing
            return True
        except OSError as error:
            self._failed(newest, error.strerror or str(error))
        except RemoteError as error:
            if self.agent is not None:
                self.agent.close()
                self.agent = None  # the next fetch starts another
            self._failed(newest, str(error))
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return False

    def _failed(self, written: CheckpointWritten, reason: str) -> None:
        self.unsaved = f"{self.folder.checkpoint}: {reason} (it is {self._place(written)})"
        if not self._closed:
            self.reporter.report("planner", CheckpointFailed(self.unsaved))

    @property
    def up_to_date(self) -> bool:
        """Whether the last checkpoint that the server announced is in the run folder."""
        return self._missing is None

    def has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step, or keeps none."""
        return not self.keep_weights or _step_of(self.folder.checkpoint) == step

    def resume_hint(self, done: int | None) -> str:
        """The end of an error message: the newest checkpoint, and how to resume from it.

        done: steps made; None where that is not known.
        """
        folder = self.folder.path if self.folder.checkpoint.exists() else self.before
        if folder is None and done == 0:
            return "; no step had been made, so there is nothing to go on from"
        if folder is None:
            return f"; no checkpoint had been taken{self._left_behind}"
        path = RunFolder(folder).checkpoint
        step = _step_of(path)
        of_step = "" if step is None else f" of step {step}"
        go_on = f"go on with `planner train --resume {folder}`"
        return f"; the last checkpoint is {path}{of_step}{self._left_behind}, {go_on}"

    @property
    def _left_behind(self) -> str:
        """What of the run's checkpoints is not here, in words."""
        return "" if self._missing is None else f" (that of step {self._missing.step} is {self._place(self._missing)})"

    def _place(self, written: CheckpointWritten) -> str:
        """Where a checkpoint is that is not here; one in a spare place goes with its process."""
        if written.path.startswith("/proc/"):
            return f"in a spare place on {self.server} for as long as the run's host lives there"
        return f"still {written.path} on {self.server}"


def _step_of(path: Path) -> int | None:
    """The step of a checkpoint; None where there is none that can be read."""
    try:
        return int(checkpoint.peek(str(path))["step"])
    except (OSError, ValueError):
        return None
