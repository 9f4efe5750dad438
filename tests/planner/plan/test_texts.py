"""A job is planned with its own optimizer, without a server, and for its own number of samples."""

import pytest

from planner.plan.texts import optimizer_of_job, without_server
from tests.planner import profiles


def test_the_optimizer_of_a_job_is_used_unless_another_is_asked_for() -> None:
    own = profiles.profile({"a": profiles.device(profiles.step(own_optimizer=True))})
    plain = profiles.profile({"a": profiles.device()})
    assert optimizer_of_job(own, None, None) == optimizer_of_job(own, "net", None) == "own"
    assert optimizer_of_job(own, "net", "adam") == "adam"
    assert optimizer_of_job(plain, "net", None) is None
    assert optimizer_of_job(own, "another", None) is None


@pytest.mark.parametrize("engine", ["planner", "auto"])
def test_the_default_strategy_is_then_one_without_a_server_and_it_is_said(engine: str) -> None:
    strategy, (note,) = without_server("parameter-server", "own", engine)
    assert strategy == "allreduce" and "brings its own optimizer" in note
    assert without_server("sgp", "own", engine) == ("sgp", ())
    assert without_server("parameter-server", "adam", engine) == ("parameter-server", ())


def test_torch_alone_has_an_exchange_of_its_own_and_keeps_the_default() -> None:
    assert without_server("parameter-server", "own", "torch:hook=fp16") == ("parameter-server", ())
