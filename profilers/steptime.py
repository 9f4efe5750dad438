"""This module times training steps: a warm-up, then steps until their mean is precise."""

import contextlib
import time
from typing import Callable, Iterator, List, NamedTuple, Tuple

from profilers import stats
from profilers.records.readings import Samples

#: Seconds of one step's phases: gradient, copy to and from the host, update.
Phases = Tuple[float, float, float]

PROTOCOLS = ("adaptive", "paper")
#: Most and fewest steps of a warm-up, and the seconds after which it ends, steady or not.
WARMUP_LIMIT, WARMUP_MINIMUM, WARMUP_S = 300, 2, 1.0
#: Fewest steps that are timed, and the most.
TIMED_MINIMUM, TIMED_LIMIT = 3, 3000
#: Shortest window. The speed of a machine changes from second to second, which the spread of
#: neighbouring steps does not show.
WINDOW_S = 1.0
#: Seconds after which timing ends though the mean is not precise.
LONGEST_S = 2.0
#: Seconds between two checks of the precision: a check takes as long as a short step.
CHECK_S = 0.5
#: Half of the 95 % interval of the mean step, as a share of it, that is precise enough.
PRECISION = 0.03
#: Steps of the warm-up of a repeat.
REPEAT_WARMUP = 2
#: Gu et al., section IV: steps 1-300 warm up, 301-400 are timed, counters are sampled over 401-500.
PAPER_STEPS = (300, 100, 100)


class StepTimes(NamedTuple):
    """Raw seconds per phase; those of the warm-up are separate.

    steady: the warm-up ended. precise: the mean step is known within PRECISION.
    reason: its end: ``precise``, ``limit``, ``protocol`` or ``stopped``.
    """

    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    steady: bool
    precise: bool
    reason: str


class StepProgress(NamedTuple):
    """Progress: ``steps`` of a stage have been made.

    stage: ``ready``, ``warm-up``, ``timed``, ``counters``, or of a repeat ``again``.
    step_s: median step; 0 before one.
    """

    stage: str
    steps: int
    step_s: float


class Hooks(NamedTuple):
    """Callbacks of a measurement.

    window_start, window_end: bound the window of counters and sensors; both or none are called.
    should_stop: whether to stop now.
    """

    progress: Callable[[StepProgress], None] = lambda progress: None
    window_start: Callable[[], None] = lambda: None
    window_end: Callable[[], None] = lambda: None
    should_stop: Callable[[], bool] = lambda: False


SILENT = Hooks()


def measure(
    step: Callable[[], Phases], protocol: str = "adaptive", hooks: Hooks = SILENT, window_s: float = WINDOW_S
) -> StepTimes:
    """Call ``step`` repeatedly and collect the seconds of its phases.

    ``adaptive``: steps of warm-up until ``stats.warmup_ended``, for WARMUP_S at most. Then at least
    three steps and ``window_s``, until the mean is known within 3 %, or for LONGEST_S. The window
    spans the timed steps.
    ``paper``: 300 steps of warm-up, 100 timed, 100 in the window (not timed).
    Raises ValueError for another protocol, and any exception of ``step``.
    """
    if protocol not in PROTOCOLS:
        raise ValueError("unknown protocol %r; known: %s" % (protocol, ", ".join(PROTOCOLS)))
    loop = _TimedLoop(step, hooks)
    return _adaptive(loop, window_s) if protocol == "adaptive" else _paper(loop)


def measure_repeat(
    step: Callable[[], Phases],
    seconds: float,
    hooks: Hooks = SILENT,
    begins: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.monotonic,
) -> StepTimes:
    """Repeat a measurement: a few steps of warm-up, then steps for so many seconds, one at least.

    Between both it tells of the stage ``ready``, and makes steps that do not count until it
    ``begins``.
    """
    loop = _TimedLoop(step, hooks)
    warmup = loop.run("warm-up", REPEAT_WARMUP)
    hooks.progress(StepProgress("ready", len(warmup), 0.0))
    while not begins() and not loop.asked_to_stop():
        step()
    began_s = clock()
    with loop.window():
        timed = loop.run("again", TIMED_LIMIT, lambda totals: clock() - began_s >= seconds, check_s=0.0)
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


class _TimedLoop:
    """Runs the stages of a measurement and remembers whether it was stopped."""

    def __init__(self, step: Callable[[], Phases], hooks: Hooks) -> None:
        self._step = step
        self._hooks = hooks
        self.stopped = False

    def run(
        self,
        stage: str,
        limit: int,
        done: Callable[[List[float]], bool] = lambda totals: False,
        check_s: float = CHECK_S,
    ) -> List[Phases]:
        """Run at most ``limit`` steps; ``done`` may end the stage early by the step seconds.

        check_s: seconds of steps between two questions whether it is.
        """
        phases: List[Phases] = []
        totals: List[float] = []
        checked = 0
        while len(phases) < limit and not self.asked_to_stop():
            phases.append(self._step())
            totals.append(sum(phases[-1]))
            if sum(totals[checked:]) < check_s:
                continue
            checked = len(totals)
            self._hooks.progress(StepProgress(stage, len(phases), stats.median(totals)))
            if done(totals):
                break
        return phases

    @contextlib.contextmanager
    def window(self) -> Iterator[None]:
        """What runs within it is a window of counters and sensors, unless it is stopped before."""
        if self.asked_to_stop():
            yield
            return
        self._hooks.window_start()
        try:
            yield
        finally:
            self._hooks.window_end()

    def asked_to_stop(self) -> bool:
        """Whether to stop now."""
        self.stopped = self.stopped or self._hooks.should_stop()
        return self.stopped


def _adaptive(loop: _TimedLoop, window_s: float) -> StepTimes:
    def warmed_up(totals: List[float]) -> bool:
        settled = stats.warmup_ended(totals) is not None or sum(totals) >= WARMUP_S
        return len(totals) >= WARMUP_MINIMUM and settled

    def timed_enough(totals: List[float]) -> bool:
        timed_s = sum(totals)
        if len(totals) < TIMED_MINIMUM or timed_s < window_s:
            return False
        return timed_s >= max(window_s, LONGEST_S) or _precise(totals)

    warmup = loop.run("warm-up", WARMUP_LIMIT, warmed_up)
    with loop.window():
        timed = loop.run("timed", TIMED_LIMIT, timed_enough)
    return _times(warmup, timed, "stopped" if loop.stopped else "limit")


def _paper(loop: _TimedLoop) -> StepTimes:
    warmup = loop.run("warm-up", PAPER_STEPS[0])
    timed = loop.run("timed", PAPER_STEPS[1])
    with loop.window():
        loop.run("counters", PAPER_STEPS[2])
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


def _times(warmup: List[Phases], timed: List[Phases], reason: str) -> StepTimes:
    precise = len(timed) >= TIMED_MINIMUM and _precise([sum(phases) for phases in timed])
    steady = stats.warmup_ended([sum(phases) for phases in warmup]) is not None
    gradient_s, copy_s, update_s = (
        Samples("s", tuple(step[i] for step in timed), tuple(step[i] for step in warmup)) for i in range(3)
    )
    if precise and reason == "limit":
        reason = "precise"
    return StepTimes(gradient_s, copy_s, update_s, steady, precise, reason)


def _precise(totals: List[float]) -> bool:
    return stats.relative_interval95(totals) <= PRECISION
