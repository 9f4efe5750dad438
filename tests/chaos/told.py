"""What a run has told in its log of events, as far as that is written."""

import json
from pathlib import Path
from typing import Any

#: Seconds in which an agent starts that fetches checkpoints, and fetches one.
CARRIED_S = 2.0
#: Events by which a run tells that something has happened.
NOTICES = ("silent", "dropped", "member_lost", "checkpoint_failed", "stopping", "left", "diverged")


def _events(folder: Path) -> list[dict[str, Any]]:
    """Of all runs in the folder, as far as they are written."""
    lines = [line for path in folder.glob("runs/*/events.jsonl") for line in path.read_bytes().splitlines()]
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:  # half of a line
            continue
    return found


def has_noticed(folder: Path, since_s: float) -> bool:
    """Whether the run has told of something since then."""
    for path in folder.glob("runs/*/events.jsonl"):
        if path.stat().st_mtime >= since_s and any(event["type"] in NOTICES for event in _events(folder)):
            return True
    return False


def latest_step(folder: Path) -> int:
    """The latest step that the host has told of."""
    events = _events(folder)
    done = [event["done"] for event in events if event["type"] == "progress"]
    return max([*done, *(event["account"]["done"] for event in events if event["type"] == "run_ended")], default=0)


def checkpoints(folder: Path, fault_s: float) -> tuple[int, int]:
    """The step of the host's newest checkpoint, and of that which could be here by the fault."""
    events = _events(folder)
    written = [(event["t_s"], event["step"]) for event in events if event["type"] == "checkpoint_written"]
    if not written:
        return 0, 0
    opened_s = max(path.stat().st_mtime for path in folder.glob("runs/*/events.jsonl")) - events[-1]["t_s"]
    carried = [step for t_s, step in written if opened_s + t_s <= fault_s - CARRIED_S]
    return written[-1][1], max(carried, default=0)
