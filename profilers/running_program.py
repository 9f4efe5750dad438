"""A program that goes on printing runs in the background; the newest of what it says is kept."""

import collections
import contextlib
import os
import subprocess
import threading
import time
from typing import IO, Any, Callable, Deque, Optional, Sequence, Tuple

from profilers.file_tree import Unavailable

#: A program that says nothing for so long hangs.
SILENCE_S = 3.0
#: Most values in the history: more than five hours of one a second.
MOST_ANSWERS = 20000


class RunningProgram:
    """The program: the first read starts it, ``close`` ends it.

    parse: gives the value of a line, or None for one without.
    answers: (monotonic time, value), the newest last.
    """

    def __init__(self, command: Sequence[str], parse: Callable[[str], Any]) -> None:
        self.answers: Deque[Tuple[float, Any]] = collections.deque(maxlen=MOST_ANSWERS)
        self._command = command
        self._name = os.path.basename(command[0])
        self._parse = parse
        self._lock = threading.Lock()
        self._process: Optional["subprocess.Popen[str]"] = None
        self._newest: Optional[Tuple[float, Any]] = None
        self._first = threading.Event()

    def newest(self) -> Any:
        """The newest value. Waits only for the first one. Raises Unavailable."""
        with self._lock:
            if self._process is None:
                self._process = self._start()
            process = self._process
        self._first.wait(SILENCE_S)
        newest = self._newest
        if newest is None or process.poll() is not None or time.monotonic() - newest[0] > SILENCE_S:
            raise Unavailable("%s has ended or stays silent" % self._name)
        return newest[1]

    def close(self) -> None:
        """End the program. Idempotent."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                with contextlib.suppress(PermissionError):  # one of root's ends when nobody reads what it prints
                    process.kill()
                    process.wait()
                self._first.clear()
                self._newest = None

    def _start(self) -> "subprocess.Popen[str]":
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                universal_newlines=True,
                errors="replace",
            )
        except OSError as error:
            raise Unavailable("%s cannot be run: %s" % (self._name, error.strerror)) from None
        threading.Thread(target=self._follow, args=(process, process.stdout), daemon=True).start()
        return process

    def _follow(self, process: "subprocess.Popen[str]", lines: IO[str]) -> None:
        with lines:
            for line in lines:
                value = self._parse(line)
                with self._lock:
                    if self._process is not process:
                        return  # closed since
                    if value is not None:
                        self._newest = (time.monotonic(), value)
                        self.answers.append(self._newest)
                        self._first.set()
        with self._lock:
            if self._process is process:
                self._first.set()  # it has ended: nobody need wait for a line
