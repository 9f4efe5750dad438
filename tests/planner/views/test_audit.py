import json
import random
from pathlib import Path

import pytest

from planner.audit.scoring.coverage import Interval
from planner.audit.scoring.measured import Extrapolation, MeasuredRun
from planner.audit.scoring.scoreboard import Scoreboard, score
from planner.errors import AuditError
from planner.provenance import Provenance
from planner.views import audit as view
from planner.views import audit_json, auditplot
from tests.planner import audits
from tests.planner.screens import row, shown

EMULATED = Provenance("sensor", ("module",), True)


def board(source: Provenance = EMULATED, watts: bool = True) -> Scoreboard:
    """Two audits of names as long as any, some 15 % off."""
    shaken = random.Random(1)
    fleet = audits.fleet(0.1, 0.17, 0.3)

    def shake(run: MeasuredRun) -> MeasuredRun:
        changes = {"provenance": source, **({} if watts else {"watts": None})}
        workers = {name: each._replace(**changes) for name, each in run.workers.items()}
        return audits.faster(run._replace(workers=workers), shaken.gauss(1, 0.15))

    foretold = (Extrapolation("net", "a", ("a", "b"), 99.0, 100.0),)
    labels = ("dlion-hetero-sys-a", "gu-100")
    return score([audits.audit(fleet, audits.as_predicted(fleet, 2, shake=shake), label, foretold) for label in labels])


def test_the_summary_has_the_figures_of_the_paper_beside_ours() -> None:
    made = view.render(board())
    assert row(shown(made), "best one chosen").endswith("76.7 %")
    assert "worst regret" in shown(made)


def test_the_worst_alone_are_shown_unless_all_are_asked_for() -> None:
    made = board()
    assert "worst 3 of 24 configurations" in shown(view.render(made, top=3), 120)
    assert "worst 24 of 24 configurations" in shown(view.render(made, top=0), 120)


def test_emulated_watts_are_marked_everywhere() -> None:
    text = shown(view.render(board()))
    assert "* emulated" in text
    assert "error of power*, clusters" in text
    assert "a*+b* at" in text
    assert "*" not in shown(view.render(board(audits.SOURCE)))


def test_the_summary_says_that_emulated_power_has_the_form_of_the_prediction() -> None:
    emulated, real = (shown(view.render(board(source)), 120) for source in (EMULATED, audits.SOURCE))
    for text, against in ((emulated, "an emulation of its form"), (real, "sensors")):
        rows = [line for line in text.splitlines() if line.startswith("  scored against")]
        assert len(rows) == 2 and all(against in line for line in rows)
    assert "has the planner's own form" in emulated and "has the planner's own form" not in real
    declared = Provenance("nameplate", ("board",))
    for source, against in (
        (EMULATED, "an emulation of its form"), (audits.SOURCE, "sensors"), (declared, "its own form")
    ):  # fmt: skip
        assert audit_json.to_json(board(source))["power_scored_against"] == against


def test_intervals_of_clusters_are_counted_by_kind_of_exchange_where_there_are_several() -> None:
    def run(exchange: str, alone: bool, inside: bool) -> Interval:
        return Interval("lab", "net", exchange, alone, inside)

    kinds = [run("ring, rounds", False, True), run("pairs, asynchronous", False, False), run("other", True, False)]
    several = board()._replace(intervals=tuple(kinds))
    text = shown(view.render(several))
    assert "1 of 1" in row(text, "  exchange: ring, rounds")
    assert "exchange: other" not in text and "exchange:" not in shown(view.render(board()))
    left_out = several._replace(left_out=(run("ring, rounds", False, False),))
    assert "0 of 1" in row(shown(view.render(left_out)), "  exchange: ring, rounds")
    assert audit_json.to_json(left_out)["summary"]["coverage_by_exchange"]["ring, rounds"] == {
        "clusters": {"hits": 1, "of": 1}, "left_out": {"hits": 0, "of": 1}
    }  # fmt: skip


def test_json_is_complete_and_has_no_nan() -> None:
    made = board()
    told = json.loads(json.dumps(audit_json.to_json(made), allow_nan=False))
    assert told["emulated"] is True
    assert len(told["configurations"]) == len(made.configurations)
    first = told["configurations"][0]
    assert first["emulated"] is True
    told_of = {"kind": "sensor", "covers": ["module"], "emulated": True, "detail": ""}
    assert first["workers"]["a"]["provenance"] == told_of
    assert set(first["figures"]["time"]) == {"measured", "predicted", "error", "steady_error"}
    assert set(told["rules"]) == set(made.rules)
    assert len(told["rules"]["planner"]["selections"]) == 16
    assert told["summary"]["selections"]["best"]["of"] == 16
    assert told["summary"]["breakdown"]["audit"]["gu-100"]["best"]["of"] == 8
    assert set(told["summary"]["errors_by"]["model"]["net"]) == {"alone", "clusters"}
    assert told["audits"]["gu-100"]["extrapolations"][0]["error"] == pytest.approx(-0.01)
    assert told["audits"]["gu-100"]["overheads"][0]["share"] > 0


def test_unknown_watts_are_null_and_shown_as_unknown() -> None:
    made = board(watts=False)
    told = json.loads(json.dumps(audit_json.to_json(made), allow_nan=False))
    assert told["configurations"][0]["figures"]["power"]["measured"] is None
    assert {each["metric"] for each in told["rules"]["planner"]["selections"]} == {"time"}
    assert "-" in shown(view.render(made), 120)


def test_a_single_configuration_makes_a_table_too() -> None:
    fleet = audits.fleet(0.1)
    alone = score([audits.audit(fleet, audits.as_predicted(fleet))])
    assert "worst 1 of 1 configurations" in shown(view.render(alone), 120)
    json.dumps(audit_json.to_json(alone), allow_nan=False)


@pytest.mark.parametrize(("name", "begins"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml"), ("x.PDF", b"%PDF")])
def test_the_plot_is_written_in_the_format_of_its_name(tmp_path: Path, name: str, begins: bytes) -> None:
    auditplot.save(board(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="ends in .png, .svg, .pdf"):
        auditplot.save(board(), tmp_path / "x.jpg")
