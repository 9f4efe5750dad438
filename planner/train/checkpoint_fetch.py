"""The checkpoints of a run are fetched from the server's device into the run folder."""

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backends.protocol.events import CheckpointFailed, CheckpointWritten
from backends.training import checkpoint
from planner.agents.call import TICK_S, Event
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool
from planner.errors import RemoteError
from planner.paths import RunFolder
from planner.train.event_log import EventReporter
from profilers.whole_file import private

FETCH_S = 300.0
#: Share of the time in which checkpoints are fetched, at most: a fetch takes processor and link of
#: the server's device.
FETCH_SHARE = 0.05


@dataclass
class CheckpointFetcher:
    """Fetches the server's newest checkpoint into the run folder, whole or not at all.

    It fetches as long as there is a newer one, and then rests for as long as ``FETCH_SHARE`` asks.
    So a device that is lost takes with it what was written since the last checkpoint here: an
    interval, or what is written during a fetch and the rest after it.

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
    _newest: CheckpointWritten | None = field(default=None, init=False)
    _fetched: CheckpointWritten | None = field(default=None, init=False)

    def hear(self, event: Event) -> None:
        """Fetch what the server has written in the background, after the fetch under way."""
        if not isinstance(event, CheckpointWritten):
            return
        with self._lock:
            self._newest = event
            if self._fetching is None or not self._fetching.is_alive():
                fetching = threading.Thread(target=self._catch_up, daemon=True)
                fetching.start()
                self._fetching = fetching

    def _catch_up(self) -> None:
        """Fetch until nothing newer has been written, a fetch fails, or the end is waited for."""
        while True:
            began_s = self.clock()
            fetched = self._fetch()
            if fetched:
                self._ending.wait((1.0 / FETCH_SHARE - 1.0) * (self.clock() - began_s))
            with self._lock:
                if self.up_to_date or not fetched or self._ending.is_set():
                    self._fetching = None
                    return

    def wait(self, timeout_s: float | None = FETCH_S) -> None:
        """Wait for the fetch under way to end, after which no other begins by itself."""
        self._ending.set()
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while (fetching := self._fetching) is not None and fetching.is_alive() and time.monotonic() < deadline:
            fetching.join(TICK_S)

    def finish(self) -> None:
        """Fetch the last checkpoint that the server has written, after the fetch under way."""
        self.wait(None)
        if not self.up_to_date:
            self._fetch()

    def _fetch(self) -> bool:
        """Fetch the newest one; whether that has succeeded."""
        newest = self._newest
        assert newest is not None, "one was announced"
        path = newest.path
        temporary = self.folder.checkpoint.with_suffix(".part")
        try:
            if self.agent is None:
                self.agent = self.pool.another(self.server)
            with open(temporary, "wb", opener=private) as file:
                self.agent.fetch(path, file.write)
            if temporary.stat().st_size:
                os.replace(temporary, self.folder.checkpoint)
            self._fetched = newest
            return True
        except OSError as error:
            self._failed(path, error.strerror or str(error))
        except RemoteError as error:
            if self.agent is not None:
                self.agent.close()
                self.agent = None  # the next fetch starts another
            self._failed(path, str(error))
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        return False

    def _failed(self, path: str, reason: str) -> None:
        self.unsaved = f"{self.folder.checkpoint}: {reason} (it is still {path} on {self.server})"
        self.reporter.report("planner", CheckpointFailed(self.unsaved))

    @property
    def up_to_date(self) -> bool:
        """Whether the last checkpoint that the server announced is in the run folder."""
        return self._fetched is self._newest

    def has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step, or keeps none."""
        return not self.keep_weights or _step_of(self.folder.checkpoint) == step

    def resume_hint(self) -> str:
        """The end of an error message: the newest checkpoint, and how to resume from it."""
        folder = self.folder.path if self.folder.checkpoint.exists() else self.before
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
        if self._newest is None or self.up_to_date:
            return ""
        return f" (that of step {self._newest.step} is still {self._newest.path} on {self.server})"


def _step_of(path: Path) -> int | None:
    """The step of a checkpoint; None where there is none that can be read."""
    try:
        return int(checkpoint.peek(str(path))["step"])
    except (OSError, ValueError):
        return None
