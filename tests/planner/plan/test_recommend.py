import pytest

from backends.protocol.events import RunAccount
from planner.errors import PlanError
from planner.plan.recommend import make_plan, metric_name, recommend
from planner.plan.report import to_json
from planner.plan.texts import parse_engine, parse_strategy
from planner.predict.interval import RECORDED, ModelErrors
from planner.predict.seen_errors import SeenErrors
from planner.profile.file import Profile, timing_of
from planner.train.result import run_result
from planner.train.worker_result import WorkerResult
from profilers.records.steps import BatchMemory, StepMemory
from tests.planner import profiles
from tests.planner.plans import NAMEPLATE
from tests.planner.requests import asked

TIME, EDP = {"time": 1.0}, {"edp": 1.0}


def fleet(**changes: object) -> Profile:
    return profiles.fleet(0.5, 0.6, 2.0, spread=0.02)._replace(**changes)


def test_a_plan_tells_the_watts_besides_its_workers_and_a_run_as_planned_has_no_error() -> None:
    for options in ({}, {"extra_w": 50.0}, {"extra_w": 50.0, "count_idle": True}):
        found = recommend(fleet(), asked(EDP, include=["a"], exclude=["c"], steps=500, **options))
        plan = make_plan(found, "fleet.toml", 1 + [len(found.workers(place)) for place in (1, 2, 3)].index(1))
        besides_w = options.get("extra_w", 0.0) + (20.0 if "count_idle" in options else 0.0)
        assert plan.besides_w == pytest.approx(besides_w)
        account = RunAccount(500, 500, plan.prediction.time_s, {}, True)
        parts = {w.name: WorkerResult(500, 0.0, 0.0, 0.0, w.watts.power_w, NAMEPLATE) for w in plan.workers}
        assert run_result(plan, account, parts)["error"]["power_w"] == pytest.approx(0.0)


def test_another_place_can_be_chosen() -> None:
    found = recommend(fleet(), asked(TIME))
    assert make_plan(found, "fleet.toml", 12).workers[0].name == "c"
    with pytest.raises(PlanError, match="--choose 13: the ranking has places 1 to 12"):
        make_plan(found, "fleet.toml", 13)


def test_a_server_is_hosted_only_where_its_own_arrays_fit() -> None:
    """``b`` has 300 MB beside its step: too little for a server of 100 MB of weights."""
    sizes = {"a": 10**9, "b": 3_565_470_566, "c": 10**9}
    steps = {
        name: profiles.step(
            0.5, parameter_bytes=100_000_000, memory=StepMemory((BatchMemory(16, size), BatchMemory(32, size)))
        )
        for name, size in sizes.items()
    }
    tight = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    found = recommend(tight, asked(TIME))
    hosts = {(row.config.server, len(row.config.workers)) for row in map(found.row, range(1, len(found) + 1))}
    assert {count for host, count in hosts if host == "b"} == {1}
    assert found.notes == (
        "b hosts no server of 2 or more workers: its arrays take 600 MB of memory, and a step of batch 32 leaves "
        "300 MB",
    )
    alone = asked(TIME, include=["a", "b"], server="b")
    with pytest.raises(PlanError, match="b hosts no server .* no cluster is left; end other programs there"):
        recommend(tight, alone)
    assert recommend(tight, alone.setting(strategy=parse_strategy("allreduce"))._replace(server=None)).notes == ()


def test_a_worker_of_a_server_may_lack_the_memory_to_train_alone_with_adam() -> None:
    """``b`` has 50 MB beside its step, and the second moment takes 100 MB."""
    sizes = {"a": 10**9, "b": 3_815_470_566}
    steps = {
        name: profiles.step(
            0.5, parameter_bytes=100_000_000, accelerator="cpu",
            memory=StepMemory((BatchMemory(16, size), BatchMemory(32, size))),
        )
        for name, size in sizes.items()
    }  # fmt: skip
    tight = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    found = recommend(tight, asked(TIME, optimizer="adam"))
    assert {row.config.workers for row in map(found.row, range(1, len(found) + 1))} == {("a",), ("a", "b")}
    assert any(
        note.startswith("b cannot train alone: net: batch 32 needs 3.92 GB of its memory") for note in found.notes
    )
    with pytest.raises(PlanError, match="b cannot train alone: .*no cluster is left"):
        recommend(tight, asked(TIME, optimizer="adam", exclude=["a"]))
    assert len(recommend(tight, asked(TIME, exclude=["a"]))) == 1


SHARED = asked(TIME, global_batch=96, steps=300, strategy=parse_strategy("allreduce"))


def test_workers_share_a_global_batch_so_that_all_end_at_once() -> None:
    steps = {
        name: profiles.step(each, half_batch_s=profiles.seconds(each / 2)) for name, each in (("a", 0.1), ("b", 0.5))
    }
    two = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    found = recommend(two, SHARED)
    both = next(place for place in range(1, len(found) + 1) if len(found.workers(place)) == 2)
    plan = make_plan(found, "fleet.toml", both)
    assert plan.batches == found.row(both).batches == {"a": 80, "b": 16}
    assert plan.run.batch == found.row(both).config.batch == 48
    assert plan.run.strategy.text == "allreduce:aggregation=samples"
    assert plan.has_global_batch and plan.run.steps == 200  # 300 batches of 32 are 100 rounds of 96
    assert [worker.computing_s for worker in plan.workers] == pytest.approx([0.25, 0.25])
    assert len({round(worker.cycle_s, 9) for worker in plan.workers}) == 1
    alone = next(row for row in map(found.row, range(1, len(found) + 1)) if row.config.workers == ("a",))
    assert alone.batches == {"a": 96} and alone.prediction.time_s == pytest.approx(100 * 0.31)


def test_a_division_by_speed_takes_no_longer_than_equal_parts() -> None:
    equal = recommend(fleet(), SHARED._replace(global_batch=None, include=["a", "b", "c"]))
    shared = recommend(fleet(), SHARED._replace(include=["a", "b", "c"]))
    assert equal.row(1).prediction.time_s > shared.row(1).prediction.time_s
    assert sum(shared.row(1).batches.values()) == 96
    assert to_json(shared)["ranking"][0]["batches"] == shared.row(1).batches
    assert "batches" not in to_json(equal)["ranking"][0]
    assert not make_plan(equal, "fleet.toml").has_global_batch


def test_torch_weighs_by_samples_itself() -> None:
    request = SHARED.by(parse_engine("torch"))
    found = recommend(fleet(), request._replace(include=["a", "b", "c"]))
    plan = make_plan(found, "fleet.toml")
    assert sum(plan.batches.values()) == 96 and plan.run.strategy.aggregation == "mean"


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(PlanError, match="--global-batch with strategy parameter-server: its workers do not wait"):
        recommend(fleet(), SHARED.setting(strategy=parse_strategy("parameter-server")))
    with pytest.raises(PlanError, match="--global-batch 5000: no cluster can divide it; .* a 4 to 128, b 4 to 128"):
        recommend(fleet(), SHARED._replace(global_batch=5000))
    with pytest.raises(PlanError, match="--batch-size and --global-batch: .* choose one"):
        recommend(fleet(), SHARED.setting(batch=32))


def test_clusters_that_are_too_small_or_too_large_for_the_batch_are_not_ranked() -> None:
    found = recommend(fleet(), SHARED._replace(global_batch=300))
    assert [row.config.workers for row in map(found.row, range(1, len(found) + 1))] == [("a", "b", "c")]
    few = recommend(fleet(), SHARED._replace(global_batch=10))
    assert max(len(row.config.workers) for row in map(few.row, range(1, len(few) + 1))) == 2


def test_the_host_of_a_server_keeps_room_for_it_beside_its_part_of_the_batch() -> None:
    """A server of two workers takes 600 MB; ``b``, beside 64 samples, has 200 MB left."""
    tight = StepMemory((BatchMemory(16, 3_065_470_566), BatchMemory(32, 3_265_470_566)))
    steps = {
        name: profiles.step(each, half_batch_s=profiles.seconds(each / 2), parameter_bytes=100_000_000, memory=memory)
        for name, each, memory in (("a", 0.4, None), ("b", 0.1, tight))
    }
    two = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    request = SHARED.setting(strategy=parse_strategy("parameter-server:sync=synchronous"))._replace(global_batch=80)
    found = recommend(two, request)
    rows = [found.row(place) for place in range(1, len(found) + 1)]
    assert {row.config.server for row in rows if len(row.config.workers) == 2} == {"a"}
    assert "b hosts no server of 2 or more workers" in found.notes[0]
    assert "a step of batch" in found.notes[0]


def test_members_only_energy_never_rewards_sharing_and_the_bill_may() -> None:
    members = recommend(fleet(), asked({"energy": 1.0}))
    assert members.row(1).config.workers == ("a",)
    assert "favours one device alone" in members.notes[0]
    billed = recommend(fleet(), asked({"energy": 1.0}, extra_w=1000.0))
    assert len(billed.row(1).config.workers) > 1
    assert billed.notes == ()
    assert recommend(fleet(), asked(EDP)).notes == ()


def test_idle_devices_are_counted_when_asked_also_those_left_out() -> None:
    devices = {**fleet().devices, "dead": profiles.device()._replace(steps=(), error="lost")}
    everyone = profiles.profile(devices)
    plain, billed = (
        recommend(everyone, asked(TIME, include=["a"])),
        recommend(everyone, asked(TIME, include=["a"], count_idle=True)),
    )
    assert billed.row(1).prediction.power_w == pytest.approx(plain.row(1).prediction.power_w + 10.0)
    assert billed.training.left_out == {"dead": "lost"}
    unknown = profiles.profile({**devices, "dead": profiles.device(idle_w=None)._replace(steps=(), error="lost")})
    with pytest.raises(PlanError, match="--count-idle: no idle watts are known of dead"):
        recommend(unknown, asked(TIME, count_idle=True))


def test_unknown_watts_stop_only_the_metrics_that_need_them() -> None:
    devices = {**fleet().devices, "b": profiles.device(profiles.step(0.6), idle_w=None)}
    some = profiles.profile(devices)
    assert len(recommend(some, asked(TIME))) == 12
    with pytest.raises(PlanError, match="no watts are known of b; give idle_watts and max_watts"):
        recommend(some, asked(EDP))
    assert len(recommend(some, asked(EDP, exclude=["b"]))) == 4


def test_without_a_metric_the_best_is_that_of_edp_or_of_time_where_watts_that_count_are_unknown() -> None:
    devices = {**fleet().devices, "b": profiles.device(profiles.step(0.6), idle_w=None)}
    by_time, by_edp = (recommend(profiles.profile(devices), asked(exclude=each)) for each in ((), ("b",)))
    assert (by_time.metric, by_edp.metric) == ("time", "edp")
    assert by_time.notes[0].startswith("ranked by time, because no watts are known of b; to rank by energy")
    assert by_edp.notes == ()


def test_what_profiling_a_model_in_several_frameworks_took_is_counted() -> None:
    took = {
        "idle": 2.0,
        timing_of("net", "torch"): 30.0,
        timing_of("net", "tensorflow"): 40.0,
        timing_of("other", "torch"): 50.0,
    }
    steps = (profiles.step(), profiles.step(framework="tensorflow"), profiles.step(model="other"))
    made = profiles.profile({"a": profiles.device()._replace(steps=steps, took_s=took)})
    assert made.profiling_s("net") == 2.0 + 30.0 + 40.0 + 5.0
    assert made.profiling_s("other") == 2.0 + 50.0 + 5.0


def test_steps_come_from_the_option_the_profile_or_the_default() -> None:
    assert recommend(fleet(), asked(TIME, steps=7)).settings.steps == 7
    assert recommend(fleet(steps_planned=500), asked(TIME)).settings.steps == 500
    assert recommend(fleet(), asked(TIME)).settings.steps == 100_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "--steps: -1 is out of range; give a number of at least 1"),
        ({"batch": -1}, "--batch-size: -1 is out of range"),
        ({"extra_w": -1.0}, "--base-watts: -1 is out of range"),
        ({"rates": {"a": 0.0}}, "--rate a: 0 is out of range"),
        ({"server": "x"}, "--server x: no such device; devices: a, b, c"),
        ({"exclude": ["x"]}, "--exclude x: no such device"),
    ],
)
def test_options_out_of_range_are_named(options: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        recommend(fleet(), asked(TIME, **options))


def test_a_server_that_was_left_out_is_refused_and_excluding_it_again_is_not() -> None:
    devices = {**fleet().devices, "dead": profiles.device()._replace(steps=(), error="lost")}
    with pytest.raises(PlanError, match="--server dead: lost"):
        recommend(profiles.profile(devices), asked(TIME, server="dead"))
    assert len(recommend(profiles.profile(devices), asked(TIME, exclude=["dead"]))) == 12


def test_the_metric_is_named_as_it_was_asked_for() -> None:
    assert metric_name({"time": 0.3, "energy": 0.7}) == "time=0.3,energy=0.7"
    assert metric_name({"time": 0.0, "energy": 0.7}) == "energy"


def test_excluding_a_device_is_as_if_it_had_never_been_profiled() -> None:
    gradients_s = {"a": 0.5, "x": 0.3, "b": 0.6, "y": 1.0, "c": 2.0}
    devices = {name: profiles.device(profiles.step(each, spread=0.02)) for name, each in gradients_s.items()}
    found = recommend(profiles.profile(devices, rates={"x": 10 * profiles.MBIT}), asked(EDP, exclude=["x", "y"]))
    never = recommend(fleet(), asked(EDP))
    assert len(found) == len(never) == 12
    for place in range(1, 13):
        assert found.row(place).config == never.row(place).config
        for one, other in zip(found.workers(place), never.workers(place), strict=True):
            assert one.watts.source == other.watts.source
            assert one.watts[:3] == pytest.approx(other.watts[:3]) and one.factors == pytest.approx(other.factors)
            numbers, others = (each._replace(watts=None, factors=None)._asdict() for each in (one, other))
            assert numbers == pytest.approx(others)
    assert found.ranking.score == pytest.approx(never.ranking.score)
    for field in ("time_s", "power_w", "network_bytes", "shares"):
        assert getattr(found.parts[0].predictions, field) == pytest.approx(getattr(never.parts[0].predictions, field))


def test_excluded_devices_idle_on_the_bill() -> None:
    plain, billed = (recommend(fleet(), asked(TIME, exclude=["b"], count_idle=count)) for count in (False, True))
    a_and_c, billed_too = plain.row(1), billed.row(1)
    assert a_and_c.config == billed_too.config
    assert billed_too.prediction.power_w == pytest.approx(a_and_c.prediction.power_w + 10.0)


def test_the_devices_that_are_too_many_are_those_that_may_be_members() -> None:
    """Of 40 profiled devices: subsets of them all would fit no memory."""
    everyone = profiles.profile({f"d{i}": profiles.device(profiles.step(0.1 + 0.01 * i)) for i in range(40)})
    found = recommend(everyone, asked(EDP, exclude=[f"d{i}" for i in range(30)]))
    assert len(found) == 10 * 2**9
    with pytest.raises(PlanError, match="15 devices are too many .*at most 14.*--exclude"):
        recommend(everyone, asked(EDP, exclude=[f"d{i}" for i in range(25)]))


def test_the_energy_of_every_cluster_has_an_uncertainty_whatever_the_metric() -> None:
    by_energy, by_time = (recommend(fleet(), asked({metric: 1.0})) for metric in ("energy", "time"))
    rows = {row.config: row for row in map(by_time.row, range(1, 13))}
    for row in map(by_energy.row, range(1, 13)):
        low, high = row.standing.interval
        assert row.standing.energy_uncertainty == pytest.approx((high / low) ** 0.5 - 1)
        assert rows[row.config].standing.energy_uncertainty == pytest.approx(row.standing.energy_uncertainty)
    assert make_plan(by_time, "fleet.toml").energy_uncertainty == by_time.row(1).standing.energy_uncertainty


def test_each_device_is_planned_with_its_fastest_framework_unless_one_is_asked_for() -> None:
    steps = {
        "a": (profiles.step(0.5), profiles.step(0.7, framework="tensorflow")),
        "b": (profiles.step(0.9, framework="tensorflow"),),
    }
    mixed = profiles.profile({name: profiles.device()._replace(steps=timed) for name, timed in steps.items()})
    found = recommend(mixed, asked(TIME))
    assert to_json(found)["frameworks"] == {"a": "torch", "b": "tensorflow"}
    plan = make_plan(found, "fleet.toml")
    assert (plan.framework, plan.frameworks) == ("tensorflow+torch", {"a": "torch", "b": "tensorflow"})
    alone = recommend(mixed, asked(TIME, framework="torch"))
    assert (make_plan(alone, "fleet.toml").framework, len(alone)) == ("torch", 1)
    assert alone.training.left_out == {"b": "net was not timed completely on it with torch"}
    assert set(to_json(recommend(mixed, asked(TIME, framework="tensorflow")))["frameworks"].values()) == {"tensorflow"}


def test_a_device_that_waits_for_its_data_is_a_bottleneck_of_its_own() -> None:
    whole = recommend(fleet(), asked(TIME, include=["a"], exclude=["b", "c"])).row(1)
    slow = {name: profiles.device(profiles.step(each, data_s=0.7 * each)) for name, each in (("a", 0.5), ("b", 0.6))}
    found = recommend(profiles.profile(slow), asked(TIME, include=["a"], exclude=["b"]))
    row = found.row(1)
    assert (whole.bottleneck, row.bottleneck) == ("compute", "data")
    assert "data" not in whole.shares
    assert row.shares["data"] + row.shares["compute"] == pytest.approx(whole.shares["compute"], rel=0.01)
    assert any(note.startswith("a: net waits 350 ms of each step for its data (70 %") for note in found.notes)


def test_a_fleet_that_is_not_emulated_is_told_where_its_intervals_come_from_until_it_was_audited() -> None:
    def told(made: Profile, errors: ModelErrors = RECORDED) -> bool:
        return any("planner audit" in detail for detail in recommend(made, asked(TIME, errors=errors)).details)

    assert told(fleet())
    assert not told(profiles.three(slowdown=3.0))
    assert not told(fleet(), RECORDED.widened(SeenErrors(1, {"gossip": (0.9,)})))
