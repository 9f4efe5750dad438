"""A run of a plan starts: data are sent, then server and workers begin (Gu et al., step 6)."""

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from backends.network import framing
from backends.protocol.events import Listening, Ready, RunAccount
from backends.protocol.member_specs import HostAddress, MemberSpec
from backends.protocol.orders import StartFramework
from backends.strategies.engine import TORCH
from backends.training import checkpoint
from backends.training.run_orders import HostRun, RunPeer, RunRank, RunWorker, TrainAlone
from backends.training.run_spec import RunSpec
from planner.agents.addresses import data_addresses
from planner.agents.call import Event
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool, in_parallel
from planner.errors import PlannerError
from planner.fleet.device import Fleet
from planner.json_records import save
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.run.restarts import Restarts
from planner.run.supervisor import Signals, Supervisor, first_events
from planner.train import orders
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.data_division import DataDivision, data_division
from planner.train.event_log import EventReporter, OnEvent
from planner.train.events import Reaching, Sending, Started
from planner.train.monitor import RunMonitor, ServerProcess
from planner.train.observer import Observer
from planner.train.orders import Options
from planner.train.telemetry import MemberReports
from planner.train.training_data import TrainingData

#: Members and hosts of a run tell something every second, or every ten where they save.
SILENCE_S = 600.0
#: The coordinator of peers, in a run's events.
COORDINATOR = "coordinator"


class TrainingRun:
    """One run of a plan.

    reports: of the workers; they fill while these run.
    problems: of a run that has ended as it should: what of it could not be saved or shown.
    startup_s: seconds until all members were ready; None before, and with agents that are used
        again.
    observers: write the run's events besides its log; closed with the run.
    division: of the data; that of the plan if not given.
    pool: agents to use again. They stay when the run is over; who was lost in it is started again
        by the next run.
    """

    def __init__(
        self, plan: Plan, fleet: Fleet, data: TrainingData, options: Options, folder: RunFolder, on_event: OnEvent,
        pool: AgentPool | None = None, observers: Iterable[Observer] = (), division: DataDivision | None = None,
    ) -> None:  # fmt: skip
        self.plan = plan
        self._devices = {name: fleet.device(name) for name in plan.names}
        self.data = data
        self.options = options
        self.division = division or data_division(plan, options)
        self.folder = folder
        self._pool_is_lent = pool is not None
        self._pool = pool or AgentPool(folder.log)
        self._reporter = EventReporter(folder.events, on_event, observers)
        self._signals = Signals()
        self._members: dict[str, Supervisor] = {}  # that are not the host as well
        self._addresses: dict[str, str] = {}
        self.reports = {name: MemberReports() for name in plan.names}
        self.startup_s: float | None = None
        self.problems: list[str] = []

    def run(self, resume: Path | None = None, lasting_s: float = math.inf) -> RunAccount:
        """Train to the last step, or for ``lasting_s`` as ``RunMonitor.run`` counts.

        Raises RunError where the run cannot start or ends early, InterruptedRunError on Ctrl-C.
        Both leave the newest checkpoint in the run folder and name it.
        """
        before = resume.parent if resume else None
        keep = self.options.keep_weights
        fetcher = CheckpointFetcher(self._pool, self.plan.server, self.folder, before, self._reporter, keep)
        try:
            self.data.check_parts(self.division.parts())
            began_s = time.monotonic()
            with self._pool.lent() if self._pool_is_lent else self._pool, contextlib.closing(fetcher):
                self._open_agents()
                server = self._start(resume, fetcher)
                if not self._pool_is_lent:
                    self.startup_s = time.monotonic() - began_s
                monitor = RunMonitor(server, self._members, fetcher, self.reports, self._reporter, self._signals)
                account = monitor.run(lasting_s)
                self.problems += monitor.problems
                return account
        finally:
            self._signals.over.set()
            self._reporter.close()
            self.problems += self._reporter.problems

    def _open_agents(self) -> None:
        self._reporter.report("planner", Reaching(tuple(self._devices)))
        self._pool.open_all(self._devices.values())
        for name, framework in self.plan.frameworks.items():
            # It imports while data are sent. An error of it is told by whoever needs it next.
            self._pool.agents[name].start(StartFramework(framework))

    def _start(self, resume: Path | None, fetcher: CheckpointFetcher) -> ServerProcess:
        agent, written, resumed = self._place_checkpoints(resume)
        files = tuple(path for path in (written, resumed) if path is not None)
        try:
            run = orders.run_spec(self.plan, self.options, self.data, written, resumed)
            members = self._placed_members(int(checkpoint.peek(str(resume))["step"]) if resume else 0)
            host, until = self._start_orders(agent, run, members, fetcher.hear)
        except (PlannerError, KeyboardInterrupt):
            fetcher.remove(agent, files)  # nothing has been written to them yet
            raise
        self._signals.go.set()
        self._reporter.report("planner", Started(until))
        stops_all = self.plan.run.strategy.evaluation_stops_all(len(members))
        return ServerProcess(host, files, stops_all, self._has_ranks)

    @property
    def _has_ranks(self) -> bool:
        """Whether the framework exchanges the gradients; one device alone exchanges none."""
        return self.plan.run.engine.name == TORCH and len(self.plan.names) > 1

    def _place_checkpoints(self, resume: Path | None) -> tuple[AgentClient, str | None, str | None]:
        """The server's agent, and the paths on its device of its checkpoints.

        The first path is of the checkpoint to write, the second of the one to resume from.
        """

        def place(name: str) -> tuple[AgentClient, str | None, str | None]:
            is_member = len(self.plan.names) == 1 or self._has_ranks
            agent = self._pool.agents[name] if is_member else self._pool.another(name)
            written = resumed = None
            if self.options.keep_weights:
                written = agent.store(orders.cache_name(self.folder.path, "checkpoint.npz"), b"")
            if resume is not None:
                resumed = agent.store(orders.cache_name(self.folder.path, "resume.npz"), resume.read_bytes())
            return agent, written, resumed

        # In a thread, for Ctrl-C ends a wait for it at once.
        return in_parallel((self.plan.server,), place)[self.plan.server]

    def _placed_members(self, done: int) -> dict[str, MemberSpec]:
        """The model and the data of every member, whose files are then on its device.

        A resumed run, which has ``done`` steps, draws other batches than it did before.
        """
        plan, options, shares = self.plan, self.options, self.division.parts()
        self.data.check(self._pool.agents, self._devices)
        self._addresses = data_addresses(self._devices, self._pool.agents)

        def place_data(name: str) -> MemberSpec:
            def on_send(size: int) -> None:
                self._reporter.report(name, Sending(size))

            placed = self.data.place(self._pool.agents[name], self._devices[name], plan, shares[name], on_send)
            member = orders.member(plan, options, name, placed, self.folder.path)
            return member._replace(seed=member.seed + done)

        return in_parallel(plan.names, place_data)

    def _start_orders(
        self, agent: AgentClient, run: RunSpec, members: dict[str, MemberSpec], on_event: Callable[[Event], None]
    ) -> tuple[Supervisor, str]:
        """Start the host and the members, until all are ready to begin.

        Returns the host, and until when the run goes on. Raises PlanError for a target of a metric
        that a member's job lacks.
        """
        name, order, begins_with = self._host(run, members)
        host = Supervisor(name, agent, order, self._signals, begins_with, on_event=on_event, silence_s=SILENCE_S)
        if Listening in begins_with:
            port = first_events({name: host}, Listening)[name].port
            for member in members.values():
                if member.name != name:
                    self._start_member(member, run, port)
        hosting_member = {name: host} if Ready in begins_with else {}
        ready = first_events({**hosting_member, **self._members}, Ready)
        self._keep_division(ready)
        return host, [orders.settled_rule(self.options, each.metrics).text for each in ready.values()][0]

    def _host(self, run: RunSpec, members: dict[str, MemberSpec]) -> tuple[str, Any, tuple[type, ...]]:
        """The host's name in events, its order, and the classes of its first events.

        A device alone and the first rank are the hosts of their run as well.
        """
        first = self.plan.server
        if len(members) == 1:
            return first, TrainAlone(members[first], run), (Ready,)
        if self._has_ranks:
            return first, self._rank(members[first], run), (Listening, Ready)
        name = framing.SERVER if self.plan.run.strategy.through_server else COORDINATOR
        return name, HostRun(self._addresses[first], self._authority.identity(framing.SERVER), run), (Listening,)

    def _start_member(self, member: MemberSpec, run: RunSpec, port: int) -> None:
        """Start a member, and again if it fails. Without one of its ranks, a run cannot go on."""
        name, pool = member.name, self._pool
        # On the host's device, reopening would close the connection that the host uses.
        new_agent = functools.partial(pool.another if name == self.plan.server else pool.reopen, name)
        restarts = None if self._has_ranks else Restarts(new_agent)
        order = self._rank(member, run, port) if self._has_ranks else self._role(member, run, port)
        self._members[name] = Supervisor(
            name, pool.agents[name], order, self._signals, (Ready,), restarts, silence_s=SILENCE_S
        )

    def _rank(self, member: MemberSpec, run: RunSpec, store_port: int = 0) -> RunRank:
        return orders.rank(self.plan, member, run, self._addresses, self._waits_s(run), store_port)

    def _role(self, member: MemberSpec, run: RunSpec, port: int) -> RunWorker | RunPeer:
        identity = self._authority.identity(member.name, listens=not self.plan.run.strategy.through_server)
        to_host = HostAddress(self._addresses[self.plan.server], port, identity, self.options.heartbeat_s)
        listens_on = self._addresses[member.name]
        return orders.role(self.plan, self.options, member, to_host, listens_on, self._waits_s(run))

    def _waits_s(self, run: RunSpec) -> float:
        return orders.wait_s(self.plan, run.training_samples, self.data.test_samples)

    @functools.cached_property
    def _authority(self) -> Authority:
        return Authority()

    def _keep_division(self, ready: Mapping[str, Ready]) -> None:
        """Tell what the members hold, and keep it. Raises RunError as ``DataDivision.held``."""
        for name, each in ready.items():
            self._reporter.report(name, each)
        if self.division.by_label:
            self.division = self.division.held(ready)
            save(self.division, self.folder.partition)
