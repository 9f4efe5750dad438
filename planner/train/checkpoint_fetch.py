"""What brings the checkpoints of a run home."""

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
    """Brings the server's newest checkpoint into the run folder, whole or not at all.

    An agent of its own, ``agent``, carries it: the server's goes on telling what happens meanwhile. ``before`` is the
    folder of the run that is resumed; ``unsaved`` says why the newest checkpoint is not here. ``wanted``: whether the
    run keeps its weights at all.
    """

    def __init__(
        self,
        crew: AgentPool,
        server: str,
        folder: RunFolder,
        before: Path | None,
        journal: EventReporter,
        wanted: bool = True,
    ) -> None:
        self._crew = crew
        self._server = server
        self._folder = folder
        self._before = before
        self._journal = journal
        self._wanted = wanted
        self.agent: AgentClient | None = None
        self._fetching: threading.Thread | None = None
        self._newest: str | None = None
        self._told = self._brought = 0
        self.unsaved = "the server wrote none"

    def bring(self, path: str) -> None:
        """Fetch this file of the server in the background, unless one is still on its way."""
        self._told += 1
        if self._fetching is None or not self._fetching.is_alive():
            self._newest = path
            self._fetching = threading.Thread(target=self._fetch, args=(path,), daemon=True)
            self._fetching.start()

    def wait(self, timeout_s: float | None = FETCH_S) -> None:
        """Wait for what is on its way."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._fetching is not None and self._fetching.is_alive() and time.monotonic() < deadline:
            self._fetching.join(TICK_S)

    def finish(self) -> None:
        """Bring what the server has written last; an earlier one that is on its way comes first."""
        self.wait(None)
        if self._newest is not None:
            self._fetch(self._newest)

    def _fetch(self, path: str) -> None:
        temporary = self._folder.checkpoint.with_suffix(".part")
        told = self._told
        try:
            if self.agent is None:
                self.agent = self._crew.another(self._server)
            content = self.agent.fetch(path)
            if content:
                temporary.write_bytes(content)
                os.replace(temporary, self._folder.checkpoint)
            self._brought = told
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
        self._journal.report("planner", CheckpointFailed(self.unsaved))

    @property
    def home(self) -> bool:
        """Whether what the server is known to have written last is in the run folder."""
        return self._brought == self._told

    def has(self, step: int) -> bool:
        """Whether the run folder holds the weights after that step, or nobody wants them."""
        if not self._wanted:
            return True
        try:
            return bool(checkpoint.peek(str(self._folder.checkpoint))["step"] == step)
        except (OSError, ValueError):
            return False

    def saved(self) -> str:
        """The end of a message: which checkpoint there is, and how to go on from it."""
        folder = self._folder.path if self._folder.checkpoint.exists() else self._before
        if folder is None:
            return "; no checkpoint had been taken"
        return f"; the last checkpoint is {RunFolder(folder).checkpoint}, go on with `planner train --resume {folder}`"
