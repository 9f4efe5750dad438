"""Links that were not measured, from those of both ends with a hub."""

from planner.profile.estimated_links import ESTIMATED, known_links
from profilers.records.links import LinkProfile
from tests.planner import profiles


def link(source: str, target: str, rate: float, latency_s: float, **changes: float) -> LinkProfile:
    found = profiles.link(source, target, rate, latency_s, curve=profiles.curve({1000: 1000 / rate}))
    return found._replace(**changes)


MEASURED = {
    ("a", "h"): link("a", "h", 4e6, 0.001, send_cpu_s=1e-9, receive_cpu_s=2e-9),
    ("h", "b"): link("h", "b", 1e6, 0.003, send_cpu_s=3e-9, receive_cpu_s=4e-9),
    ("h", "a"): link("h", "a", 4e6, 0.001),
}


def test_an_estimate_is_as_slow_as_the_slower_way_and_costs_its_ends_what_these_cost_them() -> None:
    found = known_links(MEASURED)["a", "b"]
    assert (found.source, found.target, found.tool) == ("a", "b", ESTIMATED)
    assert found.bytes_per_s.values[0] == 1e6 and found.latency_s.values[0] == 0.003
    assert (found.send_cpu_s, found.receive_cpu_s) == (1e-9, 4e-9)
    assert [point.seconds.values[0] for point in found.curve] == [0.001]


def test_measured_links_stay_and_what_no_hub_connects_is_unknown() -> None:
    found = known_links(MEASURED)
    assert all(found[ends] == each for ends, each in MEASURED.items())
    assert set(found) == {*MEASURED, ("a", "b")}  # b sends to nobody
