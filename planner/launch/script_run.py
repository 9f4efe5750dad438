"""A script runs on all members of a plan until it has ended everywhere or one rank has failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backends.protocol.events import Printed
from backends.protocol.orders import FindFreePort, RunScript
from planner.agents.addresses import data_addresses
from planner.agents.call import Event
from planner.agents.pool import AgentPool, in_parallel
from planner.agents.project import Project, send_project
from planner.errors import DeviceLostError
from planner.launch.failure_cause import FirstFailure
from planner.launch.output import ERR, STREAMS, RankOutput
from planner.launch.ranks import PlacedRank, environment
from planner.launch.result import INTERRUPTED, LaunchResult, RankEnd, ended_before, exit_code, in_words
from planner.run.life import Life
from planner.run.supervisor import Signals, Supervisor
from planner.units import bytes_text, seconds

_PORT_TIMEOUT_S = 60.0
#: Longest wait for ranks that were told to end; a device kills them 5 s after it has heard of it.
STOP_S = 15.0


class LaunchCallbacks(NamedTuple):
    """Called with each line of a rank, behind its name and ``out`` or ``err``, and with remarks."""

    on_line: Callable[[str, str, str], None]
    on_note: Callable[[str], None]


@dataclass
class RunningRank:
    """A rank at work, as seen from here."""

    place: PlacedRank
    folder: str
    order: Supervisor
    output: RankOutput
    end: RankEnd | None = None


class ScriptRun(Life[LaunchResult]):
    """One launch of a script, which the first rank to fail ends; none is started again.

    command: what every rank runs in the folder of the project.
    """

    stop_s = STOP_S

    def __init__(
        self, ranks: Sequence[PlacedRank], command: Sequence[str], project: Project, callbacks: LaunchCallbacks
    ) -> None:
        super().__init__(Signals())
        self._places = tuple(ranks)
        self._command = tuple(command)
        self._project = project
        self._on_line, self._on_note = callbacks
        self._ranks: dict[str, RunningRank] = {}
        self._failure = FirstFailure()
        self._cause: str | None = None  # the rank that failed first
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
        pool.open_all(devices.values())
        size = sum(map(len, self._project.contents.values()))
        self._on_note(f"sending what they lack of {self._project.folder} ({bytes_text(size)})")
        folders = in_parallel(devices, lambda name: send_project(pool.agents[name], self._project))
        addresses = data_addresses(devices, pool.agents)
        first = self._places[0].name
        port: int = pool.agents[first].call(FindFreePort(), _PORT_TIMEOUT_S)
        self._began_s = self.clock()
        for place in self._places:
            name, folder = place.name, folders[place.name]
            variables = environment(place, self._places, addresses[first], port)
            script = RunScript(self._command, folder, variables, addresses[name] if len(self._places) > 1 else None)
            self._on_note(f"{name}: rank {place.rank} in {folder}")
            order = self.orders[name] = Supervisor(name, pool.agents[name], script, self.signals)
            self._ranks[name] = RunningRank(place, folder, order, RankOutput(folder, str(self._project.folder)))

    def handle(self, source: str, event: Event | None) -> None:
        """Show a piece of output, or note how a rank ended."""
        rank = self._ranks[source]
        if isinstance(event, Printed):
            self._show(source, event.stream, rank.output.add(event.stream, event.text))
        else:
            self._note_end(source, rank)

    def _show(self, name: str, stream: str, lines: Sequence[str]) -> None:
        for text in lines:
            if stream == ERR:
                self._failure.printed(name, text, self.clock())
            self._on_line(name, stream, text)

    def _note_end(self, name: str, rank: RunningRank) -> None:
        if rank.end is not None:
            return
        for stream in STREAMS:
            self._show(name, stream, rank.output.end(stream))
        status, stopped_by, now_s = rank.order.result, rank.order.stopped_by, self.clock()
        code = None if status is None else exit_code(status)
        rank.end = RankEnd(name, rank.place.rank, code, stopped_by, now_s - self._began_s, rank.folder)
        if stopped_by is None:
            self._failure.ended(name, code != 0, now_s)

    def outcome(self, ended: bool) -> LaunchResult | None:
        if ended:  # Ctrl-C may have lost the last event of a rank
            self._note_ends()
        if self._cause is None and not self.interrupted:
            self._cause = self._failure.cause(self._ranks, self.clock())
            if self._cause is not None:
                self.stop(f"the end of {self._cause}")
        return self._result() if all(rank.end for rank in self._ranks.values()) else None

    def _note_ends(self) -> None:
        for name, rank in self._ranks.items():
            self._note_end(name, rank)

    def say_stopping(self) -> None:
        self._on_note("stopping all ranks; press Ctrl-C again to end them at once")

    def late(self) -> LaunchResult:
        for name, order in self.orders.items():
            if not order.ended:
                order.error = DeviceLostError(f"{name}: it did not answer within {STOP_S:g} s")
        self._note_ends()
        return self._result()

    def _result(self) -> LaunchResult:
        """How the launch ended, with all ranks."""
        ends = self._ends()
        lasted_s = self.clock() - self._began_s
        if self.interrupted:
            return LaunchResult(INTERRUPTED, None, "all ranks were ended by Ctrl-C", lasted_s, ends)
        if self._cause is not None:
            code, reason = self._first_failure(self._cause)
            return LaunchResult(code, self._cause, reason, lasted_s, ends)
        ended = f"all {len(ends)} ranks" if len(ends) > 1 else "the only rank"
        self._on_note(f"{ended} ended with exit code 0 after {seconds(lasted_s)}")
        return LaunchResult(0, None, "", lasted_s, ends)

    def _ends(self) -> tuple[RankEnd, ...]:
        return tuple(rank.end for rank in self._ranks.values() if rank.end is not None)

    def _first_failure(self, name: str) -> tuple[int, str]:
        """The exit code where this rank was the first to fail, and one line on why."""
        rank = self._ranks[name]
        assert rank.end is not None, "only a rank that has ended is a cause"
        others = [other for other, order in self.orders.items() if order.stopped_by is not None]
        rest = f"; {', '.join(others)} {'was' if len(others) == 1 else 'were'} ended" if others else ""
        code = rank.end.exit_code
        if code is None:
            return 1, f"{rank.order.error}{rest}"
        last = f": {rank.output.errors.text}" if rank.output.errors.text else ""
        return code, f"{name} (rank {rank.place.rank}) {in_words(code)}{last}{rest}{ended_before(self._ends())}"
