"""The program that runs on a device: takes orders as JSON lines on standard input, answers on standard output.

→ {"id": 1, "verb": "facts", "args": {}}
← {"id": 1, "event": …} …, then {"id": 1, "result": …} or {"id": 1, "error": …}
→ {"id": 2, "verb": "stop" or "go", "args": {"id": 1}}  → {"verb": "ping"} ← {"pong": true}
→ {"id": 3, "verb": "store", "args": {"name": …, "size": n}} and n raw bytes
→ {"id": 4, "verb": "fetch", "args": {"path": …}}  ← {"id": 4, "result": …, "blob": n} and n raw bytes

It leads a process group and ends it, children included, when its input closes or when the pings stop.
"""

import json
import os
import platform
import select
import signal
import threading
import time
import traceback
from typing import Any, Callable, Dict, Optional

#: The controller pings every few seconds; after this much silence the agent ends itself.
SILENCE_S = 30.0
#: How long running jobs get to end by themselves when the controller is gone.
GRACE_S = 1.0


class AgentTask:
    """One order being carried out: where its events go, and whether it was told to go on or to stop."""

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self.emit = emit
        self.go = threading.Event()
        self.stopping = threading.Event()


class Input:
    """Lines and counted raw bytes from a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def line(self, timeout_s: float) -> Optional[bytes]:
        """The next line without its end; None when the input is closed or silent for too long."""
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                text = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return text
            if not self._more(timeout_s):
                return None

    def exactly(self, size: int) -> bytearray:
        """The next ``size`` raw bytes, held once. Raises EOFError when the input ends before."""
        data = bytearray(size)
        have = min(size, len(self._buffer))
        data[:have] = self._buffer[:have]
        del self._buffer[:have]
        view = memoryview(data)
        while have < size:
            ready = select.select([self._descriptor], [], [], SILENCE_S)[0]
            count = os.readv(self._descriptor, [view[have:]]) if ready else 0
            if not count:
                raise EOFError("the input ended within a file")
            have += count
        return data

    def _more(self, timeout_s: float) -> bool:
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return False
        chunk = os.read(self._descriptor, 1 << 20)
        self._buffer += chunk
        return bool(chunk)


class Output:
    """Whole lines, and raw bytes right behind them, from many threads to one file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, message: Dict[str, Any], blob: bytes = b"") -> None:
        """Write one message. A controller that is gone is noticed on the input, not here."""
        with self._lock:
            try:
                for data in (json.dumps(message).encode() + b"\n", blob):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(self._descriptor, view) :]
            except OSError:
                pass


class Agent:
    """Carries out orders, each in a thread of its own."""

    def __init__(self, orders: Input, answers: Output, verbs: Dict[str, Callable[..., Any]]) -> None:
        self._orders = orders
        self._answers = answers
        self._verbs = verbs
        self._jobs: Dict[int, AgentTask] = {}

    def run(self) -> None:
        """Take orders until the controller is gone, then tell all jobs to stop."""
        self._answers.send({"hello": {"python": platform.python_version(), "pid": os.getpid()}})
        while True:
            line = self._orders.line(SILENCE_S)
            if line is None:
                break
            try:
                self._order(json.loads(line.decode()))
            except EOFError:
                break
        for job in list(self._jobs.values()):
            job.stopping.set()
        deadline = time.monotonic() + GRACE_S
        while self._jobs and time.monotonic() < deadline:
            time.sleep(0.02)

    def _order(self, order: Dict[str, Any]) -> None:
        verb, args = order["verb"], order.get("args", {})
        if verb == "ping":
            self._answers.send({"pong": True})
            return
        if verb in ("go", "stop"):
            job = self._jobs.get(args["id"])
            if job is not None:
                (job.go if verb == "go" else job.stopping).set()
            return
        if verb == "store":
            args = {"name": args["name"], "data": self._orders.exactly(args["size"])}
        number = order["id"]
        job = AgentTask(lambda event: self._answers.send({"id": number, "event": event}))
        self._jobs[number] = job  # before its thread starts, so that a stop right behind it finds it
        threading.Thread(target=self._carry_out, args=(number, job, verb, args), daemon=True).start()

    def _carry_out(self, number: int, job: AgentTask, verb: str, args: Dict[str, Any]) -> None:
        try:
            result = self._verbs[verb](job, **args)
            blob = result if isinstance(result, bytes) else b""
            if blob or isinstance(result, bytes):
                self._answers.send({"id": number, "result": None, "blob": len(blob)}, blob)
            else:
                self._answers.send({"id": number, "result": result})
        except BaseException as error:  # noqa: BLE001 - whatever ends a job is what the controller must hear of
            message = {"kind": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
            self._answers.send({"id": number, "error": message})
        finally:
            del self._jobs[number]


def main() -> None:
    """Run the agent on this process's standard streams."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order of the GPU's own counters and sensors
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a framework prints goes to standard error
    os.set_inheritable(answers, False)
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    # Ctrl-C is the controller's to handle. Programs that this one starts inherit no handler, but would inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    from backends.agent import malloc
    from backends.agent.verbs import VERBS  # after the redirection: importing may print

    malloc.keep()
    Agent(Input(0), Output(answers), VERBS).run()
    os.killpg(0, signal.SIGKILL)
