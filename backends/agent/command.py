"""The agent runs a command and samples counters and sensors before it and while it runs."""

import codecs
import os
import subprocess
import threading
import time
from typing import IO, Any, Sequence

from backends.protocol.events import CommandMeasurement, Printed
from backends.protocol.orders import MeasureCommand
from profilers.sampling import Sampler

#: How long a command that was asked to end may take, and what it left behind may still print.
GRACE_S = 5.0
LEFT_S = 1.0
TICK_S = 0.1
_CHUNK_BYTES = 1 << 12


def measure(task: Any, order: MeasureCommand) -> CommandMeasurement:
    """Run a command to its end, or until told to stop; emits what it prints.

    Raises ValueError where there is no such program, InterruptedError where it was told to stop
    before.
    """
    sampler = Sampler()
    sampler.start()
    task.stopping.wait(order.idle_s)
    idle = sampler.turn()
    try:
        process = _start(task, order.command)
    except BaseException:
        sampler.stop()
        raise
    assert process.stdout is not None and process.stderr is not None, "both are pipes"
    printing = [pass_on(task, process.stdout, "out"), pass_on(task, process.stderr, "err")]
    ended = threading.Event()
    threading.Thread(target=_end_when_told, args=(task, process, ended), daemon=True).start()
    returncode = process.wait()
    busy = sampler.stop()
    ended.set()
    until_s = time.monotonic() + LEFT_S
    for thread in printing:
        thread.join(max(0.0, until_s - time.monotonic()))
    return CommandMeasurement(idle, busy, returncode)


def _start(task: Any, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    if task.stopping.is_set():
        raise InterruptedError("stopped before the command began")
    try:
        return subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise ValueError("%s: %s" % (command[0], error.strerror)) from None


def pass_on(task: Any, pipe: IO[bytes], stream: str) -> threading.Thread:
    """Emit what a command prints, as it prints it, until the pipe is closed."""

    def run() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        while chunk:
            task.emit(Printed(stream, decoder.decode(chunk)))
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _end_when_told(task: Any, process: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    while not ended.wait(TICK_S):
        if task.stopping.is_set():
            process.terminate()
            if not ended.wait(GRACE_S):
                process.kill()
            return
