"""Numbers of records have the range that their field's name says."""

import math

import pytest

from backends.protocol.ranges import range_of


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("build_s", (0.0, 1e9), (-1.0, math.inf, math.nan, 1e300)),
        ("cpu_s_per_step", (0.0, 0.5), (-1e-9,)),
        ("cycle_s", (1e-9,), (0.0, -1.0)),
        ("batch", (1, 512), (0, -1, 10**400)),
        ("port", (0, 65535), (65536, -1)),
        ("momentum", (0.0, 0.9, 1.0), (1.1, math.nan)),
        ("loss", (-5.0, math.inf, math.nan), ()),
        ("alpha_time", (-1e20, 0.0), (math.inf, math.nan)),
        ("seed", (-3, 2**62), (10**30,)),
    ],
)
def test_a_number_is_in_the_range_of_its_name(field: str, good: tuple[float, ...], bad: tuple[float, ...]) -> None:
    allowed = range_of("Any", field, all(isinstance(each, int) for each in good))
    assert all(map(allowed.holds, good))
    assert not any(map(allowed.holds, bad))


def test_a_record_may_mean_something_else_by_a_name() -> None:
    assert range_of("PeerMessage", "batch", True).holds(0)
    assert not range_of("StepProfile", "batch", True).holds(0)


@pytest.mark.parametrize(
    ("field", "text"),
    [("build_s", " from 0 on"), ("cycle_s", " above 0"), ("momentum", " from 0 on, at most 1"), ("alpha_time", "")],
)
def test_a_range_is_told_in_words(field: str, text: str) -> None:
    assert range_of("Any", field, False).text == (text or " that is finite")
