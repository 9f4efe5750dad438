"""Link probes between real agents on this machine: what is measured, with what, and failures."""

import json
import os
import shutil
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

from backends.profiling import throughput
from planner.agents.client import AgentClient
from planner.errors import AgentError
from planner.fleet.device import Device, Interpreter
from planner.json_records import decode
from planner.profile import link_probe
from planner.profile.link_probe import Flow, LinkProber, Outstanding, ProbeLengths, Result
from planner.remote.local import LocalRemote
from profilers.records.json_values import json_value
from profilers.records.links import IncastProfile, LinkProfile, LinkThroughput
from tests.quick import BRIEF

#: The agents serve all of these tests.
pytestmark = pytest.mark.xdist_group("link probe")

OnProgress = Callable[[str], None]

LOOPBACK = "127.0.0.1"
NOWHERE = "192.0.2.1"  # reserved for documentation (RFC 5737)
needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)


class Agents:
    """Agents on this machine, each started when it is first asked for."""

    def __init__(self) -> None:
        self._remotes: list[LocalRemote] = []
        self._agents: dict[tuple[str, bool], AgentClient] = {}

    def of(self, name: str, iperf3: bool) -> AgentClient:
        if (name, iperf3) not in self._agents:
            environment = {} if iperf3 else {"PATH": "/nonexistent"}
            device = Device(name=name, interpreter=Interpreter(sys.executable, environment=environment))
            self._remotes.append(LocalRemote(name))
            self._agents[name, iperf3] = AgentClient.launch(device, self._remotes[-1])
        return self._agents[name, iperf3]

    def close(self) -> None:
        for remote in self._remotes:
            remote.close()


class Fleet:
    """Some of these agents, and the results of probing their links."""

    def __init__(self, running: Agents) -> None:
        self._running = running
        self.agents: dict[str, AgentClient] = {}
        self.progress: list[str] = []
        self.results: list[Result] = []
        self.errors: dict[str, str] = {}

    def add(self, name: str, iperf3: bool) -> None:
        self.agents[name] = self._running.of(name, iperf3)

    def measure(
        self,
        only: Outstanding,
        on_progress: OnProgress | None = None,
        lengths: ProbeLengths = BRIEF,
        **at: str,
    ) -> None:
        """Probe every device at the loopback address, except those in ``at``."""
        addresses = dict.fromkeys(self.agents, LOOPBACK) | at
        progress = on_progress or self._on_progress
        prober = LinkProber(self.agents, addresses, [100_000], progress, lengths)
        self.errors = prober.measure(self.results.append, only)

    @property
    def links(self) -> dict[tuple[str, str], LinkProfile]:
        return {(one.source, one.target): one for one in self.results if isinstance(one, LinkProfile)}

    @property
    def incasts(self) -> dict[tuple[str, str], IncastProfile]:
        return {(one.host, one.direction): one for one in self.results if isinstance(one, IncastProfile)}

    def _on_progress(self, what: str) -> None:
        self.progress.append(what)


@pytest.fixture(scope="module")
def running() -> Iterator[Agents]:
    made = Agents()
    yield made
    made.close()


@pytest.fixture
def fleet(running: Agents) -> Fleet:
    return Fleet(running)


@pytest.fixture
def mortal() -> Iterator[Fleet]:
    """A fleet of agents of its own, which may be killed."""
    agents = Agents()
    yield Fleet(agents)
    agents.close()


# -- what is outstanding ---------------------------------------------------------------------------


def test_the_links_of_the_hub_are_probed_both_ways_and_its_incasts() -> None:
    probes = Outstanding.with_hub("b", ["a", "b", "c"])
    assert probes.pairs == (("b", "a"), ("a", "b"), ("b", "c"), ("c", "b"))
    assert probes.incasts == (("b", "in"), ("b", "out"))


def test_what_was_measured_before_is_not_measured_again() -> None:
    rest = Outstanding.with_hub("b", ["a", "b", "c"], {("a", "b"), ("b", "c")}, {("b", "in")})
    assert rest == ((("b", "a"), ("c", "b")), (("b", "out"),))
    assert Outstanding.with_hub("b", ["a", "b", "c"], rest.pairs + (("a", "b"), ("b", "c"))).pairs == ()


def test_devices_on_the_machine_of_the_hub_have_one_loopback_and_no_incast() -> None:
    probes = Outstanding.with_hub("b", "abcd", beside="abc")
    assert probes == ((("b", "a"), ("b", "d"), ("d", "b")), ())
    assert Outstanding.with_hub("b", "abc", [("b", "a")], beside="abc").pairs == (("b", "c"),)


# -- measured --------------------------------------------------------------------------------------


def test_three_devices_without_iperf3(fleet: Fleet) -> None:
    for name in "abc":
        fleet.add(name, iperf3=False)
    probes = Outstanding.with_hub("a", "abc")
    fleet.measure(probes)
    assert fleet.errors == {}
    assert set(fleet.links) == set(probes.pairs)
    for link in fleet.links.values():
        assert link.tool == throughput.PYTHON
        assert statistics.median(link.bytes_per_s.values) > 1e6
        assert 0 < statistics.median(link.latency_s.values) < 0.1
        assert 100_000 in [point.message_bytes for point in link.curve]
        assert min(link.send_cpu_s, link.receive_cpu_s) > 0
        assert decode(LinkProfile, json.loads(json.dumps(json_value(link))), "link") == link
    assert set(fleet.incasts) == set(probes.incasts)
    for (host, _), incast in fleet.incasts.items():
        assert incast.tool == throughput.PYTHON
        assert set(incast.bytes_per_s) == set("abc") - {host}
        assert min(incast.bytes_per_s.values()) > 1e6
    assert fleet.progress == list(probes.names)


@needs_iperf3
def test_iperf3_where_both_ends_have_it(fleet: Fleet) -> None:
    for name, iperf3 in (("a", True), ("b", True), ("bare", False)):
        fleet.add(name, iperf3)
    fleet.measure(Outstanding((("a", "b"), ("a", "bare"), ("bare", "a")), (("bare", "out"),)))
    assert fleet.errors == {}
    tools = {ends: link.tool for ends, link in fleet.links.items()}
    assert tools == {("a", "b"): "iperf3", ("a", "bare"): "python", ("bare", "a"): "python"}
    assert fleet.incasts["bare", "out"].tool == "python"
    assert min(fleet.links["a", "b"].bytes_per_s.values) > 0  # how many there are depends on the load


@needs_iperf3
def test_python_sends_where_the_report_of_iperf3_cannot_be_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        fleet.add(name, iperf3=True)
    sent: list[str] = []
    whole = LinkProber._throughput

    def broken(prober: LinkProber, flows: Sequence[Flow], tool: str, seconds: float) -> list[LinkThroughput]:
        sent.append(tool)
        if tool == throughput.IPERF3:
            raise AgentError("a: iperf3 gave no complete report")
        return whole(prober, flows, tool, seconds)

    monkeypatch.setattr(LinkProber, "_throughput", broken)
    fleet.measure(Outstanding([("a", "b"), ("a", "b")], []))
    assert sent == ["iperf3", "python", "python"] and fleet.errors == {}
    assert any("Python's own sender measures it: a: iperf3 gave no complete" in line for line in fleet.progress)


@needs_iperf3
def test_an_incast_by_iperf3(fleet: Fleet) -> None:
    for name in "abc":
        fleet.add(name, iperf3=True)
    fleet.measure(Outstanding((), (("a", "in"),)))
    assert fleet.errors == {}
    assert fleet.incasts["a", "in"].tool == "iperf3"
    assert set(fleet.incasts["a", "in"].bytes_per_s) == {"b", "c"}


def test_an_incast_that_fails_is_tried_once_more_for_longer(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        fleet.add(name, iperf3=False)
    measured, lengths_s = LinkProber._throughput, list[float]()

    def fails_first(prober: LinkProber, flows: Sequence[Flow], tool: str, seconds: float) -> list[LinkThroughput]:
        lengths_s.append(seconds)
        if len(lengths_s) == 1:
            raise AgentError("c: nothing arrived")
        return measured(prober, flows, tool, seconds)

    monkeypatch.setattr(LinkProber, "_throughput", fails_first)
    fleet.measure(Outstanding((), (("a", "in"),)))
    assert fleet.errors == {} and set(fleet.incasts["a", "in"].bytes_per_s) == {"b", "c"}
    assert lengths_s == [BRIEF.throughput_s, link_probe.LONGER * BRIEF.throughput_s]


# -- what fails ------------------------------------------------------------------------------------


def test_a_device_that_cannot_be_reached_loses_only_its_pairs(fleet: Fleet) -> None:
    for name in "abc":
        fleet.add(name, iperf3=False)
    into_c = (("a", "c"), ("b", "c"))
    others = (("a", "b"), ("b", "a"), ("c", "a"))
    incasts = (("a", "in"), ("a", "out"), ("c", "in"))
    fleet.measure(Outstanding(into_c + others, incasts), c=NOWHERE)
    assert set(fleet.links) == set(others)
    assert set(fleet.errors) == {"a -> c", "b -> c", "a, all out", "c, all in"}
    assert "c:" in fleet.errors["a -> c"]
    assert set(fleet.incasts["a", "in"].bytes_per_s) == {"b", "c"}


@pytest.mark.chaos
def test_a_device_that_dies_loses_only_its_pairs(mortal: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death is an event that ends a probe at once: no limit of an hour runs out."""
    monkeypatch.setattr(link_probe, "ANSWER_S", 3600.0)
    monkeypatch.setattr(link_probe, "READY_S", 3600.0)
    for name in "abcd":
        mortal.add(name, iperf3=False)

    def kill_d(what: str) -> None:
        if what == "b -> d":
            os.kill(mortal.agents["d"].pid, signal.SIGKILL)

    pairs = (("a", "d"), ("b", "d"), ("d", "b"), ("d", "d"), ("c", "d"), ("a", "b"), ("c", "b"))
    mortal.measure(Outstanding(pairs, (("b", "in"), ("d", "in"))), kill_d)
    assert set(mortal.links) == {("a", "d"), ("a", "b"), ("c", "b")}
    assert set(mortal.errors) == {"b -> d", "d -> b", "d -> d", "c -> d", "d, all in"}
    assert set(mortal.incasts["b", "in"].bytes_per_s) == {"a", "c"}


@pytest.mark.chaos
def test_a_probe_that_hangs_costs_its_own_pair(mortal: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_probe, "ANSWER_S", 20.0)
    monkeypatch.setattr("planner.agents.client.SILENCE_S", 3600.0)  # which would end a stopped agent too
    for name in "abc":
        mortal.add(name, iperf3=False)

    def stop_c(what: str) -> None:
        if what == "a -> c":
            os.kill(mortal.agents["c"].pid, signal.SIGSTOP)

    mortal.measure(Outstanding((("a", "c"), ("a", "b")), ()), stop_c)
    assert set(mortal.errors) == {"a -> c"} and set(mortal.links) == {("a", "b")}
    assert "within 20 s" in mortal.errors["a -> c"]


def test_results_come_one_by_one_and_survive_an_interruption(fleet: Fleet) -> None:
    fleet.add("a", iperf3=False)
    fleet.add("b", iperf3=False)

    def interrupt(what: str) -> None:
        if what == "b -> a":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.measure(Outstanding.with_hub("a", "ab"), interrupt)
    assert set(fleet.links) == {("a", "b")}
    assert Outstanding.with_hub("a", "ab", set(fleet.links)).pairs == (("b", "a"),)
