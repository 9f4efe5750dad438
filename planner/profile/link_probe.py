"""Link probes measure each pair of devices, then all peers of each host at once (incast).

One probe runs at a time, for devices may share a medium.
"""

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

#: Seconds without an answer after which an end of a probe counts as hung.
ANSWER_S = 60.0
READY_S = 20.0

Flow = tuple[str, str]
Result = LinkProfile | IncastProfile
_Step = tuple[str, Callable[[], Result | None]]


class ProbeLengths(NamedTuple):
    """How long probes take.

    throughput_s: seconds of a throughput probe between two devices.
    loopback_s: seconds of one within a device, which no network limits and which settles sooner.
    loopback_repeats: messages of each size; quotas and cold caches show in many of them only.
    enough_s, turns, turn_s: see ``SendMessages``.
    """

    throughput_s: float = 1.0
    loopback_s: float = 0.3
    loopback_repeats: int = 15
    enough_s: float = 0.4
    turns: int = 3
    turn_s: float = 0.15


LENGTHS = ProbeLengths()


class Outstanding(NamedTuple):
    """Probes to make.

    pairs: (source, target).
    incasts: (host, ``in`` or ``out``).
    """

    pairs: tuple[Flow, ...]
    incasts: tuple[tuple[str, str], ...]

    @classmethod
    def among(
        cls,
        names: Iterable[str],
        have_pairs: Collection[Flow] = (),
        have_incasts: Collection[tuple[str, str]] = (),
    ) -> "Outstanding":
        """Return all probes but those made before; two devices have no incast."""
        names = list(names)
        pairs = ((source, target) for source in names for target in names)
        incasts = ((host, direction) for host in names for direction in ("in", "out") if len(names) > 2)
        return cls(
            tuple(pair for pair in pairs if pair not in have_pairs),
            tuple(incast for incast in incasts if incast not in have_incasts),
        )

    @property
    def probes(self) -> int:
        """The number of probes."""
        return len(self.pairs) + len(self.incasts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the probes, pairs first: ``a -> b`` and ``b, all in``."""
        return (*map(_arrow, self.pairs), *(_all(*incast) for incast in self.incasts))


def measure_links(
    agents: Mapping[str, AgentClient],
    addresses: Mapping[str, str],
    sizes: Sequence[int],
    on_progress: Callable[[str, float | None], None],
    on_result: Callable[[Result], None],
    only: Outstanding | None = None,
    lengths: ProbeLengths = LENGTHS,
) -> dict[str, str]:
    """Measure the links between devices and return the reasons of failed probes, by name.

    addresses: of each device in the data plane.
    sizes: bytes of messages to measure beside ``message_probe.SIZES``.
    on_result: called with each result at once.
    only: the probes to make; None makes all.

    A loopback is probed over two connections, before all other links and after them: the two ends
    of one connection may run on processors that slow each other down.
    A pair that fails is left out of the incasts, and nothing else.
    """
    probes = Outstanding.among(agents) if only is None else only
    probe = _Probe(agents, addresses, sizes, lengths)
    errors: dict[str, str] = {}

    def incast(host: str, direction: str) -> Result:
        flows = [flow for flow in _incast(host, direction, agents) if _arrow(flow) not in errors]
        return probe.incast(host, direction, flows)

    between: list[_Step] = [
        *((_arrow(pair), functools.partial(probe.pair, *pair)) for pair in probes.pairs if not _is_loopback(pair)),
        *((_all(*each), functools.partial(incast, *each)) for each in probes.incasts),
    ]
    loopbacks = [pair for pair in probes.pairs if _is_loopback(pair)]
    before: list[_Step] = [(_arrow(pair), functools.partial(probe.loopback_curve, pair[0])) for pair in loopbacks]
    after: list[_Step] = [(_arrow(pair), functools.partial(probe.loopback, pair[0])) for pair in loopbacks]
    steps = before + between + after
    for done, (what, measure) in enumerate(steps):
        on_progress(what, done / len(steps))
        if what in errors:  # the first half of a loopback failed, so would the second
            continue
        try:
            result = measure()
        except RemoteError as error:
            errors[what] = str(error)
        else:
            if result is not None:
                on_result(result)
    return errors


def repeat_links(
    agents: Mapping[str, AgentClient],
    addresses: Mapping[str, str],
    sizes: Sequence[int],
    links: Sequence[LinkProfile],
    on_progress: Callable[[str, float | None], None],
    on_result: Callable[[LinkProfile], None],
    lengths: ProbeLengths = LENGTHS,
) -> dict[str, str]:
    """Probe ``links`` again, minutes after ``measure_links``; return the reasons of failed probes.

    on_result: called with each link, both probes in it. A link that fails stays as it was.
    """
    probe = _Probe(agents, addresses, sizes, lengths)
    errors: dict[str, str] = {}
    for done, link in enumerate(links):
        what = _arrow((link.source, link.target))
        on_progress(f"{what}, again", done / len(links))
        try:
            on_result(link_curves.pooled(link, probe.curve(link.source, link.target)))
        except RemoteError as error:
            errors[what] = str(error)
    return errors


def _is_loopback(pair: Flow) -> bool:
    return pair[0] == pair[1]


def _all(host: str, direction: str) -> str:
    return f"{host}, all {direction}"


def _arrow(flow: Flow) -> str:
    return " -> ".join(flow)


def _incast(host: str, direction: str, names: Iterable[str]) -> list[Flow]:
    return [(peer, host) if direction == "in" else (host, peer) for peer in names if peer != host]


class _Probe:
    """Makes single probes between the agents of a fleet."""

    def __init__(
        self, agents: Mapping[str, AgentClient], addresses: Mapping[str, str], sizes: Sequence[int],
        lengths: ProbeLengths,
    ) -> None:  # fmt: skip
        self._agents = agents
        self._addresses = addresses
        self._sizes = tuple(sizes)
        self._lengths = lengths
        self._iperf3: dict[str, bool] = {}
        self._loopbacks: dict[str, link_curves.Curve] = {}
        self._authority = Authority()

    def pair(self, source: str, target: str) -> LinkProfile:
        """Measure throughput and message-size curve of a directed link. Raises RemoteError."""
        flow = (source, target)
        tool = self._tool([flow])
        (rates,) = self._throughput([flow], tool, self._lengths.throughput_s)
        return link_curves.first(*flow, tool, rates, self.curve(source, target))

    def curve(self, source: str, target: str) -> link_curves.Curve:
        """Measure the one-way times of messages of all sizes.

        Between two devices also the processor time that a computation at either end loses.
        Raises RemoteError.
        """
        address, lengths = self._addresses[target], self._lengths
        serve = ServeMessages(address, self._authority.identity(framing.SERVER))
        with _serving(self._agents[target], serve) as ready:
            order = SendMessages(address, ready.port, self._authority.identity(source), self._sizes)
            order = order._replace(enough_s=lengths.enough_s)
            if source == target:
                order = order._replace(repeats=lengths.loopback_repeats, cold=True)
            else:
                order = order._replace(turns=lengths.turns, turn_s=lengths.turn_s)
            curve: dict[str, Any] = self._agents[source].call(order, ANSWER_S)
        return curve

    def loopback_curve(self, name: str) -> None:
        """Measure the curve of a loopback over a first connection. Raises RemoteError."""
        self._loopbacks[name] = self.curve(name, name)

    def loopback(self, name: str) -> LinkProfile:
        """Measure the throughput of a loopback, and its curve again. Raises RemoteError."""
        (rates,) = self._throughput([(name, name)], PYTHON, self._lengths.loopback_s)
        link = link_curves.first(name, name, PYTHON, rates, self._loopbacks[name])
        # Both connections count as one repeat.
        return link_curves.pooled(link, self.curve(name, name))._replace(repeats=1)

    def incast(self, host: str, direction: str, flows: Sequence[Flow]) -> IncastProfile:
        """Measure all flows of a host at once, over the time in which all of them run.

        Raises RemoteError.
        """
        if len(flows) < 2:
            raise AgentError(f"{host}: fewer than two of the others can be reached, which is no incast")
        tool = self._tool(flows)
        received = self._throughput(flows, tool, self._lengths.throughput_s)
        rates = {}
        for (source, target), values in zip(flows, received, strict=True):
            edge = len(values) // 5
            peer = source if direction == "in" else target
            rates[peer] = statistics.median(values[edge : len(values) - edge])
        return IncastProfile(host, direction, tool, rates)

    def _tool(self, flows: Iterable[Flow]) -> str:
        return IPERF3 if all(self._has_iperf3(name) for flow in flows for name in flow) else PYTHON

    def _has_iperf3(self, name: str) -> bool:
        if name not in self._iperf3:
            facts = self._agents[name].call(CollectFacts(frameworks=()), ANSWER_S)
            self._iperf3[name] = facts["iperf3"] is not None
        return self._iperf3[name]

    def _throughput(self, flows: Sequence[Flow], tool: str, seconds: float) -> list[list[float]]:
        """Return bytes/s received in each interval, for each of the flows; they run at once."""
        with ExitStack() as stack:
            listening: dict[str, Iterator[tuple[int, str]]] = {}
            for target in {target: None for _, target in flows}:
                count = sum(flow[1] == target for flow in flows)
                order = ServeThroughput(self._addresses[target], tool, count, seconds)
                ready = stack.enter_context(_serving(self._agents[target], order))
                listening[target] = iter([(port, ready.token) for port in ready.ports])
            calls = []
            for source, target in flows:
                port, token = next(listening[target])
                calls.append(self._send(source, target, port, token, tool, seconds))
            return _results(calls)

    def _send(self, source: str, target: str, port: int, token: str, tool: str, seconds: float) -> Call:
        return self._agents[source].start(SendThroughput(self._addresses[target], port, tool, seconds, token))


@contextmanager
def _serving(agent: AgentClient, order: Any) -> Iterator[Event]:
    """Run the serving end of a probe, from when it listens until the block ends."""
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
    """Return the results of concurrent senders; raise the first failure once all have ended."""
    rates, failures = [], []
    for call in calls:
        try:
            rates.append(list(call.result(ANSWER_S)["bytes_per_s"]))
        except RemoteError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return rates
