"""An emulated device's power follows a stated physical model, with constants by kind of device.

P = idle + dynamic * load share + joules per byte * bytes per second + noise. The load share is the
utilisation, bent by the terms of ``planner.lab.power_terms`` unless the spec wants it linear, as
Eq. 1 of Gu et al. is.
Utilisation is the device's CPU time over its quota, so that 1 is a fully used device. The processor
represents all compute units of that kind of device, including its GPU.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple


class PhysicalPower(NamedTuple):
    """The power model of a device.

    idle_w: watts of an idle device.
    dynamic_w: watts that full use of its processors adds, once it is warm.
    joules_per_byte: of its network, for bytes sent and received.
    noise_w: standard deviation of a reading.
    period_s: seconds between two readings of the sensor; each reading is a mean over them.
    """

    idle_w: float
    dynamic_w: float
    joules_per_byte: float
    noise_w: float
    period_s: float


#: Assumed: 0.5 W for a gigabit link that is full in one direction, the order of magnitude of a
#: gigabit transceiver.
JOULES_PER_BYTE = 4e-9
#: Slower than the real chip, which is read in milliseconds, so that many emulators load one
#: machine little.
PERIOD_S = 0.1

#: idle_w comes from public tegrastats lines of idle boards (input rail, or the sum of the rails of
#: an AGX). idle_w + dynamic_w is NVIDIA's power budget of the module in its usual mode. noise_w is
#: about half a step of the total's sensor.
MODELS = {
    # No public figure for the paper's PC (Core i7-2600, GTX 1050, read by an HPM-300A at the wall):
    # an idle desktop of its age is assumed to draw 35 W; the board power that NVIDIA states for a
    # GTX 1050 is 75 W.
    "pc": PhysicalPower(35.0, 75.0, JOULES_PER_BYTE, 0.5, PERIOD_S),
    # VDD_IN 2.53 to 2.70 W idle (test of DataDog's agent); the data sheet says 6 to 15 W: 10 W.
    "tx1": PhysicalPower(2.6, 7.4, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # VDD_IN 3.02 W idle (onnxruntime issue 3240); Max-P 15 W.
    "tx2": PhysicalPower(3.0, 12.0, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # POM_5V_IN 0.9 to 1.75 W idle (DataDog's agent, a Prometheus collector's test); 10 W mode.
    "nano": PhysicalPower(1.6, 8.4, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # VDD_IN 5.08 W idle (docstring of a Jetson collector); 15 W mode, of which a burn test reaches
    # 13.8 W.
    "xavier-nx": PhysicalPower(5.0, 10.0, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # Sum of the rails 3.11 W idle (DataDog's agent); 30 W mode.
    "agx-xavier": PhysicalPower(3.1, 26.9, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # VDD_IN 4.82 W idle (test of beszel); 15 W mode.
    "orin-nano": PhysicalPower(4.8, 10.2, JOULES_PER_BYTE, 0.02, PERIOD_S),
    # Sum of the rails 7.13 W idle (README of catid); 50 W mode.
    "agx-orin": PhysicalPower(7.1, 42.9, JOULES_PER_BYTE, 0.1, PERIOD_S),
}  # fmt: skip

#: Minimum, maximum and unit of each key.
LIMITS = {
    "idle_w": (0.1, 1e4, "W"),  # no computer draws 0 W, which the product takes for a broken sensor
    "dynamic_w": (0.0, 1e4, "W"),
    "joules_per_byte": (0.0, 1e-3, "J"),
    "noise_w": (0.0, 1e3, "W"),
    "period_s": (0.02, 10.0, "s"),
}


def from_table(kind: str, table: Mapping[str, object]) -> PhysicalPower:
    """The power model of a kind of device, changed by the values of a table. Raises ValueError."""
    if kind not in MODELS:
        raise ValueError(f'kind "{kind}" has no power model and no sensor; choose one of {", ".join(MODELS)}')
    return MODELS[kind]._replace(**{key: _value(key, value) for key, value in table.items()})


def watts(model: PhysicalPower, load_share: float, bytes_per_s: float, random: Random) -> float:
    """Watts of one reading, never below 0.

    load_share: 0..1 of the dynamic watts; bytes are sent and received.
    """
    drawn_w = model.idle_w + model.dynamic_w * load_share + model.joules_per_byte * bytes_per_s
    return max(0.0, drawn_w + random.gauss(0.0, model.noise_w))


def _value(key: str, value: object) -> float:
    if key not in LIMITS:
        raise ValueError(f'power has no key "{key}"; its keys are {", ".join(LIMITS)}')
    least, greatest, unit = LIMITS[key]
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= greatest:
        return float(value)
    raise ValueError(f"{key} is {value!r}; write a number of {least:g} to {greatest:g} ({unit})")
