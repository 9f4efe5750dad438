"""Devices that share a kernel are timed while all of them compute.

They share its memory and often its processors: containers, or a GPU and the cores of its host.
"""

from collections.abc import Iterable, Mapping

from planner.agents.call import Call
from planner.errors import RemoteError
from planner.profile.step_timing import await_ready
from profilers import stats
from profilers.records.readings import Samples
from profilers.records.steps import Contention, Repeat

#: Shortest time, in seconds, in which all compute, and the fewest steps of the slowest device.
LEAST_S, FEWEST = 1.0, 3


def window_s(steps_s: Iterable[float]) -> float:
    """Seconds for which devices compute together. steps_s: of a step of each, alone."""
    return max(LEAST_S, FEWEST * max(steps_s))


def together(calls: Mapping[str, Call], silence_s: float) -> tuple[dict[str, Repeat], dict[str, RemoteError]]:
    """What devices measured while all of them computed, and why others did not.

    calls: ``RepeatSteps`` that wait for the word, by device. They get it once all have begun.
    silence_s: after which a device counts as hung.
    """
    for call in calls.values():
        await_ready(call, silence_s)
    found: dict[str, Repeat] = {}
    failed: dict[str, RemoteError] = {}
    for name, call in calls.items():
        try:
            if not call.ended:
                call.go()
        except RemoteError as error:
            failed[name] = error
    for name, call in calls.items():
        if name not in failed:
            try:
                found[name] = call.result(silence_s)
            except RemoteError as error:
                failed[name] = error
    return found, failed


def contention(names: Iterable[str], alone: Samples, made: Samples) -> Contention:
    """How much longer a device's gradients took among these devices than alone."""
    return Contention(
        tuple(names), stats.mean(made.values) / stats.mean(alone.values), stats.standard_error(made.values)
    )
