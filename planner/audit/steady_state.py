"""The steady state of a short run: from two steps of every member until the time is over."""

import itertools
import math
from collections.abc import Sequence

from backends.protocol.events import Dropped, MemberTelemetry, Progress
from planner.agents.call import Event
from planner.errors import RunError
from planner.plan.file import Plan
from planner.profile.power_history import average
from planner.profile.power_readings import whole_reading
from planner.run.supervisor import MemberLost
from planner.train.events import MemberGivenUp, TimeOver
from profilers.records.readings import Window

#: Steps of every member before the steady state.
WARM_STEPS = 2
#: A member that makes a smaller part of all steps is not waited for.
LEAST_SHARE = 0.02
#: Steps, or rounds of local steps, of the slowest member in the steady state.
FEWEST_STEPS, FEWEST_ROUNDS = 5, 3
#: Seconds of a run before its first step is counted, and after the last.
ENDS_S = 2.5
LOSSES = (MemberLost, Dropped, MemberGivenUp)


class SteadyState:
    """Collects what a run reports while all of its members are busy."""

    def __init__(self, plan: Plan) -> None:
        total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
        self._counted = [each.name for each in plan.workers if 1.0 / each.cycle_s >= LEAST_SHARE * total]
        self._counts: list[Progress] = []
        self._windows: dict[str, list[Window]] = {name: [] for name in plan.names}
        self._over = False
        self._lost = ""

    def on_event(self, name: str, event: Event) -> None:
        """An event of the run, and what it came from."""
        if self._over:
            return
        if isinstance(event, LOSSES):
            self._lost = f"{event.member if isinstance(event, Dropped) else name} was lost: {event.reason}"
        elif isinstance(event, Progress) and self._are_warm(event):
            self._counts.append(event)
        elif isinstance(event, MemberTelemetry) and self._counts:
            self._windows[name].append(event.window)
        self._over = isinstance(event, TimeOver)

    def step_s(self) -> float:
        """Seconds of a step of all members together.

        Raises RunError for a run that lost a member, and for one with too few steps.
        """
        if self._lost:
            raise RunError(self._lost)
        found = seconds_of_step(self._counts)
        if found is None:
            raise RunError("too few steps to count; audit with more --seconds")
        return found

    def watts(self) -> float | None:
        """Watts of all members; None unless a sensor of the whole device measured each."""
        # The first window begins before the steady state.
        readings = [whole_reading(average(windows[1:])) for windows in self._windows.values()]
        watts = [reading.watts for reading in readings if reading is not None and reading.watts is not None]
        return math.fsum(watts) if len(watts) == len(readings) else None

    def _are_warm(self, count: Progress) -> bool:
        steps = {name: member.steps for name, member in count.workers.items()}
        return all(steps.get(name, 0) >= WARM_STEPS for name in self._counted)


def seconds_of_step(counts: Sequence[Progress]) -> float | None:
    """Between the first and the last count that had grown; None for fewer than two of them."""
    grown = [after for before, after in itertools.pairwise(counts) if after.done > before.done]
    if len(grown) < 2:
        return None
    return (grown[-1].elapsed_s - grown[0].elapsed_s) / (grown[-1].done - grown[0].done)


def lasting_s(plan: Plan, seconds: float) -> float:
    """How long a run lasts that has so many seconds of steady state, longer for slow members."""
    total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
    slowest_s = max(each.cycle_s for each in plan.workers if 1.0 / each.cycle_s >= LEAST_SHARE * total)
    local = plan.run_strategy.local
    round_s = local.seconds or (local.every or 1) * slowest_s
    steady_s = (1 + FEWEST_ROUNDS) * round_s if local else FEWEST_STEPS * slowest_s
    warm_s = max(worker.build_s for worker in plan.workers) + WARM_STEPS * slowest_s + local.after / total
    return warm_s + ENDS_S + max(seconds, steady_s)
