"""The agent takes orders as JSON lines on standard input and answers on standard output.

→ {"id": 1, "order": {"type": "collect_facts", …}}
← {"id": 1, "event": {"type": …}} …, then {"id": 1, "result": …} or {"id": 1, "error": …}
→ {"order": {"type": "go" or "stop", "id": 1}}
→ {"order": {"type": "ping"}}
← {"pong": true}
→ {"id": 3, "order": {"type": "store_file", "name": …, "size": n}} and n raw bytes
→ {"id": 4, "order": {"type": "fetch_file", "path": …}}
← {"id": 4, "result": …, "blob": n} and n raw bytes

It leads a process group and ends it, children included, when its input closes or when the pings
stop. Children in other groups are its guardian's to end, and its own where the guardian was killed.
"""

import itertools
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from multiprocessing import util
from typing import Any, Callable, Dict, Iterable, Optional, Tuple, Type

from backends.agent import files
from backends.protocol.json_messages import decode, encode
from backends.protocol.orders import Go, Ping, Stop, StoreFile
from backends.training.step_watch import LAST_WORDS
from profilers.records.json_values import json_value

#: The controller pings every few seconds; after this much silence the agent ends itself.
SILENCE_S = 30.0
#: How long running jobs get to end by themselves when the controller is gone.
GRACE_S = 1.0
#: How often a task that waits for the go order looks whether it was stopped.
GO_TICK_S = 0.1


class AgentTask:
    """One order being carried out.

    emit: sends an event of the order
    go, stopping: set when the operator sends Go or Stop
    """

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self.emit = emit
        self.go = threading.Event()
        self.stopping = threading.Event()

    def await_go(self) -> None:
        """Wait for the go order. Raises InterruptedError where the task is stopped before."""
        while not self.go.wait(GO_TICK_S):
            if self.stopping.is_set():
                raise InterruptedError("stopped before it was told to go")


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

    def close(self) -> None:
        """Close the file descriptor, once: its number may be another file's later."""
        closed, self._descriptor = self._descriptor, -1
        os.close(closed)

    def send(self, message: Dict[str, Any], blob: Iterable[bytes] = ()) -> None:
        """Write one message. A controller that is gone is noticed on the input, not here."""
        with self._lock:
            try:
                for data in itertools.chain([json.dumps(message).encode() + b"\n"], blob):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(self._descriptor, view) :]
            except OSError:
                pass


class Agent:
    """Carries out orders, each in a thread of its own.

    functions: for each class of orders the function that carries it out
    """

    def __init__(self, orders: Input, answers: Output, functions: Dict[Type[Any], Callable[..., Any]]) -> None:
        self._orders = orders
        self._answers = answers
        self._functions = functions
        self._kinds = (Ping, Go, Stop) + tuple(functions)
        self._tasks: Dict[int, AgentTask] = {}

    def run(self) -> None:
        """Take orders until the controller is gone, then tell all tasks to stop."""
        self._answers.send({"hello": {"python": platform.python_version(), "pid": os.getpid()}})
        while True:
            line = self._orders.line(SILENCE_S)
            if line is None:
                break
            try:
                self._take(line)
            except EOFError:
                break
            except ValueError as error:  # from here on, nobody knows where a line begins
                sys.stderr.write("%s%s\n" % (LAST_WORDS, error))
                break
        for task in list(self._tasks.values()):
            task.stopping.set()
        deadline = time.monotonic() + GRACE_S
        while self._tasks and time.monotonic() < deadline:
            time.sleep(0.02)

    def _take(self, line: bytes) -> None:
        """Begin what a line asks for. Raises ValueError for a line that asks for nothing."""
        number, value = parsed(line)
        try:
            order = decode(value, self._kinds)
        except ValueError as error:
            self._fail(number, error)
            return
        if isinstance(order, Ping):
            self._answers.send({"pong": True})
        elif isinstance(order, (Go, Stop)):
            task = self._tasks.get(order.id)
            if task is not None:
                (task.go if isinstance(order, Go) else task.stopping).set()
        else:
            self._start(number, order)

    def _start(self, number: Optional[int], order: Any) -> None:
        if number is None:
            raise ValueError("an order without a number, %s" % type(order).__name__)
        try:
            args = (self._orders.exactly(order.size),) if isinstance(order, StoreFile) else ()
        except MemoryError:
            raise ValueError("a file of %d bytes, more than there is memory" % order.size) from None
        task = AgentTask(lambda event: self._answers.send({"id": number, "event": encode(event)}))
        self._tasks[number] = task  # before its thread starts, so that a stop right behind it finds it
        threading.Thread(target=self._carry_out, args=(number, task, order) + args, daemon=True).start()

    def _carry_out(self, number: int, task: AgentTask, order: Any, *args: Any) -> None:
        try:
            files.claim_paths(order)
            result = self._functions[type(order)](task, order, *args)
            if isinstance(result, files.FileContent):
                self._answers.send({"id": number, "result": None, "blob": result.size}, result.chunks())
            else:
                self._answers.send({"id": number, "result": json_value(result)})
        except BaseException as error:  # noqa: BLE001 - the controller must hear of whatever ends a task
            self._fail(number, error)
        finally:
            del self._tasks[number]

    def _fail(self, number: Any, error: BaseException) -> None:
        message = {"kind": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
        self._answers.send({"id": number, "error": message})


def parsed(line: bytes) -> Tuple[Optional[int], Any]:
    """The number of an order, if it has one, and the order. Raises ValueError for other lines."""
    try:
        message = json.loads(line.decode())
        number, order = message.get("id"), message["order"]
    except (ValueError, RecursionError, AttributeError, KeyError):
        raise ValueError("no line with an order: %r" % line[:80]) from None
    if not (number is None or isinstance(number, int)):
        raise ValueError("an order's number is no number: %r" % line[:80])
    return number, order


def stay_awake() -> None:
    """Keep a Mac from falling asleep for want of a user, for as long as this process lives."""
    if shutil.which("caffeinate") is not None:
        subprocess.Popen(["caffeinate", "-i", "-w", str(os.getpid())], stdin=subprocess.DEVNULL)


def _leave_to_agent(output: Output) -> None:
    """A forked process, such as a worker of a DataLoader, keeps no stream of the agent open."""
    output.close()
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)


def main(*claim: str) -> None:
    """Run the agent on this process's standard streams.

    claim: the descriptor and the path of a locked file that claims the agent's archive; or nothing.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order of the GPU's own counters and sensors
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a framework prints goes to standard error
    os.set_inheritable(answers, False)
    archive = os.path.basename(sys.argv[0])
    if claim:
        files.adopt_claim(archive, int(claim[0]), claim[1])
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    stay_awake()
    # Ctrl-C is the controller's to handle. Programs that this one starts inherit no handler, but
    # would inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    from backends.agent import guardian, libc, script
    from backends.agent.verbs import ORDERS  # after the redirection: importing may print

    libc.keep_freed_memory()
    adopts = guardian.adopt()
    files.claim(archive)  # the archive, from which some modules are imported late
    files.prune()
    output = Output(answers)
    util.register_after_fork(output, _leave_to_agent)
    Agent(Input(0), output, ORDERS).run()
    script.end_all()  # each leads a process group of its own
    files.release()
    if adopts:
        guardian.end_children()
    os.killpg(0, signal.SIGKILL)
