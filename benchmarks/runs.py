"""Training runs and link measurements between hosts of a star, by the product's own code."""

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from endpoint import Endpoint
from namespaces import Star

from backends.network import framing
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.fleet.device import Device, Interpreter
from planner.profile.link_probe import LinkProber, Outstanding
from planner.remote.local import LocalRemote
from profilers.records.links import IncastProfile, LinkProfile


class Measured(NamedTuple):
    """One run: when each worker's steps ended, and the server's account."""

    ends_s: dict[str, list[float]]
    account: dict[str, Any]

    def steps_per_s(self) -> dict[str, float]:
        """Of each worker, while all of them worked and after each had made two steps."""
        start = max(ends[1] for ends in self.ends_s.values())
        end = min(ends[-1] for ends in self.ends_s.values())
        return {name: _rate(ends, start, end) for name, ends in self.ends_s.items()}


def train(star: Star, host: str, gradients_s: Mapping[str, float], parameters: int, steps: int) -> Measured:
    """A run with a server on ``host`` and workers that take ``gradients_s`` for a gradient."""
    authority = Authority()
    address = star.address(host)
    with ExitStack() as stack:
        orders = {"role": "serve", "address": address, "identity": authority.identity(framing.SERVER), "steps": steps}
        server = stack.enter_context(Endpoint(star.prefix(host), orders))
        orders = {"role": "work", "address": address, "port": server.answer()["port"], "parameters": parameters}
        workers = {}
        for name, gradient_s in gradients_s.items():
            own = {"identity": authority.identity(name), "gradient_s": gradient_s, "spin": name == host}
            workers[name] = stack.enter_context(Endpoint(star.prefix(name), {**orders, **own}))
        return Measured({name: each.answer()["ends_s"] for name, each in workers.items()}, server.answer())


@contextmanager
def agents(star: Star, names: Sequence[str]) -> Iterator[dict[str, AgentClient]]:
    """Agents on hosts of the star."""
    with ExitStack() as stack:
        found = {}
        for name in names:
            remote = LocalRemote(name)
            stack.callback(remote.close)
            found[name] = AgentClient.launch(
                Device(name=name, interpreter=Interpreter(sys.executable, prefix=star.prefix(name))), remote
            )
        yield found


def measure(
    star: Star, reached: Mapping[str, AgentClient], sizes: Sequence[int], only: Outstanding | None = None
) -> list[LinkProfile | IncastProfile]:
    """The links between agents. Raises RuntimeError where one fails."""
    results: list[LinkProfile | IncastProfile] = []
    addresses = {name: star.address(name) for name in reached}
    probes = _everything(list(reached)) if only is None else only
    errors = LinkProber(reached, addresses, sizes, lambda what: None).measure(results.append, probes)
    if errors:
        raise RuntimeError(f"links could not be measured: {errors}")
    return results


def _everything(names: Sequence[str]) -> Outstanding:
    """All pairs, those of a device with itself included, and all incasts."""
    incasts = tuple((host, direction) for host in names for direction in ("in", "out") if len(names) > 2)
    return Outstanding(tuple(itertools.product(names, names)), incasts)


def _rate(ends: Sequence[float], start: float, end: float) -> float:
    """Steps/s by whole cycles, from the first to the last step that ended within the window."""
    inside = [each for each in ends if start <= each <= end]
    return (len(inside) - 1) / (inside[-1] - inside[0])
