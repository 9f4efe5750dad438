"""An agent client sends orders to one agent and receives its events and results."""

import builtins
import errno
import itertools
import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

from backends.jobs.failure import JobFailure
from backends.protocol.json_messages import encode
from backends.protocol.orders import FetchFile, Ping, StoreFile
from backends.training.step_watch import LAST_WORDS
from planner.agents import bundle
from planner.agents.answers import HELLO, Answer, Failure, Hello
from planner.agents.call import Call, Sink
from planner.errors import AgentError, DeviceLostError, JobError, RemoteError
from planner.fleet.device import Device
from planner.remote.base import Process, Remote
from profilers.whole_file import private

PING_S = 5.0
#: An agent from which nothing has come for this long, though it was pinged, is lost.
SILENCE_S = 30.0
#: A Python that has not started the agent by then hangs.
START_S = 60.0
#: Errors over there that say that a connection was lost, not that the order is wrong.
LOST = ("DeviceLostError", "WireError")
UNREACHED = "let the firewall there pass TCP from the other devices, or set data_address in the fleet file"
ENDED = "the agent ended"
#: Nobody here has ended it.
UNASKED = (
    f"{ENDED}: perhaps its process was killed, as the system does where memory is short, code of the job ended it, "
    "or this machine was silent"
)
#: Longest wait for the answer to an order that concerns files, and bytes that a disk writes in a
#: second at least.
FILES_S, DISK_BYTES_PER_S = 300.0, 1e6
#: A file is written in pieces, so that one that goes on moving is told from one that is stuck.
CHUNK_BYTES = 1 << 16


class AgentClient:
    """An agent on one device. Close it, and it ends there with all its children."""

    def __init__(self, device: Device, process: Process, log: Path | None = None) -> None:
        self.name = device.name
        self._process = process
        self._log = log
        self._numbers = itertools.count(1)
        self._calls: dict[int, Call] = {}
        self._sources: dict[str, str] = {}
        self._lock = threading.Lock()
        self._lost: str | None = None
        self._closed = threading.Event()
        self._written_s = time.monotonic()
        bundle.hand_over(process, device)
        hello = self._hello(device.interpreter.python)
        self.python, self.pid = hello.python, hello.pid
        for life in (self._listen, self._ping, self._watch):
            threading.Thread(target=life, daemon=True).start()

    @classmethod
    def launch(cls, device: Device, remote: Remote, log: Path | None = None) -> "AgentClient":
        """Start an agent on a device. If it does not start, RemoteError names the remedy."""
        process = remote.spawn(bundle.command(device))
        watchdog = threading.Timer(START_S, process.close)
        watchdog.daemon = True
        watchdog.start()
        try:
            return cls(device, process, log)
        finally:
            watchdog.cancel()

    @property
    def lost(self) -> bool:
        """Whether it has ended, or was closed."""
        return self._lost is not None or self._closed.is_set()

    def start(self, order: Any, blob: bytes = b"", sink: Sink | None = None) -> Call:
        """Give one of ``backends.protocol.orders``, followed by a blob, and return at once."""
        number = next(self._numbers)
        call = self._calls[number] = Call(self, number, order, sink)
        if self._lost is not None:
            raise DeviceLostError(self._named(self._lost))
        self.send(order, number, blob)
        return call

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        """Give an order and wait for its result."""
        return self.start(order).result(timeout_s)

    def store(self, name: str, data: bytes, source: str | None = None) -> str:
        """Keep a file in the device's cache under ``name``; returns its path there.

        source: its path on this machine, by which errors name it.
        """
        path: str = self.start(StoreFile(name, len(data)), data).result(stored_within_s(len(data)))
        if source is not None:
            self.stands_for(path, source)
        return path

    def stands_for(self, path: str, source: str) -> None:
        """Let errors name ``source``, a path of this machine, instead of ``path`` on the device."""
        self._sources[path] = source

    def fetch(self, path: str, sink: Sink) -> None:
        """Fetch a file of the device, piece by piece.

        Raises what the sink does, when all has come that the device had to say.
        """
        failed: list[Exception] = []

        def take(piece: bytes) -> None:
            try:
                if not failed:
                    sink(piece)
            except OSError as error:  # a full disk
                failed.append(error)

        self.start(FetchFile(path), sink=take).result(FILES_S)
        if failed:
            raise failed[0]

    def send(self, order: Any, number: int | None = None, blob: bytes = b"") -> None:
        """Write one order. Raises DeviceLostError."""
        text = json.dumps({"id": number, "order": encode(order)}).encode() + b"\n"
        try:
            with self._lock:
                self._process.write(text)
                for start in range(0, len(blob), CHUNK_BYTES):
                    self._process.write(blob[start : start + CHUNK_BYTES])
                    self._written_s = time.monotonic()
        except DeviceLostError as error:
            raise DeviceLostError(self._named(self._lost or str(error))) from error

    def failure(self, order: str, failure: Failure) -> Exception:
        """The exception for an error of the other side; its traceback goes into the log."""
        for there, here in list(self._sources.items()):
            failure = Failure(*(text.replace(there, here) for text in failure))
        if failure.kind in LOST:
            remedy = f"; {UNREACHED}" if failure.message.startswith("cannot reach") else ""
            return DeviceLostError(self._named(failure.message) + remedy)
        where = self._keep(f"--- {self.name}: {order}\n{failure.traceback}\n")
        if failure.kind == JobFailure.__name__:
            return JobError(self._named(failure.message), failure.traceback)
        remedy = f"; {bundle.FREE_SPACE}" if os.strerror(errno.ENOSPC) in failure.message else ""
        return AgentError(f"{self.name}: {order}: {_reason(failure)}{remedy}{where}", failure.traceback)

    def _keep(self, traceback: str) -> str:
        """Log a traceback; returns where it is, for a message, or "" on a full disk."""
        if self._log is None:
            return ""
        try:
            with open(self._log, "a", opener=private) as log:
                log.write(traceback)
        except OSError:
            return ""
        return f" (traceback in {self._log})"

    def _named(self, text: str) -> str:
        return text if text.startswith(f"{self.name}: ") else f"{self.name}: {text}"

    def close(self) -> None:
        """End the agent. Idempotent."""
        self._closed.set()
        self._process.close()

    def _ping(self) -> None:
        while not self._closed.wait(PING_S):
            try:
                self.send(Ping())
            except DeviceLostError:
                return

    def _watch(self) -> None:
        """In a thread of its own: pings may be stuck behind a file that is."""
        while not self._closed.wait(PING_S):
            # A file on its way holds up the pings: silence counts from when it last moved.
            if time.monotonic() - max(self._process.heard_s, self._written_s) > SILENCE_S:
                self._give_up(f"nothing was heard from it for {SILENCE_S:g} s")
                self._process.close()  # wakes who is still writing to it
                return

    def _hello(self, python: str) -> Hello:
        """The agent's first words. Raises RemoteError where it ends before, e.g. without numpy."""
        try:
            found = b""
            while not found:  # before it is what a Python prints as it starts (sitecustomize, .pth files)
                _, found, rest = self._process.read_line().partition(HELLO)
            return Hello.read(found + rest)
        except (DeviceLostError, EOFError, ValueError) as error:
            reason = self._last_words() or str(error) or ENDED
            raise RemoteError(f"{self.name}: the agent does not start with {python}: {reason}") from error

    def _listen(self) -> None:
        try:
            while True:
                answer = Answer.read(self._process.read_line())
                if answer.order is None:
                    continue
                call = self._calls.get(answer.order)
                if answer.blob is not None:
                    self._pass_on(answer.blob, call)
                if answer.ends:  # not before its file is here: who is lost meanwhile still has this order
                    self._calls.pop(answer.order, None)
                if call is not None:  # an order's threads may say something after its end
                    call.answers.put(answer)
        except EOFError:
            self._give_up(ENDED if self._closed.is_set() else UNASKED)
        except DeviceLostError as error:
            self._give_up(str(error))
        except ValueError as error:
            self._give_up(f"it says what no agent would: {error}; is it the agent that planner started?")

    def _pass_on(self, size: int, call: Call | None) -> None:
        """A file, to whoever has asked for one. Raises ValueError where nobody has."""
        if call is None or call.sink is None:
            raise ValueError(f"{size} bytes of a file that nobody asked for")
        for piece in self._process.pieces(size):
            call.take_piece(piece)

    def _give_up(self, reason: str) -> None:
        if self._lost is None:  # the first reason is the cause of others
            said = self._last_words()
            self._lost = f"{reason} (it last said: {said})" if said else reason
            if said.startswith(LAST_WORDS):
                self._lost = said  # it has ended itself, and tells why
        lost = Failure(DeviceLostError.__name__, self._lost, "")
        for number, call in list(self._calls.items()):
            call.answers.put(Answer(number, failure=lost))

    def _last_words(self) -> str:
        lines = self._process.errors().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def stored_within_s(size: int) -> float:
    """Longest wait until a device has stored so many bytes that it has received."""
    return FILES_S + size / DISK_BYTES_PER_S


def _reason(failure: Failure) -> str:
    """What went wrong; where it was not foreseen (in a user's model, say), also in which line."""
    kind = getattr(builtins, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, (ValueError, OSError)) and failure.message:
        return failure.message
    lines = re.findall(r'File "([^"]+)", line (\d+)', failure.traceback)
    own = [line for line in lines if "-packages/" not in line[0]]
    return f"{failure.kind}: {failure.message}" + (f", at {own[-1][0]}:{own[-1][1]}" if own else "")
