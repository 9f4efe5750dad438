"""The checkpoints of a run are fetched from the server's device into the run folder."""

import math
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from backends.protocol.events import CheckpointFailed
from backends.training import checkpoint
from planner.agents.client import TICK_S, AgentClient
from planner.agents.pool import AgentPool
from planner.errors import RemoteError
from planner.paths import RunFolder
from planner.train.event_log import EventReporter

FETCH_S = 300.0


class CheckpointFetcher:
    """Fetches the server's newest checkpoint into the run folder, whole or not at all.

    agent: fetches the files; the server's own agent goes on reporting events meanwhile.
    before: the folder of the run that is resumed.
    keep_weights: whether the run keeps its weights at all.
    unsaved: why the newest checkpoint is not in the run folder.
    """

    def __init__(
        self,
        pool: AgentPool,
        server: str,
        folder: RunFolder,
        before: Path | None,
        reporter: EventReporter,
        keep_weights: bool = True,
    ) -> None:
        self._pool = pool
        self._server = server
        self._folder = folder
        self._before = before
        self._reporter = reporter
        self._keep_weights = keep_weights
        self.agent: AgentClient | None = None
        self._fetching: threading.Thread | None = None
        self._newest: str | None = None
        self._announced = self._fetched = 0
        self.unsaved = "the server wrote none"

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
        temporary = self._folder.checkpoint.with_suffix(".part")
        announced = self._announced
        try:
            if self.agent is None:
                self.agent = self._pool.another(self._server)
            content = self.agent.fetch(path)
            if content:
                temporary.write_bytes(content)
                os.replace(temporary, self._folder.checkpoint)
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
        self.unsaved = f"{self._folder.checkpoint}: {reason} (it is still {path} on {self._server})"
        self._reporter.report("planner", CheckpointFailed(self.unsaved))

    @property
    def up_to_date(self) -> bool:
        """Whether the last checkpoint that the server announced is in the run folder."""
        return self._fetched == self._announced

    def has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step, or keeps none."""
        if not self._keep_weights:
            return True
        try:
            return bool(checkpoint.peek(str(self._folder.checkpoint))["step"] == step)
        except (OSError, ValueError):
            return False

    def resume_hint(self) -> str:
        """The end of an error message: the newest checkpoint, and how to resume from it."""
        folder = self._folder.path if self._folder.checkpoint.exists() else self._before
        if folder is None:
            return "; no checkpoint had been taken"
        return f"; the last checkpoint is {RunFolder(folder).checkpoint}, go on with `planner train --resume {folder}`"
