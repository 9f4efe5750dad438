"""Intervals: the measured spread drawn again, and the errors of the model besides."""

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from planner.predict import cycle
from planner.predict.interval import RECORDED, ModelErrors, Spread, spread
from planner.predict.run import predict
from planner.predict.seen_errors import SeenErrors
from planner.profile.file import Profile
from profilers.records.steps import Contention
from tests.planner import profiles
from tests.planner.predictions import candidate, inputs_of

EXACT = ModelErrors(step=0.0, watts=0.0, kinds=dict.fromkeys(cycle.KINDS, 0.0))


def of(profile: Profile, mask: int, errors: ModelErrors = EXACT, strategy: str = "parameter-server") -> Spread:
    inputs = inputs_of(profile, strategy=Strategy.from_text(strategy))
    return spread(inputs, candidate(mask, int(mask).bit_length() - 1), 1000, errors=errors)


def test_without_spread_and_errors_of_the_model_nothing_is_uncertain() -> None:
    assert of(profiles.fleet(0.1, 0.2), 3).deviation(1.0, 1.0) == pytest.approx([0.0])


def test_a_device_alone_is_as_uncertain_as_the_mean_of_its_steps() -> None:
    made = profiles.fleet(0.1, spread=0.3)
    error = float(inputs_of(made).errors.gradient[0])
    assert error > 0.01
    assert of(made, 1).deviation(1.0, 0.0) == pytest.approx([error], rel=0.02)


def test_the_error_of_a_kind_of_exchange_counts_for_clusters_of_it_alone() -> None:
    errors = EXACT._replace(kinds={**EXACT.kinds, cycle.BARRIER: 0.2})
    assert of(profiles.fleet(0.1, 0.2), 3, errors, "allreduce").deviation(1.0, 0.0) == pytest.approx([0.2])
    assert of(profiles.fleet(0.1, 0.2), 3, errors).deviation(1.0, 0.0) == pytest.approx([0.0])
    assert of(profiles.fleet(0.1, 0.2), 1, errors, "allreduce").deviation(1.0, 0.0) == pytest.approx([0.0])


def test_what_two_clusters_rest_on_together_does_not_keep_them_apart() -> None:
    made = profiles.fleet(0.1, 50.0, spread=0.5)  # with or without the slow one: the fast one's error is common
    alone, both = of(made, 1), spread(inputs_of(made), candidate(3, 0), 1000, errors=EXACT)
    assert both.apart(alone, 1.0, 0.0)[0] < 0.2 * alone.deviation(1.0, 0.0)[0]


def test_the_spread_of_times_reaches_the_power_of_members_that_wait() -> None:
    made = profiles.fleet(0.1, 0.102, spread=0.5)
    assert of(made, 1).deviation(0.0, 1.0) == pytest.approx([0.0], abs=1e-9)  # busy all the time
    assert of(made, 3).deviation(0.0, 1.0)[0] > 0.001


def test_errors_of_two_kinds_of_exchange_keep_two_clusters_apart() -> None:
    errors = EXACT._replace(kinds=dict.fromkeys(cycle.KINDS, 0.1))
    made = profiles.fleet(0.1, 0.2)
    server, ring = (of(made, 3, errors, strategy) for strategy in ("parameter-server", "allreduce"))
    assert server.apart(ring, 1.0, 0.0)[0] == pytest.approx(np.hypot(0.1, 0.1))
    assert ring.apart(ring, 1.0, 0.0)[0] == pytest.approx(0.0)


def test_a_whole_link_is_as_uncertain_as_its_connections() -> None:
    inputs = inputs_of(profiles.fleet(0.001, 0.001), strategy=Strategy.from_text("allreduce"))
    unsure = inputs._replace(errors=inputs.errors._replace(link=np.full((2, 2), 0.1)))
    drawn = spread(unsure, candidate(3, 0), 1000, errors=EXACT)  # nothing but links takes long
    assert drawn.deviation(1.0, 0.0)[0] == pytest.approx(0.1 / np.sqrt(2), rel=0.3)
    assert drawn.time.mean() == pytest.approx(np.log(predict(inputs, candidate(3, 0), 1000).time_s[0]), abs=0.05)


def test_a_step_of_what_arrives_in_a_second_takes_a_second_whatever_the_rate() -> None:
    stream = StreamSpec.from_text("replay:40")
    inputs = inputs_of(profiles.fleet(0.1), strategy=Strategy.from_text("scadles"), stream=stream)
    unsure = inputs._replace(errors=inputs.errors._replace(stream=np.array([0.1])))
    assert spread(unsure, candidate(1, 0), 1000, errors=EXACT).deviation(1.0, 0.0)[0] == pytest.approx(0.0)


def test_errors_that_were_seen_widen_those_of_their_kind() -> None:
    seen = RECORDED.widened(SeenErrors(1, {cycle.GOSSIP: (0.3, -0.4), cycle.BARRIER: (0.001,), cycle.ALONE: (0.5,)}))
    assert seen.kinds[cycle.GOSSIP] == pytest.approx(np.sqrt((0.3**2 + 0.4**2) / 2))
    assert seen.step == 0.5
    assert seen.kinds[cycle.BARRIER] == RECORDED.kinds[cycle.BARRIER]


def test_an_error_of_contention_counts_where_others_on_the_kernel_compute() -> None:
    unsure = Contention(("a", "b"), 2.0, 0.3)
    steps = {name: profiles.step(0.1, contention=unsure) for name in "ab"}
    made = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    assert of(made, 1).deviation(1.0, 0.0) == pytest.approx([0.0])
    assert of(made, 3).deviation(1.0, 0.0)[0] > 0.05
