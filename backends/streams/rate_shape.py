"""The rate of a replayed stream over time: constant, or as a fault has it."""

import math
from typing import NamedTuple

#: Shapes of a rate over time.
CONSTANT, WAVE, BURSTS, STEP = "constant", "wave", "bursts", "step"
SHAPES = (CONSTANT, WAVE, BURSTS, STEP)
#: Part of a period that a burst lasts.
BURST_SHARE = 0.1


class RateShape(NamedTuple):
    """The factor of a stream's rate p at time t, in seconds since it began.

    wave: swings between p (2 - factor) and p factor within a period.
    bursts: p factor in the first tenth of each period, p in the rest.
    step: p before ``period_s``, p factor from then on.
    """

    shape: str = CONSTANT
    factor: float = 2.0
    period_s: float = 60.0

    def check(self) -> None:
        """Raises ValueError for a factor or a period that no rate has."""
        if not 0.0 <= self.factor < math.inf or not 0.0 < self.period_s < math.inf:
            raise ValueError("factor %g and period %g: give numbers above 0" % (self.factor, self.period_s))
        if self.shape == WAVE and self.factor > 2.0:
            raise ValueError("factor %g: a wave of more than 2 would fall below no samples at all" % self.factor)

    def mean_factor(self) -> float:
        """The mean factor over long times: that of the second period, as of all later ones."""
        return (self.elapsed(2.0 * self.period_s) - self.elapsed(self.period_s)) / self.period_s

    def elapsed(self, seconds: float) -> float:
        """The seconds in which as many samples arrive at the plain rate: the factor's integral."""
        if self.shape == WAVE:
            turn = 2.0 * math.pi / self.period_s
            return seconds + (self.factor - 1.0) * (1.0 - math.cos(turn * seconds)) / turn
        if self.shape == BURSTS:
            lasts_s = BURST_SHARE * self.period_s
            whole, part_s = divmod(seconds, self.period_s)
            return seconds + (self.factor - 1.0) * (whole * lasts_s + min(part_s, lasts_s))
        if self.shape == STEP:
            return seconds + (self.factor - 1.0) * max(0.0, seconds - self.period_s)
        return seconds
