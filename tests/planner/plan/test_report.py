"""A ranking as JSON and as CSV."""

import csv
import io
import json

import pytest

from planner.plan.recommend import recommend
from planner.plan.report import to_csv, to_json
from planner.profile.file import Profile
from planner.provenance import Provenance
from profilers.records.json_values import json_value
from tests.planner import profiles
from tests.planner.plans import NAMEPLATE
from tests.planner.requests import asked

TIME, EDP = {"time": 1.0}, {"edp": 1.0}


def fleet() -> Profile:
    return profiles.fleet(0.5, 0.6, 2.0, spread=0.02)


def test_every_cluster_is_ranked_best_first() -> None:
    found = to_json(recommend(fleet(), asked(TIME)))
    assert list(found) == [
        "metric",
        "model",
        "strategy",
        "frameworks",
        "ranking",
        "notes",
        "details",
        "left_out",
        "offers",
    ]
    assert (found["metric"], found["model"], len(found["ranking"])) == ("time", "net", 12)
    best = found["ranking"][0]
    assert best["workers"] == ["a", "b", "c"]
    assert best["energy_j"] == pytest.approx(best["power_w"] * best["time_s"])
    assert best["edp_js"] == pytest.approx(best["energy_j"] * best["time_s"])
    assert best["tie"] is True
    times = [row["time_s"] for row in found["ranking"]]
    assert times == sorted(times)
    json.dumps(found, allow_nan=False)


def test_the_table_holds_a_line_a_cluster() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(recommend(fleet(), asked(TIME))))))
    assert len(rows) == 12
    assert rows[0]["workers"] == "a b c"
    assert float(rows[0]["low"]) <= float(rows[0]["time_s"]) <= float(rows[0]["high"])


def test_wherever_watts_are_written_stands_where_they_come_from() -> None:
    slowed = profiles.device(profiles.step(0.6, slowdown=4.0))
    found = recommend(profiles.profile({"a": profiles.device(profiles.step(0.5)), "b": slowed}), asked(EDP))
    emulated = NAMEPLATE._replace(emulated=True, detail="fleet file, slowdown 4")
    sources = {"a": NAMEPLATE, "b": emulated}
    for row in to_json(found)["ranking"]:
        assert row["power_sources"] == {name: json_value(sources[name]) for name in row["workers"]}
        assert row["provenance"] == json_value(Provenance.joined(sources[name] for name in row["workers"]))
    for line in csv.DictReader(io.StringIO(to_csv(found))):
        assert line["power_sources"] == "; ".join(f"{name}: {sources[name].text}" for name in line["workers"].split())


def test_what_is_to_be_known_of_a_ranking_is_in_its_json() -> None:
    devices = {**fleet().devices, "dead": profiles.device()._replace(steps=(), error="lost")}
    found = to_json(recommend(profiles.profile(devices), asked(TIME, batch=64)))
    assert [note.partition(" lies")[0] for note in found["notes"]] == ["--batch-size 64"]
    assert found["left_out"] == {"dead": "lost"}
