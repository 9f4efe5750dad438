"""The rate of the links below which a device alone is better."""

import pytest

from backends.strategies.strategy import Strategy
from planner.plan.break_even import break_even, rate_note
from tests.planner import profiles
from tests.planner.requests import asked

TIME = {"time": 1.0}


def fleet(gradient_s=0.1, names="ab"):
    return profiles.profile({name: profiles.device(profiles.step(gradient_s)) for name in names})


def request(strategy="allreduce", **changes):
    return asked(TIME, steps=10_000, strategy=Strategy.from_text(strategy), **changes)


def test_longer_rounds_pay_on_slower_links():
    dense, rounds = (break_even(fleet(), request(text)) for text in ("allreduce", "diloco:local=speed:every=50"))
    assert rounds < dense / 10


def test_where_no_cluster_ever_pays_the_note_says_so():
    profile = profiles.fleet(0.001, 2.0)
    assert rate_note(profile, request("baseline")) == [
        "with baseline, a device alone is better at the measured rates of the links and below"
    ]


@pytest.mark.parametrize("changes", [{"rates": {"a": 1e6}}, {"include": ("a", "b")}])
def test_there_is_no_note_where_rates_are_asked_about_or_nobody_is_alone(changes):
    assert rate_note(fleet(), request(**changes)) == []


def test_a_device_that_is_left_out_is_asked_about_no_rate():
    profile = fleet(names="abc")
    failed = profile.devices["c"]._replace(steps=())
    (note,) = rate_note(profile._replace(devices={**profile.devices, "c": failed}), request())
    assert note == rate_note(fleet(), request())[0]
