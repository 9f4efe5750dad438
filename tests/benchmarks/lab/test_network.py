"""A lab takes a network to which this machine has no route yet."""

import ipaddress
import json

import pytest

from benchmarks.lab import network

NETWORKS = [ipaddress.IPv4Network(f"10.{third}.0.0/24") for third in (1, 2)]


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Destinations of this machine's routes, to be filled in, as ip(8) prints them."""
    routes: list[str] = []
    monkeypatch.setattr(network, "run_program", lambda *_: json.dumps([{"dst": route} for route in routes]))
    return routes


def test_the_first_network_without_a_route_is_free(routed: list[str]) -> None:
    assert network.free_network(NETWORKS) == NETWORKS[0]
    routed += ["default", "10.1.0.7"]
    assert network.free_network(NETWORKS) == NETWORKS[1]
