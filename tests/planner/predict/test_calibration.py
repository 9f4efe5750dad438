"""The errors that audits showed widen intervals, and cancel where two clusters share them."""

import math
from pathlib import Path

import numpy as np
import pytest

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from planner.errors import RecordError
from planner.paths import AUDIT
from planner.plan.recommend import UNCALIBRATED, recommend
from planner.plan.request import RecommendRequest
from planner.predict import calibration
from planner.predict.calibration import Calibration, ExchangeError, exchange_kind
from planner.predict.clusters import enumerate_clusters
from planner.predict.costs import OWN_ENGINE, costs_of
from planner.predict.predict import predict
from planner.predict.seen_errors import add_seen, seen_errors
from planner.profile.file import Profile
from tests.planner import profiles

KNOWN = Calibration(
    1, 0.03, 0.04, (ExchangeError("server, asynchronous", 0.2, 9), ExchangeError("ring, synchronous", 0.1, 5)),
    0.05, 8, 40, False, "2026-11-26",
)  # fmt: skip


def fleet(slowdown: float = 1.0) -> Profile:
    step = profiles.step(0.09, spread=0.0, slowdown=slowdown)
    return profiles.profile({name: profiles.device(step) for name in "ab"})


FLEET = fleet()


def variance(known: Calibration) -> dict[int, float]:
    """Of the time, by number of members, with the server on the first one."""
    costs = known.applied_to(costs_of(FLEET))
    candidates = enumerate_clusters(costs.names, costs.pairs.reachable)
    found = predict(costs, candidates, 1000).time_errors.variance()
    return {
        int(mask).bit_count(): float(found[i]) for i, mask in enumerate(candidates.masks) if not candidates.hosts[i]
    }


def test_an_error_of_a_run_counts_whole_for_every_cluster() -> None:
    assert variance(KNOWN._replace(step=0.0, exchanges=())) == pytest.approx({1: 0.04**2, 2: 0.04**2})


def test_errors_of_steps_average_out_among_members() -> None:
    found = variance(KNOWN._replace(run=0.0, exchanges=()))
    assert found[1] == pytest.approx((0.03 * 0.9) ** 2)  # a tenth of a step of 0.1 s alone is the update
    assert found[2] < found[1]


def test_an_error_of_exchanges_counts_for_the_share_that_they_take() -> None:
    found = variance(KNOWN._replace(run=0.0, step=0.0))
    assert found[1] == pytest.approx(0.0, abs=1e-12)
    assert 0.0 < math.sqrt(found[2]) < 0.2


def test_a_kind_that_was_never_audited_has_the_largest_error() -> None:
    assert KNOWN.of_exchange("ring, synchronous") == 0.1
    assert KNOWN.of_exchange("ring, rounds") == 0.2
    assert KNOWN._replace(exchanges=()).of_exchange("ring, rounds") == 0.0


@pytest.mark.parametrize(
    ("strategy", "engine", "kind"),
    [
        ("parameter-server", OWN_ENGINE, "server, asynchronous"),
        ("parameter-server:sync=synchronous", OWN_ENGINE, "server, synchronous"),
        ("allreduce", OWN_ENGINE, "ring, synchronous"),
        ("local-sgd", OWN_ENGINE, "ring, rounds"),
        ("allreduce", Engine.from_text("torch"), "torch.distributed"),
    ],
)
def test_kinds_of_exchanges(strategy: str, engine: Engine, kind: str) -> None:
    assert exchange_kind(Strategy.from_text(strategy), engine) == kind


def test_intervals_are_wider_and_what_two_clusters_share_does_not_tie_them() -> None:
    without = recommend(FLEET, RecommendRequest({"time": 1.0}))
    with_run = recommend(FLEET, RecommendRequest({"time": 1.0}, calibration=KNOWN._replace(step=0.0, exchanges=())))
    assert with_run.row(1).time_uncertainty == pytest.approx(math.expm1(1.96 * 0.04), rel=1e-3)
    assert (without.row(1).time_uncertainty or 0.0) == pytest.approx(0.0, abs=1e-12)
    assert np.array_equal(with_run.ranking.tied, without.ranking.tied)


def test_a_kind_counts_at_least_with_the_errors_that_an_audit_saw(tmp_path: Path) -> None:
    shipped = calibration.newest(tmp_path)
    add_seen(tmp_path, {"ring, synchronous": (0.3, -0.4), "alone": (0.0,)})
    seen = calibration.newest(tmp_path)
    assert seen.of_exchange("ring, synchronous") == pytest.approx(math.sqrt(0.125))
    assert seen.of_exchange("server, asynchronous") == shipped.of_exchange("server, asynchronous")


def test_errors_that_are_seen_again_replace_those_of_their_kind(tmp_path: Path) -> None:
    add_seen(tmp_path, {"one": (0.3,), "two": (0.1,)})
    add_seen(tmp_path, {"one": (0.2,)})
    assert seen_errors(tmp_path).errors == {"one": (0.2,), "two": (0.1,)}
    (tmp_path / AUDIT).write_text("{")
    with pytest.raises(RecordError, match=r"audit\.json.*make it again with `planner audit`"):
        seen_errors(tmp_path)


def test_audits_of_emulated_fleets_tell_nothing_of_others() -> None:
    request = RecommendRequest({"time": 1.0}, calibration=KNOWN._replace(emulated=True))
    told = recommend(FLEET, request)
    assert told.row(1).time_uncertainty == recommend(FLEET, RecommendRequest({"time": 1.0})).row(1).time_uncertainty
    assert UNCALIBRATED in told.notes
    slowed_down = fleet(slowdown=2.0)
    widened = recommend(slowed_down, request)
    assert (widened.row(1).time_uncertainty or 0.0) > 0.05
    assert UNCALIBRATED not in widened.notes


def test_a_cluster_that_samples_hold_up_takes_as_long_as_they_do() -> None:
    known = KNOWN._replace(step=0.0, exchanges=())
    slow, fast = (
        recommend(
            FLEET, RecommendRequest({"time": 1.0}, calibration=known, stream=StreamSpec.from_text(f"replay:{rate}"))
        )
        for rate in (1, 1e6)
    )
    assert slow.row(1).time_uncertainty is None
    assert fast.row(1).time_uncertainty == pytest.approx(math.expm1(1.96 * 0.04), rel=1e-3)


def test_watts_of_a_fleet_file_have_no_known_error() -> None:
    costs = costs_of(FLEET)
    read = costs._replace(power_sources=tuple(each._replace(kind="sensor") for each in costs.power_sources))
    written = costs._replace(power_sources=tuple(each._replace(kind="nameplate") for each in costs.power_sources))
    assert KNOWN.applied_to(read).devices.errors.busy_w == pytest.approx(0.05)
    assert KNOWN.applied_to(written).devices.errors.busy_w == pytest.approx(0.0)
