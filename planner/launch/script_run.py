"""A script runs on all members of a plan until it has ended everywhere or one rank has failed."""

import queue
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.protocol.events import Printed
from backends.protocol.orders import FindFreePort, RunScript
from planner.agents.addresses import data_addresses
from planner.agents.call import TICK_S, Event
from planner.agents.pool import AgentPool, in_parallel
from planner.agents.project import Project, send_project
from planner.errors import DeviceLostError
from planner.launch.first_failure import FirstFailure
from planner.launch.output import LastError, LineSplitter, with_own_paths
from planner.launch.ranks import PlacedRank, environment
from planner.run.order_at_work import Events, OrderAtWork, open_agents
from planner.units import bytes_text, seconds

#: Shells add this to the number of the signal that ended a command.
SIGNALLED = 128
#: Exit code of a launch that Ctrl-C ended.
INTERRUPTED = SIGNALLED + signal.SIGINT
_PORT_TIMEOUT_S = 60.0
#: Longest wait for ranks that were told to end; a device kills them 5 s after it has heard of it.
STOP_S = 15.0


class OutputLine(NamedTuple):
    """One line that a rank has printed. ``stream``: out or err."""

    name: str
    stream: str
    text: str


class RankEnd(NamedTuple):
    """How a rank ended.

    exit_code: 128 + n for signal n; None for one whose device was lost, or that did not start.
    ended_by: None for one that ended by itself, else why it was ended.
    seconds: from the start of the first rank.
    folder: the project's, on its device.
    """

    name: str
    rank: int
    exit_code: int | None
    ended_by: str | None
    seconds: float
    folder: str


class LaunchResult(NamedTuple):
    """How a launch ended.

    exit_code: that of the first rank to fail; 1 for one that has none; 130 after Ctrl-C.
    failed: that rank's name. reason: one line on why the launch ended early; "" if it did not.
    """

    exit_code: int
    failed: str | None
    reason: str
    seconds: float
    ranks: tuple[RankEnd, ...]


class LaunchCallbacks(NamedTuple):
    """Called with every line of the ranks, and with remarks on the launch."""

    on_line: Callable[[OutputLine], None]
    on_note: Callable[[str], None]


@dataclass
class RunningRank:
    """A rank at work, as seen from here. ``lost``: why it has no exit code."""

    place: PlacedRank
    folder: str
    order: OrderAtWork
    splitters: dict[str, LineSplitter] = field(default_factory=lambda: {"out": LineSplitter(), "err": LineSplitter()})
    end: RankEnd | None = None
    lost: str = ""
    error: LastError = field(default_factory=LastError)


class ScriptRun:
    """One launch of a script.

    command: what every rank runs in the folder of the project.
    """

    def __init__(
        self, ranks: Sequence[PlacedRank], command: Sequence[str], project: Project, callbacks: LaunchCallbacks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._places = tuple(ranks)
        self._command = tuple(command)
        self._project = project
        self._on_line, self._on_note = callbacks
        self._clock = clock
        self._events: Events = queue.Queue()
        self._ranks: dict[str, RunningRank] = {}
        self._failure = FirstFailure()
        self._began_s = 0.0

    def run(self) -> LaunchResult:
        """Run the script to its end on all devices. No process of it is left on any.

        Raises RunError or RemoteError where it cannot be started; the first Ctrl-C ends all ranks.
        """
        with AgentPool() as pool:
            self._start(pool)
            try:
                return self._watch()
            except KeyboardInterrupt:
                self._on_note("stopping all ranks; press Ctrl-C again to end them at once")
                self._stop("Ctrl-C")
                return self._result(INTERRUPTED, None, "all ranks were ended by Ctrl-C")

    def _start(self, pool: AgentPool) -> None:
        devices = {place.name: place.device for place in self._places}
        self._on_note(f"reaching {', '.join(devices)}")
        open_agents(pool, devices.values())
        size = sum(map(len, self._project.contents.values()))
        self._on_note(f"sending what they lack of {self._project.folder} ({bytes_text(size)})")
        folders = in_parallel(devices, lambda name: send_project(pool.agents[name], self._project))
        addresses = data_addresses(devices, pool.agents)
        first = self._places[0].name
        port: int = pool.agents[first].call(FindFreePort(), _PORT_TIMEOUT_S)
        self._began_s = self._clock()
        for place in self._places:
            variables = environment(place, self._places, addresses[first], port)
            address = addresses[place.name] if len(self._places) > 1 else None
            folder = folders[place.name]
            self._on_note(f"{place.name}: rank {place.rank} in {folder}")
            call = pool.agents[place.name].start(RunScript(self._command, folder, variables, address))
            order = OrderAtWork(place.name, place.name, call, self._events)
            self._ranks[place.name] = RunningRank(place, folder, order)
            order.listen()

    def _watch(self) -> LaunchResult:
        """Wait until all ranks have ended, or the first has failed."""
        while any(running.end is None for running in self._ranks.values()):
            with suppress(queue.Empty):
                self._handle(*self._events.get(timeout=TICK_S))
            cause = self._failure.cause(self._ranks, self._clock())
            if cause is not None:
                return self._failed(cause)
        result = self._result(0, None, "")
        ended = f"all {len(result.ranks)} ranks" if len(result.ranks) > 1 else "the only rank"
        self._on_note(f"{ended} ended with exit code 0 after {seconds(result.seconds)}")
        return result

    def _handle(self, name: str, heard: Event | None, ended_by: str | None = None) -> None:
        """Show a piece of output, or note how a rank ended; ``ended_by``: why it was told to."""
        running = self._ranks[name]
        if isinstance(heard, Printed):
            self._show(running, heard.stream, running.splitters[heard.stream].add(heard.text))
            return
        for stream, splitter in running.splitters.items():
            self._show(running, stream, splitter.end())
        ended, lost = running.order.result, running.order.error
        code = None if ended is None else ended if ended >= 0 else SIGNALLED - ended
        now_s = self._clock()
        running.end = RankEnd(name, running.place.rank, code, ended_by, now_s - self._began_s, running.folder)
        running.lost = "" if lost is None else str(lost)
        if ended_by is None:
            self._failure.ended(name, code != 0, now_s)

    def _show(self, running: RunningRank, stream: str, lines: Sequence[str]) -> None:
        name = running.place.name
        for text in lines:
            if stream == "err":
                self._failure.printed(name, text, self._clock())
                running.error.add(text)
            shown = with_own_paths(text, running.folder, str(self._project.folder))
            self._on_line(OutputLine(name, stream, shown))

    def _failed(self, name: str) -> LaunchResult:
        """End the others and say which rank was the cause."""
        others = [each for each, running in self._ranks.items() if running.end is None]
        self._stop(f"the end of {name}")
        running = self._ranks[name]
        assert running.end is not None, "only a rank that has ended is a cause"
        code = running.end.exit_code
        rest = f"; {', '.join(others)} {'was' if len(others) == 1 else 'were'} ended" if others else ""
        if code is None:
            return self._result(1, name, f"{running.lost}{rest}")
        last = f": {running.error.text}" if running.error.text else ""
        return self._result(code, name, f"{name} (rank {running.place.rank}) {_ended(code)}{last}{rest}")

    def _stop(self, why: str) -> None:
        """End all ranks that still run; whoever does not hear of it ends with its agent."""
        for running in self._ranks.values():
            if running.end is None:
                running.order.stop()
        until_s = self._clock() + STOP_S
        while any(running.end is None for running in self._ranks.values()) and self._clock() < until_s:
            with suppress(queue.Empty):
                self._handle(*self._events.get(timeout=TICK_S), ended_by=why)
        for name, running in self._ranks.items():
            if running.end is None:
                running.order.error = DeviceLostError(f"{name}: it did not answer within {STOP_S:g} s")
                self._handle(name, None, why)

    def _result(self, code: int, failed: str | None, reason: str) -> LaunchResult:
        ends = tuple(running.end for running in self._ranks.values() if running.end is not None)
        return LaunchResult(code, failed, reason, self._clock() - self._began_s, ends)


def _ended(code: int) -> str:
    """How a rank ended, in words."""
    if code <= SIGNALLED:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(code - SIGNALLED).name
    except ValueError:
        return f"ended with exit code {code}"
    hint = ", as the system does where memory is short" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"
