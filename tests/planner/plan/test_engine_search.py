"""The planner's own engine and torch.distributed are ranked, each alone or beside one another."""

import functools

import pytest

from backends.strategies.engine import OWN
from planner.errors import PlanError
from planner.plan.engine_search import best_of
from planner.plan.recommend import make_plan
from planner.plan.recommendation import Recommendation, Row
from planner.predict.sample_efficiency import NONE
from planner.profile.file import Profile
from profilers.records.device import HostMemory
from profilers.records.steps import BatchMemory, StepMemory
from tests.planner import profiles
from tests.planner.requests import asked

#: These tests read the same rankings.
pytestmark = pytest.mark.xdist_group("engine search")

TIME = asked({"time": 1.0}, steps=1000)
SERVER = "parameter-server"


def fleet(gradient_s: float = 1.0, **step: object) -> Profile:
    made = profiles.step(gradient_s, collectives=("gloo",), layers=(250_000,), **step)
    return profiles.profile({name: profiles.device(made) for name in "abcd"})


@functools.cache
def of_the_fleet(engine: str) -> Recommendation:
    """The ranking of the fleet by an engine."""
    return best_of(fleet(), TIME, engine, SERVER, NONE)


def found(engine: str, profile: Profile | None = None, strategy: str = SERVER) -> Recommendation:
    if profile is None and strategy == SERVER:
        return of_the_fleet(engine)
    return best_of(profile or fleet(), TIME, engine, strategy, NONE)


def rows(ranked: Recommendation) -> list[Row]:
    return [ranked.row(place) for place in range(1, len(ranked) + 1)]


def test_auto_ranks_the_clusters_of_both_engines_by_one_score() -> None:
    ranked = rows(found("auto"))
    assert [row.standing.score for row in ranked] == sorted(row.standing.score for row in ranked)
    for engine in ("planner", "torch"):
        several = [row for row in rows(found(engine)) if len(row.config.workers) > 1]
        shown = [row for row in ranked if len(row.config.workers) > 1 and row.engine == engine]
        assert shown == [row._replace(standing=other.standing) for row, other in zip(several, shown, strict=True)]


def test_a_device_alone_is_ranked_once_and_by_no_engine_but_the_planner() -> None:
    alone = [row for row in rows(found("auto")) if len(row.config.workers) == 1]
    assert sorted(row.config.server for row in alone) == ["a", "b", "c", "d"]
    assert {row.engine for row in alone} == {OWN}


def test_the_plan_of_any_place_is_that_of_its_engine() -> None:
    ranked = found("auto")
    plans = [make_plan(ranked, "fleet.toml", place) for place in range(1, len(ranked) + 1)]
    assert {plan.run.engine.text for plan in plans} == {"planner", "torch"}
    for plan, row in zip(plans, rows(ranked), strict=True):
        assert (plan.run.engine.text, plan.names, plan.prediction) == (row.engine, row.config.workers, row.prediction)
        assert plan.run.strategy.text == ("allreduce" if plan.run.engine.text == "torch" else "parameter-server")
    with pytest.raises(PlanError, match=f"--choose {len(ranked) + 1}: the ranking has places 1 to {len(ranked)}"):
        ranked.row(len(ranked) + 1)


def test_a_cluster_of_either_engine_may_tie_with_the_best_of_the_other() -> None:
    assert {row.engine for row in rows(found("auto")) if row.standing.tie} == {"planner", "torch"}


def test_auto_ranks_who_can_take_part_in_torch_and_says_who_cannot() -> None:
    devices = fleet().devices
    lacking = devices["b"]._replace(steps=(profiles.changed(devices["b"].steps[0], collectives=()),))
    ranked = found("auto", profiles.profile({**devices, "b": lacking}))
    members = {
        engine: {name for row in rows(ranked) if row.engine == engine for name in row.config.workers}
        for engine in ("planner", "torch")
    }
    assert members == {"planner": {"a", "b", "c", "d"}, "torch": {"a", "c", "d"}}
    assert "--engine torch leaves out b: its torch 2.0 was built without torch.distributed" in ranked.notes


def test_devices_that_compute_with_another_framework_stay_themselves_in_one_ranking() -> None:
    torch, other = profiles.step(1.0, layers=(250_000,)), profiles.step(0.5, framework="tensorflow")
    devices = {"a": profiles.device(other), **{name: profiles.device(torch) for name in "bcd"}}
    ranked = found("auto", profiles.profile(devices))
    for engine in ("planner", "torch"):
        several = [row.config for row in rows(found(engine, profiles.profile(devices))) if len(row.config.workers) > 1]
        assert [row.config for row in rows(ranked) if row.engine == engine and len(row.config.workers) > 1] == several


def test_auto_without_torch_anywhere_is_the_planner() -> None:
    chosen = found("auto", fleet(framework="tensorflow"))
    assert chosen.inputs.engine.name == OWN
    assert chosen.notes[-1].startswith("--engine torch ranks no cluster: framework: torch is not in the profile")


def test_auto_with_a_strategy_that_cannot_be_is_torch_and_says_why() -> None:
    chosen = best_of(fleet(), TIME._replace(optimizer="own"), "auto", SERVER, NONE)
    assert chosen.inputs.engine.name == "torch"
    assert chosen.notes[-1].startswith("--engine planner ranks no cluster: ")
    assert "optimizer own excludes topology server" in chosen.notes[-1]


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
    assert found("auto", strategy="allreduce").inputs.strategy.text == "allreduce"


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


def of_memory(**left_bytes: int) -> Profile:
    """Devices whose memory has so many bytes beside a step of 100 MB of weights, in 100 blocks."""
    size = {
        "parameter_bytes": 100_000_000,
        "parameters": 25_000_000,
        "layers": (25_000_000,),
        "blocks": (250_000,) * 100,
    }
    steps = {
        name: profiles.step(
            0.5, accelerator="cpu", job=True, collectives=("gloo", "fully_shard"), **size,
            memory=StepMemory(tuple(BatchMemory(batch, 3_600_000_000 - more) for batch in (16, 32))),
        )
        for name, more in left_bytes.items()
    }  # fmt: skip
    facts = profiles.facts()._replace(memory=HostMemory(8_000_000_000, 4_000_000_000))
    return profiles.profile({name: profiles.device(step)._replace(facts=facts) for name, step in steps.items()})


ADAMW = asked({"time": 1.0}, steps=1000, optimizer="adamw")


def clusters(ranked: Recommendation) -> set[str]:
    return {"".join(row.config.workers) for row in rows(ranked)}


def test_devices_that_cannot_train_alone_share_a_model_in_clusters_of_enough_members() -> None:
    """With AdamW a replica takes 100 MB more than was measured, a share of two or three less."""
    tight = of_memory(a=200_000_000, b=0, c=-120_000_000)  # c lacks what a share of two takes
    ranked = best_of(tight, ADAMW, "torch:shard=full", SERVER, NONE)
    assert clusters(ranked) == {"a", "ab", "abc"}
    assert "c has the memory of a share only in clusters of 3 or more" in ranked.notes
    assert any(note.startswith("b cannot train alone: ") for note in ranked.notes)
    assert clusters(best_of(tight, ADAMW, "torch", SERVER, NONE)) == {"a"}


def test_auto_divides_a_model_that_no_device_holds() -> None:
    ranked = best_of(of_memory(b=0, c=0), ADAMW, "auto", SERVER, NONE)
    assert ranked.inputs.engine.is_sharded and clusters(ranked) == {"bc"}
    assert ranked.notes[0].startswith("--engine planner ranks no cluster: b hosts no server of 2 or more workers: ")
    assert not best_of(of_memory(a=200_000_000, b=0), ADAMW, "auto", SERVER, NONE).inputs.engine.is_sharded


def test_whom_a_share_does_not_fit_or_whose_torch_has_none_is_left_out() -> None:
    tight = of_memory(a=200_000_000, b=0, c=-300_000_000)
    ranked = best_of(tight, ADAMW, "torch:shard=full", SERVER, NONE)
    assert clusters(ranked) == {"a", "ab"} and set(ranked.parts[0].training.left_out) == {"c"}
    old = profiles.device(profiles.changed(tight.devices["b"].steps[0], collectives=("gloo",)))
    without = best_of(profiles.profile({**tight.devices, "b": old}), ADAMW, "torch:shard=full", SERVER, NONE)
    reason = without.parts[0].training.left_out["b"]
    assert reason == "its torch 2.0 has no FSDP2 whose exchange can be set, which newer ones have"


def test_what_updates_more_than_elements_is_refused_for_shares() -> None:
    lars = asked({"time": 1.0}, optimizer="lars")
    with pytest.raises(PlanError, match="optimizer lars cannot update; choose --optimizer sgd, adam, adamw"):
        best_of(of_memory(a=0, b=0), lars, "torch:shard=full", SERVER, NONE)
