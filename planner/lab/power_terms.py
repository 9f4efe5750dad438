"""Terms of an emulated device's watts that the predictor's model does not have.

The predictor takes a device's watts to be idle watts and a share of the dynamic ones. Scored
against an emulation of just that form, it would be right by construction. These terms bend the way
between idle and full use and make it depend on what the device did before:

    load watts = dynamic x supply((1 - leakage - fan) curve(u) + leakage w + fan speed(w)^3)

u is the utilisation and w the warmth, 0 as after long idleness and 1 as after long full use. Both
ends stay where ``planner.lab.power`` names their sources: a device that has idled for long draws
its idle watts, and one that was fully used for long its idle and dynamic ones.

Each device is a unit of its own, drawn from the seed of the lab's spec and the device's name. What
is drawn is written for the sensor emulator only; profiles and fleet files hold none of it.
"""

import math
from random import Random
from typing import NamedTuple


class PowerTerms(NamedTuple):
    """What bends the watts of one device; shares are of its dynamic watts at full use.

    bend: of the curve over load, u + bend u (1 - u); below 0 it sags.
    leakage: share that only a warm device draws.
    fan: share that its fan draws at full speed, 0 where the sensor sees no fan.
    fan_from: warmth at which the fan starts.
    supply: share that the resistance of its voltage converters takes at full use.
    warm_s: time constant of its temperature.
    """

    bend: float
    leakage: float
    fan: float
    fan_from: float
    supply: float
    warm_s: float


#: Least and greatest value of each term, for any kind of device.
RANGES: dict[str, tuple[float, float]] = {
    # Fan, Weber and Barroso (2007) measured 2 u - u^1.4 of servers, which is a bend of 0.5 within
    # 0.02; governors that lower the clock at part load bend the other way. Below -1 or above 1 the
    # curve would not rise everywhere.
    "bend": (-0.25, 0.5),
    # Leakage is about a tenth to a quarter of a chip's power and grows by about 1 % a kelvin; under
    # load chips become 25 to 45 K warmer.
    "leakage": (0.025, 0.1),
    # One or two fans of 1.5 to 4.5 W beside the 75 W of a PC.
    "fan": (0.02, 0.06),
    # Fans of desktops stand still, or turn at one speed, until a chip is warm.
    "fan_from": (0.3, 0.7),
    # A supply of 87, 90 and 87 % efficiency at 20, 50 and 100 % of its rating loses 13 % of its
    # output by resistance at its rating, and in proportion less below: these are 15 to 60 % of it.
    # The converters of a module are taken to be as good.
    "supply": (0.02, 0.08),
    # Heat sinks of modules and of desktop processors settle within minutes.
    "warm_s": (60.0, 240.0),
}

#: Kinds whose sensor sees their fan. A Jetson's fan is fed by its carrier board, past the monitor.
WITH_FAN = ("pc",)


class Heated(NamedTuple):
    """The warmth of a device after a period, and its mean over the period."""

    after: float
    mean: float


def draw(seed: int, name: str, kind: str) -> PowerTerms:
    """The terms of one device: the same for the same seed, name and kind, on every machine."""
    random = Random(f"{seed}/{name}")
    drawn = PowerTerms(**{term: random.uniform(*limits) for term, limits in RANGES.items()})
    return drawn if kind in WITH_FAN else drawn._replace(fan=0.0)


def heated(terms: PowerTerms, warmth: float, utilisation: float, lasted_s: float) -> Heated:
    """Temperature follows the load with one time constant.

    The mean is exact, so that joules over any periods are the integral of the watts that leakage
    takes.
    """
    toward, periods = _curve(terms, utilisation), lasted_s / terms.warm_s
    lag = -math.expm1(-periods) / periods if periods > 0 else 1.0
    return Heated(toward + (warmth - toward) * math.exp(-periods), toward + (warmth - toward) * lag)


def load_share(terms: PowerTerms, utilisation: float, warmth: float) -> float:
    """Share 0..1 of the dynamic watts that a load takes of a device of this warmth."""
    speed = max(0.0, warmth - terms.fan_from) / (1 - terms.fan_from)
    steady = (1 - terms.leakage - terms.fan) * _curve(terms, utilisation)
    inside = steady + terms.leakage * warmth + terms.fan * speed**3  # a fan's power goes with its speed cubed
    return inside * (1 - terms.supply + terms.supply * inside)


def _curve(terms: PowerTerms, utilisation: float) -> float:
    return utilisation + terms.bend * utilisation * (1 - utilisation)
