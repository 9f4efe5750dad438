"""What counts as reached by a run, from which the oracle takes what was saved."""

import json
from pathlib import Path

import pytest

from tests.chaos import scenario
from tests.chaos.journal import Replay
from tests.chaos.observed import Ended
from tests.chaos.run import _reached
from tests.chaos.scenario import Fault, Scenario


@pytest.mark.parametrize(("kind", "reached"), [(scenario.KILL, 128), (scenario.OPERATOR_KILLED, 106)])
def test_steps_after_the_end_of_the_operator_are_not_counted(kind: str, reached: int, tmp_path: Path) -> None:
    case = Scenario(
        1, "planner", "allreduce", ("anna", "bert"), 288, 6, Fault(kind, "anna", False, 0.4, 1.0), (0.02, 0.06)
    )
    log = tmp_path / "runs" / "first" / "events.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"t_s": 9.6, "type": "progress", "done": 106}) + "\n")
    assert _reached(case, tmp_path, Ended(1, "", None, 108, None, Replay("", 128))) == reached
