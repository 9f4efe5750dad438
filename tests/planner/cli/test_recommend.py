"""`planner recommend` as the operator meets it."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from backends.streams.spec import StreamSpec
from planner import json_records
from planner.plan.file import load_plan
from profilers.records.steps import BatchMemory, StepMemory
from tests.planner import profiles
from tests.planner.cli.commands import Planner, fleet


def test_json_is_the_ranking_best_first_and_nothing_else(profiled: Planner) -> None:
    done = profiled("recommend", "--metric", "time", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert list(found) == [
        "metric", "model", "strategy", "frameworks", "ranking", "notes", "details", "left_out", "offers",
    ]  # fmt: skip
    assert (found["metric"], found["model"], len(found["ranking"])) == ("time", "net", 12)
    best = found["ranking"][0]
    assert list(best)[:7] == ["workers", "server", "time_s", "power_w", "energy_j", "edp_js", "interval"]
    times_s = [row["time_s"] for row in found["ranking"]]
    assert times_s == sorted(times_s)
    low, high = best["interval"]
    assert low < best["time_s"] < high


def test_another_engine_is_named_in_the_json_the_table_and_the_plan(profiled: Planner) -> None:
    found = json.loads(profiled("recommend", "--engine", "torch", "--metric", "time", "--json").out)
    assert (found["engine"], found["strategy"], len(found["ranking"])) == ("torch", "allreduce", 7)
    shown = profiled("recommend", "--engine", "torch:hook=bf16", "--include", "tx2", "--include", "desktop").out
    assert "net, --engine torch:hook=bf16, batch 32" in shown
    assert load_plan(Path("plan.json")).run.engine.text == "torch:hook=bf16"


def test_the_seed_of_drawn_rates_is_kept_in_the_plan(profiled: Planner) -> None:
    def rates(seed: int) -> dict[str, float]:
        asked = ("--metric", "time", "--strategy", "allreduce", "--stream", "replay:S2", "--seed", str(seed), "--json")
        found = json.loads(profiled("recommend", "--include", "tx2", "--include", "desktop", *asked).out)
        assert load_plan(Path("plan.json")).run.rates_seed == seed
        assert any(f"rates are those of --seed {seed}" in note for note in found["details"])
        return {name: stream["rate"] for name, stream in found["ranking"][0]["streams"].items()}

    settings = StreamSpec.from_text("replay:S2")
    for seed in (0, 5):
        drawn = rates(seed)
        assert drawn == {name: settings.replay(name, seed).mean_rate() for name in drawn} and len(drawn) >= 2


def test_batches_of_torch_may_follow_streams(profiled: Planner) -> None:
    asked = ("--metric", "time", "--include", "tx2", "--include", "desktop", "--stream", "replay:tx2@8/40", "--json")
    found = json.loads(profiled("recommend", "--engine", "torch:batching=stream", *asked).out)
    (row,) = [row for row in found["ranking"] if sorted(row["workers"]) == ["desktop", "tx2"]]
    assert {name: stream["samples"] for name, stream in row["streams"].items()} == {"desktop": 40.0, "tx2": 8.0}
    assert load_plan(Path("plan.json")).run.strategy.as_text() == "allreduce:batching=stream,aggregation=rates"


def test_both_engines_are_one_ranking_with_the_engine_of_each_row(profiled: Planner) -> None:
    asked = ("recommend", "--engine", "auto", "--metric", "time")
    ranking = json.loads(profiled(*asked, "--json").out)["ranking"]
    assert {row["engine"] for row in ranking} == {"planner", "torch"} and len(ranking) == 12 + 4
    lines = list(csv.DictReader(io.StringIO(profiled(*asked, "--csv").out)))
    assert [line["engine"] for line in lines] == [row["engine"] for row in ranking]
    shown = profiled(*asked, "--top", "0").out.split("\n\n")[1].splitlines()
    assert shown[0].startswith("net, --engine auto, batch 32") and "engine" in shown[1]
    assert [line.split()[1] for line in shown if line[:2].strip().isdigit()] == [row["engine"] for row in ranking]
    for place in (1, 16):
        assert profiled(*asked, "--choose", str(place)).code == 0
        chosen, row = load_plan(Path("plan.json")), ranking[place - 1]
        assert (chosen.run.engine.text, list(chosen.names)) == (row["engine"], row["workers"])


def test_a_device_that_only_torch_can_use_is_ranked_with_it_and_alone(planner: Planner) -> None:
    """The main memory of a is too small for what Adam keeps in a peer that computes on a GPU."""
    sizes = tuple(BatchMemory(batch, 10**8, 10**8) for batch in (16, 32))
    short = StepMemory(sizes, accelerator_available_bytes=10**12)
    steps = {name: profiles.step(parameter_bytes=3 * 10**9, memory=short if name == "a" else None) for name in "abc"}
    measured = profiles.profile({name: profiles.device(step) for name, step in steps.items()})
    json_records.save(measured, Path("profile.json"))
    asked = ("recommend", "--metric", "time", "--engine", "auto", "--strategy", "allreduce", "--optimizer", "adam")
    found = json.loads(planner(*asked, "--json").out)
    assert found["left_out"] == {} and set(found["frameworks"]) == {"a", "b", "c"}
    of_a = [row for row in found["ranking"] if "a" in row["workers"]]
    assert sorted((row["engine"], *row["workers"]) for row in of_a) == [
        ("planner", "a"), ("torch", "a", "b"), ("torch", "a", "b", "c"), ("torch", "a", "c"),
    ]  # fmt: skip
    assert all(set(row["power_sources"]) == set(row["workers"]) for row in found["ranking"])
    assert sum(note.startswith("--engine planner leaves out a: ") for note in found["notes"]) == 1
    assert len(list(csv.DictReader(io.StringIO(planner(*asked, "--csv").out)))) == len(found["ranking"])
    assert "left out: a" not in planner(*asked).out


def test_a_network_that_the_fleet_file_trusts_needs_no_option(planner: Planner) -> None:
    profile = fleet()
    remote = {name: each._replace(device={**each.device, "host": "10.0.0.2"}) for name, each in profile.devices.items()}
    json_records.save(profile._replace(devices=remote), Path("profile.json"))
    refused = planner("recommend", "--engine", "torch", "--metric", "time")
    assert "allow it with --allow-plaintext" in refused.problem()
    Path("fleet.toml").write_text('trusted_network = true\n[devices.tx2]\naddress = "10.0.0.2"\n')
    assert planner("recommend", "--engine", "torch", "--metric", "time", "--json").code == 0


def test_the_plan_is_of_the_best_or_of_the_place_that_is_chosen(profiled: Planner) -> None:
    ranking = json.loads(profiled("recommend", "--json").out)["ranking"]
    for place in (1, 3):
        shown = profiled("recommend", "--choose", str(place), "--out", "other.json").out
        chosen = load_plan(Path("other.json"))
        row = ranking[place - 1]
        assert f"wrote {f'number {place} to ' * (place > 1)}other.json" in shown
        assert [chosen.server, *chosen.names] == [row["server"], *row["workers"]]
    assert load_plan(Path("plan.json")).server == ranking[0]["server"]


@pytest.mark.parametrize(("top", "rows"), [("3", 3), ("0", 12), ("99", 12)])
def test_the_table_has_as_many_rows_as_are_asked_for(profiled: Planner, top: str, rows: int) -> None:
    shown = profiled("recommend", "--top", top)
    assert (shown.code, shown.err) == (0, "")
    assert f"best {rows} of 12 by EDP" in shown.out
    assert sum(bool(re.match(r" *\d+=? ", line)) for line in shown.out.splitlines()) == rows
    assert "wrote plan.json" in shown.out


def test_what_if_options_reach_the_prediction(profiled: Planner) -> None:
    def best(*arguments: str) -> dict[str, float]:
        row = json.loads(profiled("recommend", "--metric", "time", "--json", *arguments).out)["ranking"][0]
        assert isinstance(row, dict)
        return row

    assert best("--steps", "200000")["time_s"] == pytest.approx(2 * best()["time_s"])
    assert best("--rate", "desktop=1mbit", "--include", "tx2", "--server", "tx2")["time_s"] > best()["time_s"]
    assert best("--base-watts", "1000")["power_w"] == pytest.approx(best()["power_w"] + 1000)
    assert best("--exclude", "desktop")["time_s"] > best()["time_s"]


@pytest.mark.parametrize("what_if", [("--rate", "desktop=1mbit"), ("--batch-size", "16")])
def test_a_what_if_writes_a_plan_only_where_it_is_told_to(profiled: Planner, what_if: tuple[str, str]) -> None:
    assert profiled("recommend").code == 0
    before = Path("plan.json").read_bytes()
    option = "--rate desktop" if what_if[0] == "--rate" else "--batch-size 16"
    told = f"plan.json was not changed, because {option} is a what-if; -o FILE writes its plan"
    assert told in " ".join(profiled("recommend", *what_if).out.split())
    for form in ("--json", "--csv"):
        assert profiled("recommend", *what_if, form).err.splitlines()[-1] == told
    assert "wrote other.json" in profiled("recommend", *what_if, "-o", "other.json").out
    assert load_plan(Path("other.json")).run.batch == (16 if "16" in what_if else 32)
    assert Path("plan.json").read_bytes() == before


def test_a_fleet_without_watts_is_ranked_by_time_unless_a_metric_of_power_is_asked_for(planner: Planner) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    json_records.save(unknown, Path("profile.json"))
    shown = planner("recommend")
    assert (shown.code, load_plan(Path("plan.json")).metric) == (0, "time")
    assert "ranked by time, because no watts are known of a, b; to rank by" in " ".join(shown.out.split())
    assert "no watts are known of a, b; give idle_watts" in planner("recommend", "--metric", "edp").problem()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--batch-size", "4096"), "run `planner profile --model net --batch-size 4096`"),
        (("--metric", "energi"), 'did you mean "energy"? (known: time, power, energy, edp)'),
        (("--metric", ""), "--metric : unknown"),
        (("--metric", "time", "--weights", "energy=1"), "--metric time and --weights energy=1: choose one of them"),
        (("--weights", "time=x"), "--weights 'time=x': expected METRIC=NUMBER"),
        (("--weights", ""), "--weights '': expected METRIC=NUMBER"),
        (("--weights", "time=0"), "at least one weight must be above 0"),
        (("--rate", "desktop"), "--rate desktop: write DEVICE=RATE, as in --rate desktop=100mbit"),
        (("--rate", "desktop=fast"), "kbit, mbit, gbit"),
        (("--rate", "laptop=1mbit"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--server", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--include", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--exclude", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--model", "resnet"), "profiled: net"),
        (("--framework", "jax"), "profiled: torch"),
        (("--base-watts", "-5"), "--base-watts: -5 is out of range"),
        (("--stream", "replay:fast"), "--stream replay:fast: replay:fast: rates are one of S1, S2, S1', S2'"),
        (("--clip-norm", "0"), "--clip-norm: 0 is out of range; give a number above 0"),
        (("--choose", "13"), "--choose 13: the ranking has places 1 to 12"),
        (("--csv", "--json"), "--csv and --json: choose one of them"),
        (("--out", "none/plan.json"), "cannot write none/plan.json: No such file or directory"),
        (("none.json",), "cannot read none.json: No such file or directory; run `planner profile"),
    ],
)
def test_what_recommend_cannot_do_is_one_line(profiled: Planner, arguments: tuple[str, ...], told: str) -> None:
    assert told in profiled("recommend", *arguments).problem()
    assert not Path("plan.json").exists()


def test_without_a_profile_recommend_says_how_to_make_one(planner: Planner) -> None:
    assert "run `planner profile` first" in planner("recommend").problem()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ('{"schema": 1, "devices": {', "profile.json, line 1: not JSON"),
        ('{"schema": 99}', "schema: written as 99, this planner reads 1"),
        ("[]", "profile.json: expected an object, found []"),
        ("\x00", "not JSON"),
    ],
)
def test_a_broken_profile_is_named_with_the_remedy(planner: Planner, text: str, told: str) -> None:
    Path("profile.json").write_text(text)
    problem = planner("recommend").problem()
    assert told in problem
    assert "run `planner profile" in problem
