"""This module times training steps: a warm-up, then steps until their mean is precise."""

from typing import Callable, List, NamedTuple, Tuple

from profilers import stats
from profilers.records.readings import Samples

#: Seconds of one step's phases: gradient, copy to and from the host, update.
Phases = Tuple[float, float, float]

PROTOCOLS = ("adaptive", "paper")
WARMUP_LIMIT = 300
#: Fewest steps of a warm-up that ends at the time limit.
WARMUP_MINIMUM = 10
TIMED_MINIMUM = 30
#: Steps that are timed even if their mean is not precise, and the most that are timed at all.
TIMED_ENOUGH, TIMED_LIMIT = 500, 3000
#: Steps of a repeat: those of its warm-up, and the fewest timed.
REPEAT_WARMUP, REPEAT_MINIMUM = 5, 10
#: Shortest window. The speed of a machine changes from second to second, which the spread of
#: neighbouring steps does not show.
WINDOW_S = 2.0
#: Seconds that are timed even if the mean is precise, where the budget has room for them.
TIMED_S = 4.0
#: Steps and seconds between two checks of the precision: a check takes as long as a short step.
CHECK_EVERY, CHECK_S = 5, 0.5
PRECISION = 0.01
#: Gu et al., section IV: steps 1-300 warm up, 301-400 are timed, counters are sampled over 401-500.
PAPER_STEPS = (300, 100, 100)


class StepTimes(NamedTuple):
    """Raw seconds per phase; those of the warm-up are separate.

    steady: the warm-up ended. precise: the 95 % interval of the mean step is within 1 %.
    reason: its end: ``precise``, ``limit``, ``enough``, ``protocol`` or ``stopped``.
    """

    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    steady: bool
    precise: bool
    reason: str


class StepProgress(NamedTuple):
    """Progress after every few ``steps`` of a stage: ``warm-up``, ``timed`` or ``counters``.

    step_s: median step. precision: half width of the mean's 95 % interval as a share, or inf.
    """

    stage: str
    steps: int
    step_s: float
    precision: float


class Hooks(NamedTuple):
    """Callbacks of a measurement.

    window_start, window_end: bound the window of counters and sensors; both or none are called.
    should_stop, enough: whether to stop now, and whether a less precise mean is accepted by now.
    """

    progress: Callable[[StepProgress], None] = lambda progress: None
    window_start: Callable[[], None] = lambda: None
    window_end: Callable[[], None] = lambda: None
    should_stop: Callable[[], bool] = lambda: False
    enough: Callable[[], bool] = lambda: False


SILENT = Hooks()


def measure(step: Callable[[], Phases], protocol: str = "adaptive", hooks: Hooks = SILENT) -> StepTimes:
    """Call ``step`` repeatedly and collect the seconds of its phases.

    ``adaptive``: at most 300 steps of warm-up, until ``stats.warmup_ended``. Then at least 30 steps
    and two seconds, until ``enough`` is true, or after four seconds the mean is known within 1 % or
    500 steps are timed; at most 3000 steps. The window spans the timed steps.
    ``paper``: 300 steps of warm-up, 100 timed, 100 in the window (not timed).
    Raises ValueError for another protocol, and any exception of ``step``.
    """
    if protocol not in PROTOCOLS:
        raise ValueError("unknown protocol %r; known: %s" % (protocol, ", ".join(PROTOCOLS)))
    return (_adaptive if protocol == "adaptive" else _paper)(_TimedLoop(step, hooks))


def measure_repeat(step: Callable[[], Phases], hooks: Hooks = SILENT) -> StepTimes:
    """Repeat a measurement: 5 steps of warm-up, then at least 10 steps and two seconds."""
    loop = _TimedLoop(step, hooks)
    warmup = loop.run("warm-up", REPEAT_WARMUP)
    timed = loop.run_in_window(
        "again", TIMED_LIMIT, lambda totals: len(totals) >= REPEAT_MINIMUM and sum(totals) >= WINDOW_S
    )
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


class _TimedLoop:
    """Runs the stages of a measurement and remembers whether it was stopped."""

    def __init__(self, step: Callable[[], Phases], hooks: Hooks) -> None:
        self._step = step
        self._hooks = hooks
        self.enough = hooks.enough
        self.stopped = False

    def run(self, stage: str, limit: int, done: Callable[[List[float]], bool] = lambda totals: False) -> List[Phases]:
        """Run at most ``limit`` steps; ``done`` may end the stage early by the step seconds."""
        phases: List[Phases] = []
        totals: List[float] = []
        checked = 0
        while len(phases) < limit and not self._asked_to_stop():
            phases.append(self._step())
            totals.append(sum(phases[-1]))
            if len(phases) % CHECK_EVERY or sum(totals[checked:]) < CHECK_S:
                continue
            checked = len(totals)
            interval = stats.relative_interval95(totals)
            self._hooks.progress(StepProgress(stage, len(phases), stats.median(totals), interval))
            if done(totals):
                break
        return phases

    def run_in_window(
        self, stage: str, limit: int, done: Callable[[List[float]], bool] = lambda totals: False
    ) -> List[Phases]:
        """Run a stage within a window of counters and sensors."""
        if self._asked_to_stop():
            return []
        self._hooks.window_start()
        try:
            return self.run(stage, limit, done)
        finally:
            self._hooks.window_end()

    def _asked_to_stop(self) -> bool:
        self.stopped = self.stopped or self._hooks.should_stop()
        return self.stopped


def _adaptive(loop: _TimedLoop) -> StepTimes:
    def warmed_up(totals: List[float]) -> bool:
        return stats.warmup_ended(totals) is not None or (len(totals) >= WARMUP_MINIMUM and loop.enough())

    def precise_enough(totals: List[float]) -> bool:
        timed_s = sum(totals)
        if len(totals) < TIMED_MINIMUM or timed_s < WINDOW_S:
            return False
        if loop.enough():
            return True
        return timed_s >= TIMED_S and (len(totals) >= TIMED_ENOUGH or _precise(totals))

    warmup = loop.run("warm-up", WARMUP_LIMIT, warmed_up)
    timed = loop.run_in_window("timed", TIMED_LIMIT, precise_enough)
    reason = "enough" if loop.enough() else "limit"
    return _times(warmup, timed, "stopped" if loop.stopped else reason)


def _paper(loop: _TimedLoop) -> StepTimes:
    warmup = loop.run("warm-up", PAPER_STEPS[0])
    timed = loop.run("timed", PAPER_STEPS[1])
    loop.run_in_window("counters", PAPER_STEPS[2])
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


def _times(warmup: List[Phases], timed: List[Phases], reason: str) -> StepTimes:
    precise = len(timed) >= TIMED_MINIMUM and _precise([sum(phases) for phases in timed])
    steady = stats.warmup_ended([sum(phases) for phases in warmup]) is not None
    gradient_s, copy_s, update_s = (
        Samples("s", tuple(step[i] for step in timed), tuple(step[i] for step in warmup)) for i in range(3)
    )
    if precise and reason in ("limit", "enough"):
        reason = "precise"
    return StepTimes(gradient_s, copy_s, update_s, steady, precise, reason)


def _precise(totals: List[float]) -> bool:
    return stats.relative_interval95(totals) <= PRECISION
