import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import PlanError
from planner.predict.clusters import enumerate_clusters

NAMES = ("a", "b", "c")
ALL = np.ones((3, 3), bool)


def pairs(**options: object) -> set[tuple[str, str]]:
    """Candidates as ("members", "host")."""
    found = enumerate_clusters(NAMES, options.pop("reachable", ALL), **options)
    members = found.members(3)
    return {("".join(np.array(NAMES)[row]), NAMES[host]) for row, host in zip(members, found.hosts, strict=True)}


def test_every_subset_with_every_member_as_host() -> None:
    assert pairs() == {
        ("a", "a"), ("b", "b"), ("c", "c"), ("ab", "a"), ("ab", "b"), ("ac", "a"), ("ac", "c"),
        ("bc", "b"), ("bc", "c"), ("abc", "a"), ("abc", "b"), ("abc", "c"),
    }  # fmt: skip


@given(st.integers(1, 10))
def test_n_devices_form_n_times_two_to_the_n_minus_one_clusters(n: int) -> None:
    names = [f"d{i}" for i in range(n)]
    found = enumerate_clusters(names, np.ones((n, n), bool))
    assert found.masks.size == n * 2 ** (n - 1)
    assert len(set(zip(found.masks.tolist(), found.hosts.tolist(), strict=True))) == found.masks.size


def test_filters() -> None:
    assert pairs(include=["a", "b"]) == {("ab", "a"), ("ab", "b"), ("abc", "a"), ("abc", "b"), ("abc", "c")}
    assert pairs(exclude=["b", "c"]) == {("a", "a")}
    assert pairs(server="b", exclude=["c"]) == {("b", "b"), ("ab", "b")}


def test_a_pair_without_a_link_forms_no_cluster_around_either() -> None:
    reachable = ALL.copy()
    reachable[0, 1] = reachable[1, 0] = False
    found = pairs(reachable=reachable)
    assert ("ab", "a") not in found
    assert ("abc", "b") not in found
    assert {("abc", "c"), ("a", "a"), ("ac", "a")} <= found


def test_a_device_without_loopback_only_works_alone_or_for_others() -> None:
    reachable = ALL.copy()
    reachable[0, 0] = False
    hosted_on_a = {members for members, host in pairs(reachable=reachable) if host == "a"}
    assert hosted_on_a == {"a"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": ["x"]}, "--include x: no such device; devices: a, b, c"),
        ({"exclude": ["x"]}, "--exclude x: no such device"),
        ({"server": "x"}, "--server x: no such device"),
        ({"server": "a", "exclude": ["a"]}, "no cluster satisfies"),
        ({"include": ["a"], "exclude": ["a"]}, "no cluster satisfies"),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        enumerate_clusters(NAMES, ALL, **options)


def test_too_many_devices_are_refused_with_the_remedy() -> None:
    names = [f"d{i}" for i in range(15)]
    with pytest.raises(PlanError, match="15 devices are too many .*--exclude"):
        enumerate_clusters(names, np.ones((15, 15), bool))
    assert enumerate_clusters(names, np.ones((15, 15), bool), exclude=["d3"]).masks.size == 14 * 2**13
