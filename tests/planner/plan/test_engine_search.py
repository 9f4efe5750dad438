"""The planner's own engine and torch.distributed are ranked, and the better one is chosen."""

import pytest

from backends.strategies.engine import OWN
from planner.errors import PlanError
from planner.plan.engine_search import best_of
from planner.plan.recommend import Recommendation, make_plan
from planner.plan.request import RecommendRequest
from planner.predict.sample_efficiency import NONE
from planner.profile.file import Profile
from tests.planner import profiles

TIME = RecommendRequest({"time": 1.0}, steps=1000)
SERVER = "parameter-server"


def fleet(gradient_s: float = 1.0, **step: object) -> Profile:
    made = profiles.step(gradient_s, collectives=("gloo",), layers=(250_000,), **step)
    return profiles.profile({name: profiles.device(made) for name in "abcd"})


def found(engine: str, profile: Profile | None = None, strategy: str = SERVER) -> Recommendation:
    return best_of(profile or fleet(), TIME, engine, strategy, NONE)


def test_the_plan_of_an_engine_names_it() -> None:
    plan = make_plan(found("torch:hook=fp16"), "fleet.toml")
    assert (plan.engine, len(plan.workers), plan.strategy.text) == ("torch:hook=fp16", 4, "allreduce")
    assert make_plan(found("planner"), "fleet.toml").engine == OWN


def test_a_device_alone_needs_no_engine() -> None:
    alone = found("torch", fleet(gradient_s=0.001))
    assert len(alone.row(1).config.workers) == 1
    assert make_plan(alone, "fleet.toml").engine == OWN


def test_auto_takes_the_faster_one_and_shows_both() -> None:
    both = {engine: found(engine).row(1).prediction.time_s for engine in ("planner", "torch")}
    chosen = found("auto")
    assert both["planner"] != pytest.approx(both["torch"])
    assert chosen.row(1).prediction.time_s == min(both.values())
    assert chosen.costs.engine.name == min(both, key=both.__getitem__)
    assert any(note.startswith(f"--engine auto chose {chosen.costs.engine.name}; ") for note in chosen.notes)


def test_auto_says_who_cannot_take_part_in_what_was_not_chosen() -> None:
    devices = fleet(0.001).devices
    lacking = devices["b"]._replace(steps=(devices["b"].steps[0]._replace(collectives=()),))
    chosen = found("auto", profiles.profile({**devices, "b": lacking}))
    assert chosen.costs.engine.name == OWN
    assert "--engine torch leaves out b: its torch 2.0 was built without torch.distributed" in chosen.notes


def test_auto_without_torch_anywhere_is_the_planner() -> None:
    chosen = found("auto", fleet(framework="tensorflow"))
    assert chosen.costs.engine.name == OWN
    assert chosen.notes[-1].startswith("--engine auto chose planner: framework: torch is not in the profile")


def test_auto_with_a_strategy_that_cannot_be_is_torch_and_says_why() -> None:
    chosen = best_of(fleet(), TIME._replace(optimizer="own"), "auto", SERVER, NONE)
    assert chosen.costs.engine.name == "torch"
    assert "--engine auto chose torch: " in chosen.notes[-1] and "optimizer own excludes" in chosen.notes[-1]


def test_auto_where_neither_can_gives_the_reason_of_the_planner() -> None:
    with pytest.raises(PlanError, match="optimizer own excludes topology server"):
        best_of(fleet(framework="tensorflow"), TIME._replace(optimizer="own"), "auto", SERVER, NONE)
    with pytest.raises(PlanError, match="--strategy gaja: .*unknown"):
        found("auto", strategy="gaja")


def test_a_strategy_belongs_to_the_planners_own_engine() -> None:
    with pytest.raises(
        PlanError, match=r"--strategy dlion: --engine torch has its own exchange; leave one of them out"
    ):
        found("torch", strategy="dlion")
    assert found("auto", strategy="allreduce").costs.strategy.text == "allreduce"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tensorflow", "--engine tensorflow: unknown engine 'tensorflow'; .*known: planner, torch"),
        (
            "torch:hook=fp8",
            "--engine torch:hook=fp8: engine torch: hook is one of none, bf16, fp16, powersgd, not 'fp8'",
        ),
        ("planner:hook=fp16", "--engine planner:hook=fp16: .*key of none"),
    ],
)
def test_what_is_no_engine_is_told(text: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        found(text)


def test_where_nobody_can_the_reasons_are_told() -> None:
    profile = fleet()
    remote = {name: each._replace(device={**each.device, "host": name}) for name, each in profile.devices.items()}
    with pytest.raises(PlanError, match=r"--engine torch: no device can take part \(a: .*--allow-plaintext; b: "):
        found("torch", profile._replace(devices=remote))
