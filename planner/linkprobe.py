"""Measuring the links of a fleet: pair after pair, then all peers at once into and out of each host."""

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from backends import wire
from backends.probe import IPERF3, PYTHON
from planner.agents import Agent, Call, Event
from planner.certificates import Authority
from planner.errors import AgentError, DeviceLostError, RemoteError
from profilers.records import CurvePoint, FanProfile, LinkProfile, Samples

#: Seconds of one throughput probe; the network is not what limits the one from a device to itself.
SECONDS = 1.0
LOOPBACK_SECONDS = 0.3
#: Messages of each size; from a device to itself they are short, and a quota or a cold cache shows in many only.
REPEATS = 5
LOCAL_REPEATS = 40
LIMIT_S = 60.0
READY_S = 20.0

Flow = tuple[str, str]
Result = LinkProfile | FanProfile


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
        return (*map(_arrow, self.pairs), *(f"{host}, all {direction}" for host, direction in self.fans))


def measure_links(
    agents: Mapping[str, Agent],
    addresses: Mapping[str, str],
    sizes: Sequence[int],
    on_progress: Callable[[str, float | None], None],
    on_result: Callable[[Result], None],
    only: Outstanding | None = None,
) -> dict[str, str]:
    """Measure the links between devices; results are handed over as they come. Returns what failed, and why.

    addresses: of each device in the data plane; sizes: bytes of messages worth measuring beside
    ``backends.probe.SIZES``. One probe at a time, for a medium may be shared. A pair that fails is lost
    alone; a fan goes without it. What failed is called as in ``Outstanding.names``.
    """
    wanted = Outstanding.among(agents) if only is None else only
    probe = _Probe(agents, addresses, sizes)
    errors: dict[str, str] = {}
    names = wanted.names

    def attempt(done: int, measure: Callable[[], Result]) -> None:
        what = names[done]
        on_progress(what, done / len(names))
        try:
            result = measure()
        except RemoteError as error:
            errors[what] = str(error)
        else:
            on_result(result)

    for done, pair in enumerate(wanted.pairs):
        attempt(done, functools.partial(probe.pair, *pair))
    for done, (host, direction) in enumerate(wanted.fans, len(wanted.pairs)):
        flows = [flow for flow in _fan(host, direction, agents) if _arrow(flow) not in errors]
        attempt(done, functools.partial(probe.fan, host, direction, flows))
    return errors


def _arrow(flow: Flow) -> str:
    return " -> ".join(flow)


def _fan(host: str, direction: str, names: Iterable[str]) -> list[Flow]:
    return [(peer, host) if direction == "in" else (host, peer) for peer in names if peer != host]


class _Probe:
    """The probes of one fleet, between agents that are there."""

    def __init__(
        self, agents: Mapping[str, Agent], addresses: Mapping[str, str], sizes: Sequence[int]
    ) -> None:
        self._agents = agents
        self._addresses = addresses
        self._sizes = list(sizes)
        self._iperf3: dict[str, bool] = {}
        self._authority = Authority()

    def pair(self, source: str, target: str) -> LinkProfile:
        """One directed link: throughput, then the curve of message sizes and what they take. Raises RemoteError."""
        alone = source == target
        tool = PYTHON if alone else self._tool([(source, target)])
        (rates,) = self._throughput([(source, target)], tool, LOOPBACK_SECONDS if alone else SECONDS)
        curve = self._curve(source, target)
        largest = curve["points"][-1]
        ramp = len(rates) // 5
        return LinkProfile(
            source,
            target,
            tool,
            Samples("bytes/s", tuple(rates[ramp:]), tuple(rates[:ramp])),
            Samples("s", tuple(curve["latency_s"])),
            tuple(_point(point) for point in curve["points"]),
            largest["send_cpu_s"] / largest["message_bytes"],
            largest["receive_cpu_s"] / largest["message_bytes"],
            send_taken_s=curve.get("send_taken_s"),
            receive_taken_s=curve.get("receive_taken_s"),
        )

    def fan(self, host: str, direction: str, flows: Sequence[Flow]) -> FanProfile:
        """All flows of a host at once, counted while all of them run. Raises RemoteError."""
        if len(flows) < 2:
            raise AgentError(f"{host}: fewer than two of the others can be reached, which is no fan")
        tool = self._tool(flows)
        rates = {}
        for (source, target), values in zip(flows, self._throughput(flows, tool, SECONDS), strict=True):
            edge = len(values) // 5
            peer = source if direction == "in" else target
            rates[peer] = statistics.median(values[edge : len(values) - edge])
        return FanProfile(host, direction, tool, rates)

    def _tool(self, flows: Iterable[Flow]) -> str:
        return IPERF3 if all(self._has_iperf3(name) for flow in flows for name in flow) else PYTHON

    def _has_iperf3(self, name: str) -> bool:
        if name not in self._iperf3:
            facts = self._agents[name].call("facts", timeout_s=LIMIT_S, frameworks=[])
            self._iperf3[name] = facts["iperf3"] is not None
        return self._iperf3[name]

    def _throughput(self, flows: Sequence[Flow], tool: str, seconds: float) -> list[list[float]]:
        """Bytes/s received in each interval, of flows that run at once."""
        with ExitStack() as stack:
            doors: dict[str, Iterator[tuple[int, str]]] = {}
            for target in {target: None for _, target in flows}:
                count = sum(flow[1] == target for flow in flows)
                serving = _serving(
                    self._agents[target],
                    "throughput_serve",
                    address=self._addresses[target],
                    tool=tool,
                    count=count,
                    seconds=seconds,
                )
                ready = stack.enter_context(serving)
                doors[target] = iter([(port, ready["token"]) for port in ready["ports"]])
            calls = []
            for source, target in flows:
                port, token = next(doors[target])
                calls.append(self._send(source, target, port, token, tool, seconds))
            return _results(calls)

    def _send(self, source: str, target: str, port: int, token: str, tool: str, seconds: float) -> Call:
        return self._agents[source].start(
            "throughput_send",
            address=self._addresses[target],
            port=port,
            tool=tool,
            seconds=seconds,
            token=token,
        )

    def _curve(self, source: str, target: str) -> dict[str, Any]:
        address = self._addresses[target]
        identity = list(self._authority.identity(wire.SERVER))
        with _serving(self._agents[target], "curve_serve", address=address, identity=identity) as ready:
            curve: dict[str, Any] = self._agents[source].call(
                "curve_send",
                timeout_s=LIMIT_S,
                address=address,
                port=ready["port"],
                identity=list(self._authority.identity(source)),
                sizes=self._sizes,
                repeats=LOCAL_REPEATS if source == target else REPEATS,
                beside=source != target,
            )
        return curve


@contextmanager
def _serving(agent: Agent, verb: str, **args: Any) -> Iterator[Event]:
    """The serving end of a probe, from the moment it listens; asked to stop afterwards."""
    call = agent.start(verb, **args)
    try:
        ready = call.event(READY_S)
        if ready is None:
            call.result(READY_S)
            raise AgentError(f"{agent.name}: {verb} ended before it listened")
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


def _point(point: Mapping[str, Any]) -> CurvePoint:
    seconds = Samples("s", tuple(point["seconds"]), tuple(point["warmup"]))
    return CurvePoint(point["message_bytes"], seconds, point["send_cpu_s"], point["receive_cpu_s"])
