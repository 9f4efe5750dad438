"""Timing steps one by one: warm-up apart, then until the mean is known well enough."""

from typing import Callable, List, NamedTuple, Tuple

from profilers import records, stats

#: Seconds of one step's phases: gradient, copy to and from the host, update.
Phases = Tuple[float, float, float]

PROTOCOLS = ("adaptive", "paper")
WARMUP_LIMIT = 300
#: Fewest steps of a warm-up that is cut short because the time allowed for the device is spent.
WARMUP_MINIMUM = 10
TIMED_MINIMUM = 30
TIMED_LIMIT = 500
#: Steps of a later visit: to warm up, and timed at the least.
AGAIN_WARMUP, AGAIN_MINIMUM = 5, 10
#: Shortest window, in seconds: sensors and counters of a GPU change every tenth of a second or so.
WINDOW_S = 1.0
#: Between two looks at what is known by now are as many steps and seconds: a look takes as long as a short step, and
#: training says no more often where it stands.
LOOK_EVERY, LOOK_S = 5, 0.5
PRECISION = 0.01
#: Gu et al., section IV: steps 1-300 warm up, 301-400 are timed, counters are sampled over 401-500.
PAPER_STEPS = (300, 100, 100)


class StepTimes(NamedTuple):
    """Raw seconds per phase, warm-up apart.

    steady: the warm-up was seen to end; precise: the 95 % interval of the mean step is within 1 %;
    reason: what ended the measurement (``precise``, ``limit``, ``enough``, ``protocol`` or ``stopped``).
    """

    gradient_s: records.Samples
    copy_s: records.Samples
    update_s: records.Samples
    steady: bool
    precise: bool
    reason: str


class StepProgress(NamedTuple):
    """After every few steps: the stage (``warm-up``, ``timed``, ``counters``), its steps so far, their median, and how
    well the mean is known (half width of its 95 % interval as a share; inf while unknown)."""

    stage: str
    steps: int
    step_s: float
    precision: float


class Hooks(NamedTuple):
    """What the caller wants to be told. The window is where counters and sensors are to be sampled;
    ``window_end`` is called exactly when ``window_start`` was, also when a step raises. ``enough``: the time
    allowed is spent, so that a mean that is known less well has to do."""

    progress: Callable[[StepProgress], None] = lambda progress: None
    window_start: Callable[[], None] = lambda: None
    window_end: Callable[[], None] = lambda: None
    should_stop: Callable[[], bool] = lambda: False
    enough: Callable[[], bool] = lambda: False


SILENT = Hooks()


def measure(step: Callable[[], Phases], protocol: str = "adaptive", hooks: Hooks = SILENT) -> StepTimes:
    """Call ``step`` again and again and collect the phase seconds that it returns.

    ``adaptive``: warm up until ``stats.warmup_ended``, at most 300 steps; then time at least 30 steps and a second,
    until the mean is known within 1 % or 500 are timed, or ``enough`` says so; the window spans the timed steps.
    ``paper``: exactly 300 to warm up, 100 timed, 100 in the window (not timed).
    Raises ValueError for another protocol, and whatever ``step`` raises.
    """
    if protocol not in PROTOCOLS:
        raise ValueError("unknown protocol %r; known: %s" % (protocol, ", ".join(PROTOCOLS)))
    return (_adaptive if protocol == "adaptive" else _paper)(_TimedLoop(step, hooks))


def again(step: Callable[[], Phases], hooks: Hooks = SILENT) -> StepTimes:
    """A later visit, to see whether what was timed before holds: 5 steps to warm up, at least 10 and a second timed."""
    loop = _TimedLoop(step, hooks)
    warmup = loop.run("warm-up", AGAIN_WARMUP)
    timed = loop.run_in_window(
        "again", TIMED_LIMIT, lambda totals: len(totals) >= AGAIN_MINIMUM and sum(totals) >= WINDOW_S
    )
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


class _TimedLoop:
    """Runs steps of one stage after the other and remembers whether it was asked to stop."""

    def __init__(self, step: Callable[[], Phases], hooks: Hooks) -> None:
        self._step = step
        self._hooks = hooks
        self.stopped = False

    def run(self, stage: str, limit: int, done: Callable[[List[float]], bool] = lambda totals: False) -> List[Phases]:
        """At most ``limit`` steps, fewer once ``done`` says so of the step seconds so far."""
        phases: List[Phases] = []
        totals: List[float] = []
        looked = 0
        while len(phases) < limit and not self._asked_to_stop():
            phases.append(self._step())
            totals.append(sum(phases[-1]))
            if len(phases) % LOOK_EVERY or sum(totals[looked:]) < LOOK_S:
                continue
            looked = len(totals)
            interval = stats.relative_interval95(totals)
            self._hooks.progress(StepProgress(stage, len(phases), stats.median(totals), interval))
            if done(totals):
                break
        return phases

    def run_in_window(
        self, stage: str, limit: int, done: Callable[[List[float]], bool] = lambda totals: False
    ) -> List[Phases]:
        if self._asked_to_stop():
            return []
        self._hooks.window_start()
        try:
            return self.run(stage, limit, done)
        finally:
            self._hooks.window_end()

    def enough(self) -> bool:
        return self._hooks.enough()

    def _asked_to_stop(self) -> bool:
        self.stopped = self.stopped or self._hooks.should_stop()
        return self.stopped


def _adaptive(loop: _TimedLoop) -> StepTimes:
    def warm(totals: List[float]) -> bool:
        return stats.warmup_ended(totals) is not None or (len(totals) >= WARMUP_MINIMUM and loop.enough())

    def known(totals: List[float]) -> bool:
        if len(totals) < TIMED_MINIMUM or sum(totals) < WINDOW_S:
            return False
        return _precise(totals) or loop.enough()

    warmup = loop.run("warm-up", WARMUP_LIMIT, warm)
    timed = loop.run_in_window("timed", TIMED_LIMIT, known)
    return _times(warmup, timed, "stopped" if loop.stopped else "enough" if loop.enough() else "limit")


def _paper(loop: _TimedLoop) -> StepTimes:
    warmup = loop.run("warm-up", PAPER_STEPS[0])
    timed = loop.run("timed", PAPER_STEPS[1])
    loop.run_in_window("counters", PAPER_STEPS[2])
    return _times(warmup, timed, "stopped" if loop.stopped else "protocol")


def _times(warmup: List[Phases], timed: List[Phases], reason: str) -> StepTimes:
    precise = len(timed) >= TIMED_MINIMUM and _precise([sum(phases) for phases in timed])
    steady = stats.warmup_ended([sum(phases) for phases in warmup]) is not None
    samples = [
        records.Samples("s", tuple(step[i] for step in timed), tuple(step[i] for step in warmup)) for i in range(3)
    ]
    if precise and reason in ("limit", "enough"):
        reason = "precise"
    return StepTimes(samples[0], samples[1], samples[2], steady, precise, reason)


def _precise(totals: List[float]) -> bool:
    return stats.relative_interval95(totals) <= PRECISION
