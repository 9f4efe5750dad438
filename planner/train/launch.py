"""Running a plan (Gu et al., step 6): bring the data, start server and workers, and give the word to begin."""

import math
import queue
import threading
import time
from pathlib import Path

from backends.data import dataset as data
from backends.network import framing
from backends.protocol.events import Listening, Ready, RunAccount
from backends.protocol.orders import (
    CoordinatePeers,
    HostAddress,
    MemberSpec,
    RunOrder,
    ServeParameters,
    TrainAlone,
)
from backends.training import checkpoint
from planner.agents.addresses import data_addresses
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient, Call
from planner.agents.pool import AgentPool, in_parallel
from planner.errors import PlannerError, RunError
from planner.fleet.device import Fleet
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train import orders as training
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter, OnEvent
from planner.train.events import Reaching, Sending, Started
from planner.train.monitor import RunMonitor, ServerProcess, remove
from planner.train.orders import Options
from planner.train.telemetry import Telemetry
from planner.train.worker_restart import READY_S, Signals, WorkerSupervisor, expect

#: The coordinator of peers, in a run's events.
COORDINATOR = "coordinator"


class Launch:
    """One run of a plan. ``telemetry`` fills while it runs.

    crew: agents to use again, which stay when the run is over; what failed a run may have left some of them useless.
    """

    def __init__(
        self,
        plan: Plan,
        fleet: Fleet,
        dataset: data.Dataset,
        options: Options,
        folder: RunFolder,
        on_event: OnEvent,
        crew: AgentPool | None = None,
    ) -> None:
        self.plan = plan
        self._devices = {name: fleet.device(name) for name in plan.names}
        self.dataset = dataset
        self.options = options
        self.folder = folder
        self._borrowed = crew is not None
        self._crew = crew or AgentPool(folder.log)
        self._journal = EventReporter(folder.events, on_event)
        self._signals = Signals(go=threading.Event(), over=threading.Event(), events=queue.Queue())
        self._keepers: dict[str, WorkerSupervisor] = {}
        self._addresses: dict[str, str] = {}
        self.telemetry = Telemetry(plan.names)

    def run(self, resume: Path | None = None, lasting_s: float = math.inf) -> RunAccount:
        """Train to the last step, or for so long, as ``RunMonitor.run`` counts it; returns the server's account.

        Raises RunError where the run cannot start or ends early, InterruptedRunError on Ctrl-C; both leave the newest
        checkpoint in the run folder and name it.
        """
        before = resume.parent if resume else None
        wanted = self.options.keep_weights
        courier = CheckpointFetcher(self._crew, self.plan.server, self.folder, before, self._journal, wanted)
        try:
            with self._crew.lent() if self._borrowed else self._crew:
                self._reach()
                server = self._start(resume)
                supervisor = RunMonitor(server, self._keepers, courier, self.telemetry, self._journal, self._signals)
                return supervisor.run(lasting_s)
        finally:
            self._signals.over.set()
            self._journal.close()

    def _reach(self) -> None:
        self._journal.report("planner", Reaching(tuple(self._devices)))
        self._crew.open(device for name, device in self._devices.items() if name not in self._crew.agents)
        if self._crew.errors:
            raise RunError("; ".join(str(error) for error in self._crew.errors.values()))

    def _start(self, resume: Path | None) -> ServerProcess:
        agent, kept, saved = self._place(resume)
        files = tuple(path for path in (kept, saved) if path is not None)
        try:
            run = training.run_order(self.plan, self.options, self.dataset, kept, saved)
            members = self._members(int(checkpoint.peek(str(resume))["step"]) if resume else 0)
            start = self._start_alone if len(members) == 1 else self._start_cluster
            call = start(agent, run, members)
        except (PlannerError, KeyboardInterrupt):
            remove(agent, files)  # there is nothing in them yet that is not here
            raise
        self._signals.go.set()
        call.go()
        self._journal.report("planner", Started())
        holds_up = training.strategy(self.plan, self.options).evaluation_stops_all(len(members))
        return ServerProcess(self._called(), self.plan.server, agent, call, files, holds_up)

    def _called(self) -> str:
        """Whose events those of the server's order are."""
        if len(self.plan.names) == 1:
            return self.plan.server
        return framing.SERVER if training.strategy(self.plan, self.options).through_server else COORDINATOR

    def _place(self, resume: Path | None) -> tuple[AgentClient, str | None, str | None]:
        """The server's agent, and the paths on its device of the checkpoint to write and of the one to go on from."""
        placed: list[tuple[AgentClient, str | None, str | None]] = []

        def place(name: str) -> None:
            alone = len(self.plan.names) == 1
            agent = self._crew.agents[name] if alone else self._crew.another(name)
            kept = None
            if self.options.keep_weights:
                kept = agent.store(training.cache_name(self.folder.path, "checkpoint.npz"), b"")
            there = training.cache_name(self.folder.path, "resume.npz")
            placed.append((agent, kept, agent.store(there, resume.read_bytes()) if resume else None))

        in_parallel((self.plan.server,), place)
        return placed[0]

    def _members(self, done: int) -> dict[str, MemberSpec]:
        """Model and data of every member, its files on its device; a resumed run draws its batches anew."""
        plan, options = self.plan, self.options
        steps = {worker.name: worker.steps for worker in plan.workers}
        shards = training.shards(self.dataset, plan.names, steps, options.seed)
        test = training.packed(self.dataset.test_images, self.dataset.test_labels)
        members: dict[str, MemberSpec] = {}
        self._addresses = data_addresses(self._devices, self._crew.agents)

        def bring(name: str) -> None:
            agent = self._crew.agents[name]
            self._journal.report(name, Sending(len(shards[name].content) + len(test.content)))
            files = (training.place(agent, shards[name]), training.place(agent, test))
            member = training.member(agent, plan, options, self.dataset, self._devices[name], files)
            members[name] = member._replace(seed=member.seed + done)

        in_parallel(plan.names, bring)
        return members

    def _start_alone(self, agent: AgentClient, run: RunOrder, members: dict[str, MemberSpec]) -> Call:
        call = agent.start(TrainAlone(members[self.plan.server], run))
        expect(call, Ready)
        return call

    def _start_cluster(self, agent: AgentClient, run: RunOrder, members: dict[str, MemberSpec]) -> Call:
        authority = Authority()
        address = self._addresses[self.plan.server]
        peers = not training.strategy(self.plan, self.options).through_server
        host = CoordinatePeers if peers else ServeParameters
        call = agent.start(host(address, authority.identity(framing.SERVER), run))
        port = expect(call, Listening).port
        for name, member in members.items():
            identity = authority.identity(name, listens=peers)
            to_host = HostAddress(address, port, identity, self.options.heartbeat_s)
            beside = name == self.plan.server
            keeper = self._keepers[name] = WorkerSupervisor(name, self._crew, beside, self.telemetry, self._signals)
            keeper.start(training.role(self.plan, self.options, member, to_host, self._addresses[name]))
        self._wait_for_workers()
        return call

    def _wait_for_workers(self) -> None:
        """Raises RunError where a worker fails or is late."""
        deadline = time.monotonic() + READY_S
        while late := sorted(name for name, keeper in self._keepers.items() if not keeper.ready):
            failures = [keeper.failure for keeper in self._keepers.values() if keeper.failure is not None]
            if failures:
                raise RunError("; ".join(failures))
            if time.monotonic() > deadline:
                raise RunError(f"{', '.join(late)}: not ready within {READY_S:g} s")
            time.sleep(0.02)
