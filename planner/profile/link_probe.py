"""Measuring the links of a fleet: pair after pair, then all peers at once into and out of each host."""

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from backends.network import framing
from backends.profiling.throughput import IPERF3, PYTHON
from backends.protocol.orders import CollectFacts, SendMessages, SendThroughput, ServeMessages, ServeThroughput
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient, Call, Event
from planner.errors import AgentError, DeviceLostError, RemoteError
from planner.profile import link_curves
from profilers.records import IncastProfile, LinkProfile

#: Seconds of one throughput probe; the network is not what limits the one from a device to itself.
SECONDS = 1.0
LOOPBACK_SECONDS = 0.3
#: Messages of each size from a device to itself: they are short, and a quota or a cold cache shows in many only.
LOCAL_REPEATS = 15
LIMIT_S = 60.0
READY_S = 20.0

Flow = tuple[str, str]
Result = LinkProfile | IncastProfile
_Step = tuple[str, Callable[[], Result | None]]


class Outstanding(NamedTuple):
    """What is to be measured: pairs (source, target), and fans (host, ``in`` or ``out``)."""

    pairs: tuple[Flow, ...]
    fans: tuple[tuple[str, str], ...]

    @classmethod
    def among(
        cls,
        names: Iterable[str],
        have_pairs: Collection[Flow] = (),
        have_fans: Collection[tuple[str, str]] = (),
    ) -> "Outstanding":
        """All that is missing. Two devices have no fans: there one peer is all peers."""
        names = list(names)
        pairs = ((source, target) for source in names for target in names)
        fans = ((host, direction) for host in names for direction in ("in", "out") if len(names) > 2)
        return cls(
            tuple(pair for pair in pairs if pair not in have_pairs),
            tuple(fan for fan in fans if fan not in have_fans),
        )

    @property
    def probes(self) -> int:
        """How many probes that takes, one after the other."""
        return len(self.pairs) + len(self.fans)

    @property
    def names(self) -> tuple[str, ...]:
        """What the probes are called, pairs first."""
        return (*map(_arrow, self.pairs), *(_all(*fan) for fan in self.fans))


def measure_links(
    agents: Mapping[str, AgentClient],
    addresses: Mapping[str, str],
    sizes: Sequence[int],
    on_progress: Callable[[str, float | None], None],
    on_result: Callable[[Result], None],
    only: Outstanding | None = None,
) -> dict[str, str]:
    """Measure the links between devices; results are handed over as they come. Returns what failed, and why.

    addresses: of each device in the data plane; sizes: bytes of messages worth measuring beside
    ``backends.probe.SIZES``. One probe at a time, for a medium may be shared; a device's link to itself over two
    connections, before the others and after them, for one may have its two ends on processors that hinder each other
    all the while. A pair that fails is lost alone; a fan goes without it. What failed is called as in
    ``Outstanding.names``.
    """
    wanted = Outstanding.among(agents) if only is None else only
    probe = _Probe(agents, addresses, sizes)
    errors: dict[str, str] = {}

    def fan(host: str, direction: str) -> Result:
        flows = [flow for flow in _fan(host, direction, agents) if _arrow(flow) not in errors]
        return probe.fan(host, direction, flows)

    between: list[_Step] = [
        *((_arrow(pair), functools.partial(probe.pair, *pair)) for pair in wanted.pairs if not _within(pair)),
        *((_all(*each), functools.partial(fan, *each)) for each in wanted.fans),
    ]
    own = [pair for pair in wanted.pairs if _within(pair)]
    before: list[_Step] = [(_arrow(pair), functools.partial(probe.own_curve, pair[0])) for pair in own]
    after: list[_Step] = [(_arrow(pair), functools.partial(probe.own, pair[0])) for pair in own]
    steps = before + between + after
    for done, (what, measure) in enumerate(steps):
        on_progress(what, done / len(steps))
        if what in errors:  # what an own link failed in before, it would fail in again
            continue
        try:
            result = measure()
        except RemoteError as error:
            errors[what] = str(error)
        else:
            if result is not None:
                on_result(result)
    return errors


def visit_again(
    agents: Mapping[str, AgentClient],
    addresses: Mapping[str, str],
    sizes: Sequence[int],
    links: Sequence[LinkProfile],
    on_progress: Callable[[str, float | None], None],
    on_result: Callable[[LinkProfile], None],
) -> dict[str, str]:
    """Visit ``links`` once more, some time after ``measure_links``: each is handed over with both visits in it.

    Returns what failed, and why: such a link is known from one visit.
    """
    probe = _Probe(agents, addresses, sizes)
    errors: dict[str, str] = {}
    for done, link in enumerate(links):
        what = _arrow((link.source, link.target))
        on_progress(f"{what}, again", done / len(links))
        try:
            on_result(link_curves.pooled(link, probe.curve(link.source, link.target)))
        except RemoteError as error:
            errors[what] = str(error)
    return errors


def _within(pair: Flow) -> bool:
    return pair[0] == pair[1]


def _all(host: str, direction: str) -> str:
    return f"{host}, all {direction}"


def _arrow(flow: Flow) -> str:
    return " -> ".join(flow)


def _fan(host: str, direction: str, names: Iterable[str]) -> list[Flow]:
    return [(peer, host) if direction == "in" else (host, peer) for peer in names if peer != host]


class _Probe:
    """The probes of one fleet, between agents that are there."""

    def __init__(self, agents: Mapping[str, AgentClient], addresses: Mapping[str, str], sizes: Sequence[int]) -> None:
        self._agents = agents
        self._addresses = addresses
        self._sizes = list(sizes)
        self._iperf3: dict[str, bool] = {}
        self._own: dict[str, link_curves.Curve] = {}
        self._authority = Authority()

    def pair(self, source: str, target: str) -> LinkProfile:
        """One directed link: throughput, then the curve of message sizes and what they take. Raises RemoteError."""
        flow = (source, target)
        tool = self._tool([flow])
        (rates,) = self._throughput([flow], tool, SECONDS)
        return link_curves.first(*flow, tool, rates, self.curve(source, target))

    def curve(self, source: str, target: str) -> link_curves.Curve:
        """A visit: messages of all sizes, and what they take from a computation at either end. Raises RemoteError."""
        address = self._addresses[target]
        serve = ServeMessages(address, self._authority.identity(framing.SERVER))
        with _serving(self._agents[target], serve) as ready:
            send = SendMessages(address, ready.port, self._authority.identity(source), tuple(self._sizes))
            own = source == target
            send = send._replace(repeats=LOCAL_REPEATS, cold=True) if own else send._replace(beside=True)
            curve: dict[str, Any] = self._agents[source].call(send, LIMIT_S)
        return curve

    def own_curve(self, name: str) -> None:
        """The curve from a device to itself, over a first connection. Raises RemoteError."""
        self._own[name] = self.curve(name, name)

    def own(self, name: str) -> LinkProfile:
        """The link from a device to itself: throughput, and its curve over two connections. Raises RemoteError."""
        (rates,) = self._throughput([(name, name)], PYTHON, LOOPBACK_SECONDS)
        link = link_curves.first(name, name, PYTHON, rates, self._own[name])
        return link_curves.pooled(link, self.curve(name, name))._replace(visits=1)  # both are of one visit

    def fan(self, host: str, direction: str, flows: Sequence[Flow]) -> IncastProfile:
        """All flows of a host at once, counted while all of them run. Raises RemoteError."""
        if len(flows) < 2:
            raise AgentError(f"{host}: fewer than two of the others can be reached, which is no fan")
        tool = self._tool(flows)
        rates = {}
        for (source, target), values in zip(flows, self._throughput(flows, tool, SECONDS), strict=True):
            edge = len(values) // 5
            peer = source if direction == "in" else target
            rates[peer] = statistics.median(values[edge : len(values) - edge])
        return IncastProfile(host, direction, tool, rates)

    def _tool(self, flows: Iterable[Flow]) -> str:
        return IPERF3 if all(self._has_iperf3(name) for flow in flows for name in flow) else PYTHON

    def _has_iperf3(self, name: str) -> bool:
        if name not in self._iperf3:
            facts = self._agents[name].call(CollectFacts(frameworks=()), LIMIT_S)
            self._iperf3[name] = facts["iperf3"] is not None
        return self._iperf3[name]

    def _throughput(self, flows: Sequence[Flow], tool: str, seconds: float) -> list[list[float]]:
        """Bytes/s received in each interval, of flows that run at once."""
        with ExitStack() as stack:
            doors: dict[str, Iterator[tuple[int, str]]] = {}
            for target in {target: None for _, target in flows}:
                count = sum(flow[1] == target for flow in flows)
                order = ServeThroughput(self._addresses[target], tool, count, seconds)
                ready = stack.enter_context(_serving(self._agents[target], order))
                doors[target] = iter([(port, ready.token) for port in ready.ports])
            calls = []
            for source, target in flows:
                port, token = next(doors[target])
                calls.append(self._send(source, target, port, token, tool, seconds))
            return _results(calls)

    def _send(self, source: str, target: str, port: int, token: str, tool: str, seconds: float) -> Call:
        return self._agents[source].start(SendThroughput(self._addresses[target], port, tool, seconds, token))


@contextmanager
def _serving(agent: AgentClient, order: Any) -> Iterator[Event]:
    """The serving end of a probe, from the moment it listens; asked to stop afterwards."""
    call = agent.start(order)
    try:
        ready = call.event(READY_S)
        if ready is None:
            call.result(READY_S)
            raise AgentError(f"{agent.name}: {call.name} ended before it listened")
        yield ready
    finally:
        with suppress(DeviceLostError):
            call.stop()


def _results(calls: Sequence[Call]) -> list[list[float]]:
    """Results of senders that run at once; all of them have ended when the first failure is raised."""
    rates, failures = [], []
    for call in calls:
        try:
            rates.append(list(call.result(LIMIT_S)["bytes_per_s"]))
        except RemoteError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return rates
