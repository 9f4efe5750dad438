"""A scoreboard as JSON, with everything it holds."""

import math
from typing import Any

from planner.audit.scoring import scoreboard
from planner.audit.scoring.scoreboard import ERROR_GROUPS, GROUPS, Scoreboard


def to_json(board: Scoreboard) -> dict[str, Any]:
    """{"audits", "emulated", "power_scored_against", "summary", "rules", "configurations",
    "paper"}; what is unknown is null.
    """
    made: dict[str, Any] = _plain(
        {
            "audits": {
                label: {
                    "steps": steps,
                    "fitted": board.fitted[label],
                    "missing_runs": board.missing[label],
                    "extrapolations": [{**e._asdict(), "error": e.error} for e in board.extrapolations[label]],
                    "overheads": [{**each._asdict(), "share": each.share} for each in board.overheads[label]],
                }
                for label, steps in board.steps.items()
            },
            "emulated": board.emulated,
            "power_scored_against": board.power_scored_against,
            "summary": {
                "selections": board.planner.summary,
                "breakdown": {group: board.breakdown(group) for group in GROUPS},
                "errors": _errors_json(board),
                "errors_by": {
                    group: {name: _errors_json(board, **{group: name}) for name in board.names(group)}
                    for group in ERROR_GROUPS
                },
                "coverage": _coverage_json(board),
                "coverage_left_out": {
                    "alone": board.left_out_coverage(alone=True),
                    "clusters": board.left_out_coverage(alone=False),
                },
                "coverage_by": {
                    group: {name: _coverage_json(board, **{group: name}) for name in board.names(group)}
                    for group in ERROR_GROUPS
                },
                "coverage_by_exchange": {
                    kind: {
                        "clusters": board.coverage(alone=False, exchange=kind),
                        "left_out": board.left_out_coverage(alone=False, exchange=kind),
                    }
                    for kind in board.exchanges
                },
                "worst_run": {"alone": board.worst_run(alone=True), "clusters": board.worst_run(alone=False)},
                "single_runs": board.single,
                "extrapolation": board.extrapolated(),
            },
            "rules": {
                name: {"summary": rule.summary, "errors": rule.errors, "selections": rule.selections}
                for name, rule in board.rules.items()
            },
            "configurations": board.configurations,
            "paper": {
                **scoreboard.REPORTED._asdict(),
                "by_model": {"best": scoreboard.BEST, "step_error": scoreboard.STEP_ERROR},
                "source": scoreboard.SOURCE,
            },
        }
    )
    return made


def _errors_json(board: Scoreboard, **where: str) -> dict[str, Any]:
    return {who: board.errors(alone, **where) for who, alone in (("alone", True), ("clusters", False))}


def _coverage_json(board: Scoreboard, **where: str) -> dict[str, Any]:
    return {who: board.coverage(alone, **where) for who, alone in (("alone", True), ("clusters", False))}


def _plain(value: Any) -> Any:
    """JSON values of records, null for what is no finite number."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return _plain(value._asdict()) if hasattr(value, "_asdict") else [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
