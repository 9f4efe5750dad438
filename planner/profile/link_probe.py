"""Link probes measure pairs of devices, then all peers of a host at once (incast).

One probe runs at a time, for devices may share a medium.
"""

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from backends.network import framing
from backends.profiling.throughput import IPERF3, PYTHON
from backends.protocol.events import Listening, MessageTimes, ThroughputListening
from backends.protocol.orders import CollectFacts, SendMessages, SendThroughput, ServeMessages, ServeThroughput
from planner.agents.call import Call
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.errors import AgentError, RemoteError
from planner.profile import link_curves
from profilers.records.device import Facts
from profilers.records.links import IncastProfile, LinkProfile, LinkThroughput

#: Seconds without an answer after which an end of a probe counts as hung.
ANSWER_S = 60.0
READY_S = 20.0

#: Length of the second try of an incast, over that of the first.
LONGER = 4

Flow = tuple[str, str]
Result = LinkProfile | IncastProfile


class ProbeLengths(NamedTuple):
    """How long probes take.

    throughput_s: seconds of a throughput probe; iperf3 takes whole ones.
    limit_s, enough_s, turns, turn_s: see ``SendMessages``.
    """

    throughput_s: float = 0.5
    limit_s: float = 0.6
    enough_s: float = 0.1
    turns: int = 2
    turn_s: float = 0.15


LENGTHS = ProbeLengths()


class Outstanding(NamedTuple):
    """Probes to make: pairs are (source, target), incasts (host, ``in`` or ``out``)."""

    pairs: tuple[Flow, ...]
    incasts: tuple[tuple[str, str], ...]

    @classmethod
    def with_hub(
        cls,
        hub: str,
        names: Iterable[str],
        have_pairs: Collection[Flow] = (),
        have_incasts: Collection[tuple[str, str]] = (),
        beside: Collection[str] = (),
    ) -> "Outstanding":
        """The links of a hub with others, both ways, but for those that were measured before.

        Of others ``beside`` the hub, on its machine, one stands for all: all links between them
        are one loopback. They have no incast, nor have fewer than two others.
        """
        others = [name for name in names if name != hub]
        apart = [name for name in others if name not in beside]
        pairs = [pair for other in apart for pair in ((hub, other), (other, hub)) if pair not in have_pairs]
        loopback = [(hub, other) for other in others if other in beside and (hub, other) not in have_pairs]
        incasts = [(hub, direction) for direction in ("in", "out") if len(apart) > 1]
        return cls(
            (*loopback[:1], *pairs),
            tuple(incast for incast in incasts if incast not in have_incasts),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the probes, pairs first: ``a -> b`` and ``b, all in``."""
        return (*map(_arrow, self.pairs), *(_all(*incast) for incast in self.incasts))


def _all(host: str, direction: str) -> str:
    return f"{host}, all {direction}"


def _arrow(flow: Flow) -> str:
    return " -> ".join(flow)


class LinkProber:
    """Probes links between agents.

    addresses: of each device in the data plane.
    sizes: bytes of messages to measure beside ``message_probe.SIZES``.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentClient],
        addresses: Mapping[str, str],
        sizes: Sequence[int],
        on_progress: Callable[[str], None],
        lengths: ProbeLengths = LENGTHS,
    ) -> None:
        self.agents = agents
        self._addresses = addresses
        self._sizes = tuple(sizes)
        self._on_progress = on_progress
        self._lengths = lengths
        self._iperf3: dict[str, bool] = {}
        self._authority = Authority()

    def measure(
        self,
        on_result: Callable[[Result], None],
        probes: Outstanding,
        allows: Callable[[str], bool] = lambda what: True,
    ) -> dict[str, str]:
        """Measure some links; return the reasons of failed probes, by name.

        A pair that fails is left out of the incasts; all else is measured, as far as there is time.
        """
        errors: dict[str, str] = {}
        steps: list[tuple[str, Callable[[], Result]]] = [
            *((_arrow(pair), functools.partial(self._pair, *pair)) for pair in probes.pairs),
            *((_all(*each), functools.partial(self._incast, *each, errors)) for each in probes.incasts),
        ]
        for what, probe in steps:
            if not allows(what):
                continue
            self._on_progress(what)
            try:
                on_result(probe())
            except RemoteError as error:
                errors[what] = str(error)
        return errors

    def _pair(self, source: str, target: str) -> LinkProfile:
        """Throughput and message-size curve of a directed link."""
        flow = (source, target)
        _, (throughput,) = self._measured([flow], self._lengths.throughput_s)
        return link_curves.link_profile(*flow, throughput, self._curve(source, target))

    def _curve(self, source: str, target: str) -> MessageTimes:
        """One-way times of messages, and what a computation at either end loses."""
        address, lengths = self._addresses[target], self._lengths
        serve = ServeMessages(address, self._authority.identity(framing.SERVER))
        with self.agents[target].start(serve).serving(Listening, READY_S) as ready:
            order = SendMessages(
                address, ready.port, self._authority.identity(source), self._sizes,
                limit_s=lengths.limit_s, enough_s=lengths.enough_s, turns=lengths.turns, turn_s=lengths.turn_s,
            )  # fmt: skip
            times: MessageTimes = self.agents[source].call(order, ANSWER_S)
            return times

    def _incast(self, host: str, direction: str, errors: Mapping[str, str]) -> IncastProfile:
        """All flows of a host at once, over the time in which all of them run."""
        peers = [peer for peer in self.agents if peer != host]
        flows = [(peer, host) if direction == "in" else (host, peer) for peer in peers]
        flows = [flow for flow in flows if _arrow(flow) not in errors]
        if len(flows) < 2:
            raise AgentError(f"{host}: fewer than two of the others can be reached, which is no incast")
        try:
            tool, received = self._measured(flows, self._lengths.throughput_s)
        except AgentError:  # one of several flows on a slow link may get nothing through in so short a time
            tool, received = self._measured(flows, LONGER * self._lengths.throughput_s)
        rates = {}
        for (source, target), throughput in zip(flows, received, strict=True):
            values = throughput.bytes_per_s
            edge = len(values) // 5
            peer = source if direction == "in" else target
            rates[peer] = statistics.median(values[edge : len(values) - edge])
        return IncastProfile(host, direction, tool, rates)

    def _measured(self, flows: Sequence[Flow], seconds: float) -> tuple[str, list[LinkThroughput]]:
        """The tool and the throughput of each flow; Python sends where iperf3 tells none."""
        tool = self._tool(flows)
        try:
            return tool, self._throughput(flows, tool, seconds)
        except AgentError as error:
            if tool == PYTHON:
                raise
            failure = error
        try:
            received = self._throughput(flows, PYTHON, seconds)
        except AgentError:  # the link itself fails
            raise failure from None
        self._iperf3.update((source, False) for source, _ in flows)
        self._on_progress(f"iperf3 tells no rate, so that Python's own sender measures it: {failure}")
        return PYTHON, received

    def _tool(self, flows: Iterable[Flow]) -> str:
        names = {name for flow in flows for name in flow}
        for name in sorted(names - self._iperf3.keys()):
            facts: Facts = self.agents[name].call(CollectFacts(frameworks=()), ANSWER_S)
            self._iperf3[name] = facts.iperf3 is not None
        return IPERF3 if all(self._iperf3[name] for name in names) else PYTHON

    def _throughput(self, flows: Sequence[Flow], tool: str, seconds: float) -> list[LinkThroughput]:
        """The throughput of each of the flows; they run at once."""
        with ExitStack() as stack:
            listening: dict[str, Iterator[tuple[int, str]]] = {}
            for target in {target: None for _, target in flows}:
                count = sum(flow[1] == target for flow in flows)
                serve = ServeThroughput(self._addresses[target], tool, count, seconds)
                ready = stack.enter_context(self.agents[target].start(serve).serving(ThroughputListening, READY_S))
                listening[target] = iter([(port, ready.token) for port in ready.ports])
            calls = []
            for source, target in flows:
                port, token = next(listening[target])
                order = SendThroughput(self._addresses[target], port, tool, seconds, token)
                calls.append(self.agents[source].start(order))
            return _results(calls)


def _results(calls: Sequence[Call]) -> list[LinkThroughput]:
    """Return the results of concurrent senders; raise the first failure once all have ended."""
    results: list[LinkThroughput] = []
    failures = []
    for call in calls:
        try:
            results.append(call.result(ANSWER_S))
        except RemoteError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return results
