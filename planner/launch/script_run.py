"""A script runs on all members of a plan until it has ended everywhere or one rank has failed."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.protocol.events import Printed
from backends.protocol.orders import FindFreePort, RunScript
from planner.agents.addresses import data_addresses
from planner.agents.call import Event
from planner.agents.pool import AgentPool, in_parallel
from planner.agents.project import Project, send_project
from planner.errors import DeviceLostError
from planner.launch.failure_cause import FirstFailure
from planner.launch.output import LastError, LineSplitter, with_own_paths
from planner.launch.ranks import PlacedRank, environment
from planner.run.life import Life
from planner.run.order_at_work import OrderAtWork, Signals, open_agents
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
    """A rank at work, as seen from here."""

    place: PlacedRank
    folder: str
    splitters: dict[str, LineSplitter] = field(default_factory=lambda: {"out": LineSplitter(), "err": LineSplitter()})
    end: RankEnd | None = None
    error: LastError = field(default_factory=LastError)


class ScriptRun(Life[LaunchResult]):
    """One launch of a script, which the first rank to fail ends; none is started again.

    command: what every rank runs in the folder of the project.
    """

    stop_s = STOP_S

    def __init__(
        self, ranks: Sequence[PlacedRank], command: Sequence[str], project: Project, callbacks: LaunchCallbacks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(Signals(), clock)
        self._places = tuple(ranks)
        self._command = tuple(command)
        self._project = project
        self._on_line, self._on_note = callbacks
        self._ranks: dict[str, RunningRank] = {}
        self._failure = FirstFailure()
        self._cause: str | None = None  # the rank that failed first
        self._others: Sequence[str] = ()  # those that were at work then
        self._stopped_by: str | None = None
        self._began_s = 0.0

    def run(self) -> LaunchResult:
        """Run the script to its end on all devices. No process of it is left on any.

        Raises RunError or RemoteError where it cannot be started; the first Ctrl-C ends all ranks.
        """
        with AgentPool() as pool:
            self._start(pool)
            return self.watch()

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
        self._began_s = self.clock()
        for place in self._places:
            variables = environment(place, self._places, addresses[first], port)
            address = addresses[place.name] if len(self._places) > 1 else None
            folder = folders[place.name]
            self._on_note(f"{place.name}: rank {place.rank} in {folder}")
            call = pool.agents[place.name].start(RunScript(self._command, folder, variables, address))
            order = OrderAtWork(place.name, place.name, call, self.signals)
            self._ranks[place.name] = RunningRank(place, folder)
            self.orders[place.name] = order
            order.listen()

    def handle(self, source: str, event: Event | None) -> None:
        """Show a piece of output, or note how a rank ended."""
        running = self._ranks[source]
        if isinstance(event, Printed):
            self._show(running, event.stream, running.splitters[event.stream].add(event.text))
        elif running.end is None:
            self._note_end(source, running)

    def _note_end(self, name: str, running: RunningRank) -> None:
        for stream, splitter in running.splitters.items():
            self._show(running, stream, splitter.end())
        status, now_s = self.orders[name].result, self.clock()
        code = None if status is None else status if status >= 0 else SIGNALLED - status
        running.end = RankEnd(name, running.place.rank, code, self._stopped_by, now_s - self._began_s, running.folder)
        if self._stopped_by is None:
            self._failure.ended(name, code != 0, now_s)

    def outcome(self, ended: bool) -> LaunchResult | None:
        for name, running in self._ranks.items():
            if ended and running.end is None:  # Ctrl-C has lost its last event
                self._note_end(name, running)
        if self._stopped_by is None:
            self._cause = self._failure.cause(self._ranks, self.clock())
            if self._cause is not None:
                self._stop_others(self._cause)
        return self._result() if all(running.end for running in self._ranks.values()) else None

    def _stop_others(self, cause: str) -> None:
        self._others = [name for name, running in self._ranks.items() if running.end is None]
        self._stopped_by = f"the end of {cause}"
        self.stop()

    def say_stopping(self) -> None:
        self._on_note("stopping all ranks; press Ctrl-C again to end them at once")
        self._stopped_by = "Ctrl-C"

    def late(self) -> LaunchResult:
        for name, running in self._ranks.items():
            if running.end is None:
                self.orders[name].error = DeviceLostError(f"{name}: it did not answer within {STOP_S:g} s")
                self._note_end(name, running)
        return self._result()

    def _show(self, running: RunningRank, stream: str, lines: Sequence[str]) -> None:
        name = running.place.name
        for text in lines:
            if stream == "err":
                self._failure.printed(name, text, self.clock())
                running.error.add(text)
            shown = with_own_paths(text, running.folder, str(self._project.folder))
            self._on_line(OutputLine(name, stream, shown))

    def _result(self) -> LaunchResult:
        """How the launch ended, with all ranks."""
        ends = tuple(running.end for running in self._ranks.values() if running.end is not None)
        lasted_s = self.clock() - self._began_s
        if self.interrupted:
            return LaunchResult(INTERRUPTED, None, "all ranks were ended by Ctrl-C", lasted_s, ends)
        if self._cause is not None:
            code, reason = self._first_failure(self._cause)
            return LaunchResult(code, self._cause, reason, lasted_s, ends)
        ended = f"all {len(ends)} ranks" if len(ends) > 1 else "the only rank"
        self._on_note(f"{ended} ended with exit code 0 after {seconds(lasted_s)}")
        return LaunchResult(0, None, "", lasted_s, ends)

    def _first_failure(self, name: str) -> tuple[int, str]:
        """The exit code where this rank was the first to fail, and one line on why."""
        running, others = self._ranks[name], self._others
        assert running.end is not None, "only a rank that has ended is a cause"
        rest = f"; {', '.join(others)} {'was' if len(others) == 1 else 'were'} ended" if others else ""
        code = running.end.exit_code
        if code is None:
            return 1, f"{self.orders[name].error}{rest}"
        last = f": {running.error.text}" if running.error.text else ""
        return code, f"{name} (rank {running.place.rank}) {_ended(code)}{last}{rest}"


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
