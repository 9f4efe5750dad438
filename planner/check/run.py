"""The check examines every device of a fleet and reports what it lacks, with remedies."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

from packaging.requirements import Requirement

from backends.frameworks.base import FRAMEWORKS
from backends.protocol.events import FolderContent, Listening
from backends.protocol.orders import (
    AwaitReachability,
    CollectFacts,
    FindPackages,
    ProbeReachability,
    ReadClock,
    StartFramework,
    SurveyData,
    SurveySensors,
)
from planner.agents.addresses import try_addresses
from planner.agents.call import Call
from planner.agents.client import AgentClient
from planner.agents.pool import in_parallel
from planner.check import findings
from planner.check.findings import FAILED, OK, SKIPPED, CheckReport, Finding
from planner.console import OnProgress
from planner.errors import AgentError, DeviceLostError, PlannerError, suggest
from planner.fleet.device import Device, Fleet
from planner.jobs.data_folders import SURVEY_S
from planner.remote import connect
from planner.remote.base import Remote
from planner.units import counted
from profilers.records.device import Facts, SensorFacts

#: Limit for starting Python; a device that takes longer is taken to hang.
ANSWER_S = 60.0
#: Limit for starting a framework; boards load it and its CUDA libraries from an SD card.
FRAMEWORK_S = 180.0
#: Limits for opening a port, and for reaching it.
OPEN_S, KNOCK_S = 10.0, 30.0


def check(
    fleet: Fleet,
    frameworks: Collection[str] = tuple(FRAMEWORKS),
    on_progress: OnProgress = lambda name, what, share: None,
    requirements: Sequence[Requirement] = (),
) -> CheckReport:
    """Examine all devices at once; a failure of one does not hide findings of another.

    frameworks: each device needs one of these; an empty list omits this check.
    requirements: of a job, which each device needs too.
    Raises PlannerError for an unknown framework. No fault of a device raises.
    """
    for name in frameworks:
        if name not in FRAMEWORKS:
            raise PlannerError(f'no framework "{name}"; {suggest(name, FRAMEWORKS)}')
    with_data = any(device.data is not None for device in fleet.devices)
    with ExitStack() as stack:
        exams = {
            device.name: DeviceCheck(device, frameworks, stack, on_progress, requirements, with_data)
            for device in fleet.devices
        }
        in_parallel(exams, lambda name: exams[name].run())
        agents = {name: exam.agent for name, exam in exams.items() if exam.agent is not None}
        for name, finding in _reachability({name: exams[name].device for name in agents}, agents).items():
            exams[name].note(finding)
    return CheckReport(
        tuple(finding for exam in exams.values() for finding in exam.findings()),
        {name: exam.sensors for name, exam in exams.items()},
    )


class DeviceCheck:
    """The checks of one device, one after the other.

    agent: None unless the device may take part.
    sensors: empty unless they were read.
    """

    def __init__(
        self,
        device: Device,
        frameworks: Collection[str],
        stack: ExitStack,
        on_progress: OnProgress,
        requirements: Sequence[Requirement] = (),
        with_data: bool = False,
    ) -> None:
        self.device = device
        self._requirements = requirements
        self.agent: AgentClient | None = None
        self.sensors: tuple[SensorFacts, ...] = ()
        self._frameworks = frameworks
        self._stack = stack
        self._on_progress = on_progress
        self._found: dict[str, Finding] = {}
        further = ((findings.DATA, with_data), (findings.JOB, bool(requirements)))
        self._checks = (*findings.CHECKS, *(name for name, asked_for in further if asked_for))
        self._now = self._checks[0]

    def run(self) -> None:
        try:
            remote, agent = self._connect()
            facts = self._ask(agent)
            self._start_frameworks(remote, facts)
            self._survey_data(agent)
            self._find_packages(agent, facts)
            self.agent = agent
        except PlannerError as error:
            stage = findings.stage_of(error) if self._now == "reachable" else self._now
            for earlier in self._checks[: self._checks.index(stage)]:
                self._found.setdefault(earlier, Finding(self.device.name, earlier, OK, ""))
            self.note(findings.of_error(self.device, stage, error))
        self._on_progress(self.device.name, "done", 1.0)

    def note(self, finding: Finding) -> None:
        """Store a finding, in place of an earlier one of the same check."""
        self._found[finding.check] = finding

    def findings(self) -> Iterator[Finding]:
        """One finding for each check; checks that were not reached are skipped."""
        failed = next((name for name, found in self._found.items() if found.status == FAILED), None)
        reason = f"not tried: {failed} failed" if failed else "not asked for"
        for name in self._checks:
            yield self._found.get(name, Finding(self.device.name, name, SKIPPED, reason))

    def _connect(self) -> tuple[Remote, AgentClient]:
        """Connect to the device and start its agent."""
        self._begin("reachable")
        remote = connect(self.device)
        self._stack.callback(remote.close)
        for passed in ("reachable", "host key", "login"):
            self.note(Finding(self.device.name, passed, OK, "this machine" if self.device.local else ""))
        self._begin("python")
        agent = AgentClient.launch(self.device, remote)
        self._stack.callback(agent.close)
        self.note(Finding(self.device.name, "python", OK, agent.python))
        return remote, agent

    def _ask(self, agent: AgentClient) -> Facts:
        device, names = self.device, tuple(self._frameworks)
        self._begin("gpu")
        facts: Facts = agent.call(CollectFacts(names), ANSWER_S)
        for finding in findings.of_facts(device, facts):
            self.note(finding)
        self._begin("power")
        self.sensors = agent.call(SurveySensors(), ANSWER_S)
        self.note(findings.of_power(device, self.sensors))
        self._begin("clock")
        self.note(findings.of_clock(device, clock_offset_s(agent)))
        return facts

    def _start_frameworks(self, remote: Remote, facts: Facts) -> None:
        """Start the framework that `profile` uses, others only where it does not suffice."""
        if not self._frameworks:
            return
        self._begin("framework")
        started: dict[str, Mapping[str, str]] = {}
        for name in self._frameworks:  # in the order of `profile`; TensorFlow takes 10 s or more to import
            started[name] = self._start_framework(remote, facts, name)
            if findings.suffices(facts, started[name]):
                break
        self.note(findings.of_frameworks(self.device, facts, started))

    def _survey_data(self, agent: AgentClient) -> None:
        """Look into the folder with its data; a missing one hides no other finding."""
        if self.device.data is None:
            return
        self._begin(findings.DATA)
        try:
            found: FolderContent = agent.call(SurveyData(self.device.data), SURVEY_S)
            self.note(Finding(self.device.name, findings.DATA, OK, counted(found.files, "file")))
        except AgentError as error:
            self.note(findings.of_error(self.device, findings.DATA, error))

    def _find_packages(self, agent: AgentClient, facts: Facts) -> None:
        """Look for what the job requires."""
        if self._requirements:
            self._begin(findings.JOB)
            names = tuple(sorted({requirement.name for requirement in self._requirements}))
            installed = agent.call(FindPackages(names), ANSWER_S)
            self.note(findings.of_packages(self.device, facts, self._requirements, installed))

    def _start_framework(self, remote: Remote, facts: Facts, name: str) -> Mapping[str, str]:
        """Start it in a separate agent: two may not fit into one process, and one may crash."""
        looked_up = facts.frameworks.get(name, {})
        if "error" in looked_up:
            return looked_up
        try:
            with closing(AgentClient.launch(self.device, remote)) as agent:
                answer: Mapping[str, str] = agent.call(StartFramework(name), FRAMEWORK_S)
        except (AgentError, DeviceLostError) as error:  # a missing library, or one built for another board
            return {"error": findings.without_device_name(self.device.name, error)}
        return answer

    def _begin(self, name: str) -> None:
        self._now = name
        self._on_progress(self.device.name, name, self._checks.index(name) / len(self._checks))


def clock_offset_s(agent: AgentClient) -> float:
    """The device's clock minus this machine's, taken at half the round trip."""
    before_s = time.time()
    there_s: float = agent.call(ReadClock(), ANSWER_S)
    return there_s - (before_s + time.time()) / 2


def _reachability(devices: Mapping[str, Device], agents: Mapping[str, AgentClient]) -> dict[str, Finding]:
    """Whether all other devices connect to each device's data address; one finding a device."""
    addresses, failed = try_addresses(devices, agents)
    probes: dict[str, ProbeReachability] = {}
    with ExitStack() as stack:
        for name, address in addresses.items():
            with _attributed_to(name, failed):
                waiting = agents[name].start(AwaitReachability(address))
                listening = stack.enter_context(waiting.serving(Listening, OPEN_S))
                probes[name] = ProbeReachability(address, listening.port, listening.token)
        answers = _probe_all(agents, probes, failed)
    return {
        name: findings.of_error(device, "data plane", failed[name]) if name in failed
        else findings.of_reach(name, [source for source, target in answers if target == name],
                               {source: why for (source, target), why in answers.items() if target == name and why})
        for name, device in devices.items()
    }  # fmt: skip


def _probe_all(
    agents: Mapping[str, AgentClient], probes: Mapping[str, ProbeReachability], failed: dict[str, PlannerError]
) -> dict[tuple[str, str], str | None]:
    """(source, target) -> why the source does not reach the target, or None. All probe at once.

    probes: by target, what its sources are told.
    """
    calls: dict[tuple[str, str], Call] = {}
    for source, agent in agents.items():
        with _attributed_to(source, failed):
            for target, probe in probes.items():
                if target != source:
                    calls[source, target] = agent.start(probe)
    answers: dict[tuple[str, str], str | None] = {}
    for (source, target), call in calls.items():
        with _attributed_to(source, failed):
            answers[source, target] = call.result(KNOCK_S)
    return answers


@contextmanager
def _attributed_to(name: str, failed: dict[str, PlannerError]) -> Iterator[None]:
    """Record a failure within the block as that of this device alone."""
    try:
        yield
    except PlannerError as error:
        failed.setdefault(name, error)
