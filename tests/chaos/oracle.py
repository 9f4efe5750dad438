"""The oracle says what a run must have been like, given its fault; it sees plain values only."""

import math
from typing import NamedTuple

from tests.chaos import scenario
from tests.chaos.observed import Ended, Observed
from tests.chaos.scenario import PLANNER, Scenario

INTERRUPTED, KILLED = 130, -9
#: Faults after which the operator cannot reach a device when the run ends.
AWAY = (scenario.SWITCH_OFF, scenario.CUT, scenario.SSHD)
#: Faults that no run may even feel.
HARMLESS = (scenario.NOTHING, scenario.SLOW_DISK, scenario.CLOCK, scenario.CHILDREN)


class Expected(NamedTuple):
    """codes: exit codes, one of which it must be.

    names: what a message must name, where the run failed.
    lost: most steps between the latest and the saved weights.
    is_gone: whether what hosts the run, or the operator, is gone: a checkpoint that was on its way
        is lost then.
    """

    codes: tuple[int, ...]
    names: tuple[str, ...]
    lost: int
    is_gone: bool = False


def expected(case: Scenario) -> Expected:
    """What the documents promise for a fault that comes before the run's end."""
    fault, in_flight = case.fault, max(case.surplus, len(case.devices))
    interval = case.checkpoint_every + in_flight
    if fault.kind in HARMLESS:
        return Expected((0,), (), 0)
    if fault.kind == scenario.CTRL_C:
        return Expected((INTERRUPTED,), (), in_flight)
    if fault.kind == scenario.OPERATOR_KILLED:
        return Expected((KILLED,), (), interval, True)
    if fault.kind in scenario.ERRORS:
        return Expected((1,), ("ZeroDivisionError",), in_flight)
    if fault.kind in (scenario.FULL_DISK, scenario.OPERATOR_DISK):
        stays = math.isinf(fault.lasts_s)
        return Expected((0, 1) if stays else (0,), ("No space left",), interval)
    return _of_a_loss(case, interval)


def _of_a_loss(case: Scenario, interval: int) -> Expected:
    """A process or a device that is gone, is silent or hangs, perhaps too briefly to be seen."""
    fault = case.fault
    somewhere = fault.kind == scenario.HANG_EVALUATION  # any member may evaluate
    names = () if somewhere else (fault.device,)
    ends = case.needs_all if somewhere else case.needs_all or case.hits_host
    if fault.after == 0 and not (ends and math.isinf(fault.lasts_s)):
        return Expected((0, 1), names, interval)  # a run begins with all members or not at all
    if not ends:
        return Expected((0,), (), 0)
    if fault.kind == scenario.SSHD or not math.isinf(fault.lasts_s):
        return Expected((0, 1), (), interval, True)  # a host that is back says itself whom it has lost
    return Expected((1,), names, interval, True)


def violations(case: Scenario, seen: Observed) -> list[str]:
    """What was not as it must be; empty for a sound run."""
    wanted = expected(case) if seen.injected else Expected((0,), (), 0)
    found = [*_of_end(case, wanted, seen.run), *_of_loss(wanted, seen)]
    left = [each for each in seen.left if not _may_stay(case, each, seen.run.errors)]
    if left:
        found.append(f"left behind: {'; '.join(left)}")
    if seen.resumed is not None:
        found += [f"resumed: {each}" for each in _of_end(case, Expected((0,), (), 0), seen.resumed)]
    return found


def _may_stay(case: Scenario, left: str, errors: str) -> bool:
    """A checkpoint that nobody could fetch or remove stays on its device, for whoever wants it."""
    file, _, name = left.rpartition("/")
    if not (name.startswith("run-") and file.startswith("file")):
        return False
    unreached = case.fault.kind in AWAY and f"cache-{case.fault.device}" in file
    return unreached or case.fault.kind == scenario.OPERATOR_KILLED or name in errors


def _of_end(case: Scenario, wanted: Expected, run: Ended) -> list[str]:
    found = []
    if run.code is None:
        return ["still running after the limit"]
    if run.code not in wanted.codes:
        found.append(f"exit code {run.code}, not {' or '.join(map(str, wanted.codes))}: {_last(run)}")
    if "Traceback" in run.errors:
        found.append("a traceback on standard error")
    if run.code == 0:
        found += _of_success(case, run)
    elif run.code != KILLED:
        found += _of_message(wanted, run)
    if run.replay is not None and run.replay.problem:
        found.append(f"replay: {run.replay.problem}")
    return found


def _of_success(case: Scenario, run: Ended) -> list[str]:
    most = case.steps + case.surplus
    found = []
    if run.messages:
        found.append(f"succeeded with the message {run.messages[0]}")
    if run.made is None:
        found.append("succeeded without a result")
    if run.saved is None or not case.steps <= run.saved <= most:
        found.append(f"{case.steps} steps asked for, saved are the weights of step {run.saved}")
    return found


def _of_message(wanted: Expected, run: Ended) -> list[str]:
    """A failure is one line, the last, which names the cause and how to go on."""
    message = _last(run)
    if message not in run.messages or sum("--resume" in each for each in run.messages) > 1:
        return [f"not one message at the end: {run.errors.strip().splitlines()[-2:]}"]
    found = [f"the message does not name {name}: {message}" for name in wanted.names if name not in message]
    if run.saved is not None and "--resume" not in message:
        found.append(f"the message does not say how to go on: {message}")
    return found


def _of_loss(wanted: Expected, seen: Observed) -> list[str]:
    if seen.run.code in (0, None):
        return []
    saved = max(seen.run.saved or 0, seen.run.named or 0)
    due = seen.written if wanted.is_gone and saved >= seen.carried else saved
    lost = seen.reached - due
    return [f"{lost} steps are lost, not {wanted.lost} at most"] if lost > wanted.lost else []


def _last(run: Ended) -> str:
    return (run.errors.strip().splitlines() or ["no output"])[-1]


def outcome(case: Scenario, seen: Observed) -> str:
    """In the words of the table of faults."""
    if not seen.injected:
        return "came after the end"
    if seen.run.code == 0:
        return "all steps made"
    if seen.run.code == INTERRUPTED:
        return "ended with a checkpoint"
    return "ended, then resumed to the last step" if seen.resumed and seen.resumed.code == 0 else "ended"


def engine_name(case: Scenario) -> str:
    return "own" if case.engine == PLANNER else "torch.distributed"
