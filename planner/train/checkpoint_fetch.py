"""The checkpoints of a run are fetched from the server's device into the run folder."""

import math
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backends.protocol.events import CheckpointFailed
from backends.training import checkpoint
from planner.agents.client import TICK_S, AgentClient
from planner.agents.pool import AgentPool
from planner.errors import RemoteError
from planner.paths import RunFolder
from planner.train.event_log import EventReporter

FETCH_S = 300.0


@dataclass
class CheckpointFetcher:
    """Fetches the server's newest checkpoint into the run folder, whole or not at all.

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
    _fetching: threading.Thread | None = field(default=None, init=False)
    _newest: str | None = field(default=None, init=False)
    _announced: int = field(default=0, init=False)
    _fetched: int = field(default=0, init=False)

    def fetch_in_background(self, path: str) -> None:
        """Fetch this file of the server in the background, unless a fetch is under way."""
        self._announced += 1
        if self._fetching is None or not self._fetching.is_alive():
            self._newest = path
            self._fetching = threading.Thread(target=self._fetch, args=(path,), daemon=True)
            self._fetching.start()

    def wait(self, timeout_s: float | None = FETCH_S) -> None:
        """Wait for the fetch under way to end."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._fetching is not None and self._fetching.is_alive() and time.monotonic() < deadline:
            self._fetching.join(TICK_S)

    def finish(self) -> None:
        """Fetch the last checkpoint that the server has written, after the fetch under way."""
        self.wait(None)
        if self._newest is not None:
            self._fetch(self._newest)

    def _fetch(self, path: str) -> None:
        temporary = self.folder.checkpoint.with_suffix(".part")
        announced = self._announced
        try:
            if self.agent is None:
                self.agent = self.pool.another(self.server)
            with temporary.open("wb") as file:
                self.agent.fetch(path, file.write)
            if temporary.stat().st_size:
                os.replace(temporary, self.folder.checkpoint)
            self._fetched = announced
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

    def _failed(self, path: str, reason: str) -> None:
        self.unsaved = f"{self.folder.checkpoint}: {reason} (it is still {path} on {self.server})"
        self.reporter.report("planner", CheckpointFailed(self.unsaved))

    @property
    def up_to_date(self) -> bool:
        """Whether the last checkpoint that the server announced is in the run folder."""
        return self._fetched == self._announced

    def has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step, or keeps none."""
        if not self.keep_weights:
            return True
        try:
            return bool(checkpoint.peek(str(self.folder.checkpoint))["step"] == step)
        except (OSError, ValueError):
            return False

    def resume_hint(self) -> str:
        """The end of an error message: the newest checkpoint, and how to resume from it."""
        folder = self.folder.path if self.folder.checkpoint.exists() else self.before
        if folder is None:
            return "; no checkpoint had been taken"
        return f"; the last checkpoint is {RunFolder(folder).checkpoint}, go on with `planner train --resume {folder}`"
