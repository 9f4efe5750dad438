"""Any command on this device, and what it draws: counters and sensors before it and while it runs."""

import codecs
import os
import subprocess
import threading
import time
from typing import IO, Any, Dict, Sequence

from profilers.records import encode
from profilers.sampling import Sampler

#: How long a command that was asked to end may take, and what it left behind may still print.
GRACE_S = 5.0
_LEFT_S = 1.0
_CHUNK_BYTES = 1 << 12
_TICK_S = 0.1


def measure(job: Any, command: Sequence[str], idle_s: float) -> Dict[str, Any]:
    """Run a command to its end, or until told to stop. Events: {"out": text} and {"err": text} as it prints.

    Returns {"idle", "busy"}, windows of the seconds before it and from its start to its end, and "returncode",
    negative for the signal that ended it. Raises ValueError where there is no such program, InterruptedError where it
    was told to stop before.
    """
    sampler = Sampler()
    sampler.start()
    job.stopping.wait(idle_s)
    idle = sampler.turn()
    try:
        process = _begun(job, command)
    except BaseException:
        sampler.stop()
        raise
    printing = [_copy(job, process.stdout, "out"), _copy(job, process.stderr, "err")]
    ended = threading.Event()
    threading.Thread(target=_end_when_told, args=(job, process, ended), daemon=True).start()
    returncode = process.wait()
    busy = sampler.stop()
    ended.set()
    until_s = time.monotonic() + _LEFT_S
    for thread in printing:
        thread.join(max(0.0, until_s - time.monotonic()))
    return {"idle": encode(idle), "busy": encode(busy), "returncode": returncode}


def _begun(job: Any, command: Sequence[str]) -> "subprocess.Popen[bytes]":
    if job.stopping.is_set():
        raise InterruptedError("stopped before the command began")
    try:
        return subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise ValueError("%s: %s" % (command[0], error.strerror)) from None


def _copy(job: Any, pipe: IO[bytes], name: str) -> threading.Thread:
    """Pass on what a command prints, as it prints it."""

    def run() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        while chunk:
            job.emit({name: decoder.decode(chunk)})
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _end_when_told(job: Any, process: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    while not ended.wait(_TICK_S):
        if job.stopping.is_set():
            process.terminate()
            if not ended.wait(GRACE_S):
                process.kill()
            return
