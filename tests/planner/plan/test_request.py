"""A job that brings its own optimizer is planned with it, and without a server."""

from planner.plan.request import optimizer_of_job, without_server
from tests.planner import profiles


def test_the_optimizer_of_a_job_is_used_unless_another_is_asked_for() -> None:
    own = profiles.profile({"a": profiles.device(profiles.step(own_optimizer=True))})
    plain = profiles.profile({"a": profiles.device()})
    assert optimizer_of_job(own, None, None) == optimizer_of_job(own, "net", None) == "own"
    assert optimizer_of_job(own, "net", "adam") == "adam"
    assert optimizer_of_job(plain, "net", None) is None
    assert optimizer_of_job(own, "another", None) is None


def test_the_default_strategy_is_then_one_without_a_server_and_it_is_said() -> None:
    strategy, (note,) = without_server("parameter-server", "own")
    assert strategy == "allreduce" and "brings its own optimizer" in note
    assert without_server("sgp", "own") == ("sgp", ())
    assert without_server("parameter-server", "adam") == ("parameter-server", ())
