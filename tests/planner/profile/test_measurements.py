"""Which device the links are measured with."""

from planner.profile.measurements import hub_of
from tests.planner import profiles

THREE = profiles.three()


def test_the_fastest_device_is_the_hub() -> None:
    assert hub_of(THREE._replace(links=()), ["a", "b", "c"]) == "a"
    assert hub_of(THREE._replace(links=()), ["b", "c"]) == "b"


def test_one_whose_links_were_measured_stays_the_hub() -> None:
    links = (profiles.link("c", "b"), profiles.link("b", "c"), profiles.link("c", "a"), profiles.link("a", "c"))
    assert hub_of(THREE._replace(links=links), ["a", "b", "c"]) == "c"
