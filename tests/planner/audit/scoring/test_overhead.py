import pytest

from planner.audit.scoring.overhead import overheads
from tests.planner import profiles


def test_what_is_measured_for_all_models_is_divided_among_them() -> None:
    steps = (profiles.step(0.09, model="small"), profiles.step(0.19, model="large"))
    device = profiles.device()._replace(steps=steps, took_s={"idle": 4.0, "small": 30.0, "large": 50.0})
    large, small = overheads(profiles.profile({"a": device}), 1000)
    assert (small.model, small.workers) == ("small", 1)
    assert small.profiling_s == pytest.approx(30 + (4 + 5) / 2)
    assert large.profiling_s == pytest.approx(50 + (4 + 5) / 2)
    assert small.share == pytest.approx(34.5 / 100)
    assert large.share == pytest.approx(54.5 / 200)


def test_devices_that_are_one_machine_are_timed_in_turn() -> None:
    local, far = ({"host": host, "port": None} for host in (None, "10.0.0.7"))
    devices = {name: profiles.device(**at) for name, at in {"a": local, "b": far, "c": local}.items()}
    took = {"a": 30.0, "b": 50.0, "c": 40.0}
    parts = {name: each._replace(took_s={"idle": 2.0, "net": took[name]}) for name, each in devices.items()}
    (found,) = overheads(profiles.profile(parts), 1000)
    assert found.profiling_s == pytest.approx((30 + 40) + (2 + 2) + 5)
