import math

import pytest

from planner.audit.scoring.cases import cases_of
from planner.audit.scoring.comparison import QUANTITIES, Compared, Comparison, compare, without_drift
from planner.audit.scoring.measured import MeasuredRun
from planner.profile.file import Profile
from planner.provenance import Provenance
from tests.planner import audits, profiles

#: Of devices that compute on it, so that a reference loop tells their drift.
PROCESSOR = {"accelerator": "cpu"}
EMULATED = Provenance("sensor", ("module",), True)


def judged(fleet: Profile, runs: list[MeasuredRun]) -> dict[tuple[str, str], Comparison]:
    cases = cases_of(audits.audit(fleet, runs))
    found = compare(cases, [without_drift(case) for case in cases])
    return {("".join(each.config.workers), each.config.server): each for each in found}


def test_what_was_predicted_exactly_has_no_errors() -> None:
    fleet = audits.fleet(0.1, 0.2)
    for each in judged(fleet, audits.as_predicted(fleet)).values():
        for quantity in QUANTITIES:
            beside = each.figures[quantity]
            assert beside.error == pytest.approx(0.0, abs=1e-6)  # extrapolated without the hand-out of the weights
            assert beside.steady_error == pytest.approx(0.0, abs=1e-6)
        assert all(part.power_w.error == pytest.approx(0.0) for part in each.workers.values())


def test_the_figures_of_a_device_alone_by_hand() -> None:
    found = judged(audits.fleet(0.09), [audits.run({"a": 8.0}, watts=40.0)])["a", "a"]
    assert found.figures["step"] == pytest.approx((0.125, 0.1, -0.2, -0.2))
    assert found.figures["time"] == pytest.approx((12_500, 10_000, -0.2, -0.2))
    assert found.figures["power"] == pytest.approx((40, 50, 0.25, 0.25))
    assert found.figures["energy"].error == pytest.approx(0.0)
    assert found.figures["edp"].error == pytest.approx(-0.2)
    assert (found.alone, found.bottleneck, found.off) == (True, "compute", "a")
    assert found.worst_error == pytest.approx(-0.2)


def test_exchanges_stay_as_they_were_probed_whatever_a_loop_took_meanwhile() -> None:
    speeds = {"send_speed": audits.loop(1.2), "receive_speed": audits.loop(1.2)}
    fleet = audits.fleet(0.1, 0.1, accelerator="cpu")._replace(
        links=profiles.links("ab", send_cpu_s=4e-8, receive_cpu_s=4e-8)
    )
    probed = fleet._replace(links=tuple(link._replace(**speeds) for link in fleet.links))
    pair = next(run for run in audits.as_predicted(fleet) if len(run.workers) == 2)
    now = {name: worker._replace(speed=audits.loop(1.0)) for name, worker in pair.workers.items()}
    beside, unknown = (judged(each, [pair._replace(workers=now)])["ab", pair.server] for each in (probed, fleet))
    assert beside.figures["step"] == unknown.figures["step"]


def test_a_loop_tells_nothing_of_the_drift_of_a_gpu() -> None:
    fleet = audits.fleet(0.1)
    (run,) = audits.as_predicted(fleet)
    slow = run._replace(workers={"a": run.workers["a"]._replace(speed=audits.loop(2.0))})
    assert judged(fleet, [slow])["a", "a"].workers["a"].drift == 1.0


def drifted(run: MeasuredRun, drift: float) -> MeasuredRun:
    """With that drift of the worker on the server's host."""
    host = run.workers[run.server]._replace(speed=audits.loop(drift))
    return run._replace(workers={**run.workers, run.server: host})


def test_repetitions_are_summed_up_by_their_medians_and_the_worst_is_kept() -> None:
    fleet = audits.fleet(0.09)
    runs = [audits.run({"a": rate}, repetition=index) for index, rate in enumerate((10.0, 9.0, 5.0))]
    found = judged(fleet, runs)["a", "a"]
    assert found.repetitions == 3
    assert found.figures["step"].measured == pytest.approx(1 / 9)
    assert found.figures["time"].error == pytest.approx(0.9 - 1)
    assert found.worst_error == pytest.approx(0.5 - 1)


def test_the_worker_that_is_off_is_named() -> None:
    fleet = audits.fleet(0.1, 0.2, **PROCESSOR)
    run = next(run for run in audits.as_predicted(fleet) if len(run.workers) == 2)
    slower = run.workers["b"]._replace(steps_per_s=0.7 * run.workers["b"].steps_per_s)
    found = judged(fleet, [run._replace(workers={**run.workers, "b": slower})])["ab", "a"]
    assert found.off == "b"
    assert found.workers["b"].cycle_s.error == pytest.approx(-0.3)


def test_what_is_unknown_has_no_error() -> None:
    run = audits.run({"a": 5.0, "b": 0.0}, watts=None)
    found = judged(audits.fleet(0.1, 0.2), [run])["ab", "a"]
    assert found.workers["b"].cycle_s.measured is None
    assert found.workers["b"].cycle_s.error is None
    assert found.figures["power"].error is None
    assert found.figures["power"].predicted is not None
    assert found.off == "b" or math.isfinite(found.worst_error)
    unknown = profiles.profile({"a": profiles.device(idle_w=None, max_w=None)})
    assert judged(unknown, [audits.run({"a": 5.0})])["a", "a"].figures["edp"] == Compared(
        pytest.approx(50 * 20_000**2), None, None, None
    )


def test_emulated_watts_are_told() -> None:
    run = audits.run({"a": 5.0})
    emulated = run._replace(workers={"a": run.workers["a"]._replace(provenance=EMULATED)})
    found = judged(audits.fleet(0.1), [emulated])["a", "a"]
    assert found.emulated
    assert found.workers["a"].provenance == EMULATED
