"""What is measured next, by which clusters tie with the best."""

from planner.plan.next_measurements import next_wanted
from planner.plan.rank import one_metric
from planner.profile.file import Profile
from planner.profile.measurements import LinkWanted, StepsWanted, Wanted
from tests.planner import profiles
from tests.planner.requests import asked

TIME = asked(one_metric("time"))


def fleet(spread: float, *links: str) -> Profile:
    """Devices a, b and c of the same speed; links as in "ab", by default all."""
    devices = {name: profiles.device(profiles.step(0.1, spread=spread)) for name in "abc"}
    made = profiles.profile(devices)
    kept = [each for each in made.links if each.source == each.target or {each.source, each.target} in map(set, links)]
    return made._replace(links=tuple(kept)) if links else made


def wanted(profile: Profile, *done: Wanted, spent_s: float = 0.0, budget_s: float | None = None) -> Wanted | None:
    return next_wanted(profile, done, spent_s, TIME, budget_s)


def test_links_that_were_estimated_are_measured_before_more_steps() -> None:
    profile = fleet(0.5, "ab", "ac")
    assert wanted(profile) == LinkWanted("b", "c")
    assert isinstance(wanted(profile, LinkWanted("b", "c")), StepsWanted)


def test_the_worker_whose_gradient_is_known_worst_is_timed_again_and_each_only_once() -> None:
    profile = fleet(0.5)
    (timed,) = profile.devices["b"].steps
    worse = profile.with_device("b", steps=(timed._replace(gradient_s=profiles.seconds(0.1, 0.9, 20)),))
    assert wanted(worse) == StepsWanted("b", "net")
    asked = [StepsWanted(name, "net") for name in "abc"]
    assert wanted(worse, *asked) is None


def test_nothing_more_is_measured_once_the_budget_is_spent() -> None:
    profile = fleet(0.5)
    assert wanted(profile, spent_s=20.0) is not None
    assert wanted(profile, spent_s=20.0, budget_s=10.0) is None
    assert wanted(profile, spent_s=1e9) is None


def test_a_gradient_that_is_known_better_than_a_run_repeats_it_is_not_timed_again() -> None:
    assert wanted(fleet(0.05)) is None
