"""Each kind of device has power monitors: INA3221 chips in sysfs with their rails.

Their files are laid out as ``profilers.sensors.ina3221`` finds them on real boards. So the product
reads one total of the board or the module, and its sensor code cannot tell an emulated device from
a real one.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class EmulatedRail(NamedTuple):
    """A supply that a monitor measures.

    millivolts: taken as constant.
    step_ma: current of the chip's lowest bit, 40 uV over the shunt (4 mA at 10 milliohm).
    idle_share: its share of the device's watts when idle.
    dynamic_share: its share of the watts that load adds.
    """

    label: str
    millivolts: int
    step_ma: int
    idle_share: float
    dynamic_share: float


class Monitors(NamedTuple):
    """The INA3221 chips of a kind of device: rails by folder, None for an unused channel.

    hwmon: True for the layout from JetPack 5 on (mV, mA), False for that up to JetPack 4 (mW); see
    ``profilers.sensors.ina3221``.
    """

    hwmon: bool
    chips: Mapping[str, tuple[EmulatedRail | None, ...]]


#: Folders and rails of Jetsons. Voltages and steps are those of which public tegrastats lines show
#: multiples. Shares are rounded from such lines, idle and busy, with the GPU's part of the load
#: assigned to the processor.
MONITORS = {
    # A PC has no such chip: the total of a TX2's carrier board replaces the meter at its plug.
    "pc": Monitors(False, {"0-0042/iio:device0": (EmulatedRail("VDD_MUX", 12000, 4, 1.0, 1.0),)}),
    "tx1": Monitors(False, {"1-0040/iio:device0": (
        EmulatedRail("VDD_IN", 4750, 4, 1.0, 1.0), EmulatedRail("VDD_GPU", 4750, 4, 0.01, 0.0),
        EmulatedRail("VDD_CPU", 4750, 4, 0.03, 0.6))}),
    "tx2": Monitors(False, {
        "0-0040/iio:device0": (
            EmulatedRail("VDD_SYS_GPU", 19150, 4, 0.08, 0.0), EmulatedRail("VDD_SYS_SOC", 19150, 4, 0.25, 0.1),
            EmulatedRail("VDD_4V0_WIFI", 19150, 2, 0.0, 0.0)),
        "0-0041/iio:device1": (
            EmulatedRail("VDD_IN", 19150, 2, 1.0, 1.0), EmulatedRail("VDD_SYS_CPU", 19150, 4, 0.05, 0.6),
            EmulatedRail("VDD_SYS_DDR", 19150, 4, 0.18, 0.1))}),
    "nano": Monitors(False, {"6-0040/iio:device0": (
        EmulatedRail("POM_5V_IN", 5080, 8, 1.0, 1.0), EmulatedRail("POM_5V_GPU", 5080, 8, 0.02, 0.0),
        EmulatedRail("POM_5V_CPU", 5080, 8, 0.2, 0.6))}),
    "xavier-nx": Monitors(False, {"7-0040/iio:device0": (
        EmulatedRail("VDD_IN", 5000, 8, 1.0, 1.0), EmulatedRail("VDD_CPU_GPU_CV", 5000, 8, 0.14, 0.65),
        EmulatedRail("VDD_SOC", 5000, 8, 0.22, 0.1))}),
    "agx-xavier": Monitors(False, {
        "1-0040/iio:device0": (
            EmulatedRail("GPU", 9000, 8, 0.0, 0.0), EmulatedRail("CPU", 9000, 8, 0.07, 0.7),
            EmulatedRail("SOC", 9000, 8, 0.28, 0.1)),
        "1-0041/iio:device1": (
            EmulatedRail("CV", 9000, 8, 0.0, 0.0), EmulatedRail("VDDRQ", 9000, 8, 0.05, 0.1),
            EmulatedRail("SYS5V", 5020, 8, 0.6, 0.1))}),
    "orin-nano": Monitors(True, {"1-0040/hwmon/hwmon1": (
        EmulatedRail("VDD_IN", 5025, 8, 1.0, 1.0), EmulatedRail("VDD_CPU_GPU_CV", 5025, 8, 0.11, 0.65),
        EmulatedRail("VDD_SOC", 5025, 8, 0.31, 0.1))}),
    "agx-orin": Monitors(True, {
        "1-0040/hwmon/hwmon3": (
            EmulatedRail("VDD_GPU_SOC", 20000, 20, 0.34, 0.1), EmulatedRail("VDD_CPU_CV", 20000, 20, 0.06, 0.7),
            EmulatedRail("VIN_SYS_5V0", 5040, 20, 0.6, 0.2)),
        "1-0041/hwmon/hwmon4": (None, EmulatedRail("VDDQ_VDD2_1V8AO", 5020, 20, 0.04, 0.1), None)}),
}  # fmt: skip


def labels(kind: str) -> dict[str, str]:
    """Text by file of the constant files: labels of rails and, in the newer layout, millivolts."""
    texts = {}
    for folder, number, rail in _channels(kind):
        label = rail.label if rail else "NC"
        if MONITORS[kind].hwmon:
            texts[f"{folder}/in{number + 1}_label"] = label
            texts[f"{folder}/in{number + 1}_input"] = str(rail.millivolts if rail else 0)
        else:
            texts[f"{folder}/rail_name_{number}"] = label
    return texts


def readings(kind: str, total_w: float, dynamic_w: float) -> dict[str, str]:
    """Text by file of every rail's power, in whole steps of its monitor.

    dynamic_w: the part of the device's watts that load added.
    """
    texts = {}
    for folder, number, rail in _channels(kind):
        if rail is not None:
            rail_w = rail.idle_share * (total_w - dynamic_w) + rail.dynamic_share * dynamic_w
            milliamperes = quantised_ma(rail, rail_w)
            if MONITORS[kind].hwmon:
                texts[f"{folder}/curr{number + 1}_input"] = str(milliamperes)
            else:
                texts[f"{folder}/in_power{number}_input"] = str(round(rail.millivolts * milliamperes / 1000))
    return texts


def _channels(kind: str) -> Iterator[tuple[str, int, EmulatedRail | None]]:
    """Folder, number and rail of every channel."""
    hwmon, chips = MONITORS[kind]
    driver = "sys/bus/i2c/drivers/" + ("ina3221" if hwmon else "ina3221x")
    for folder, rails in chips.items():
        for number, rail in enumerate(rails):
            yield f"{driver}/{folder}", number, rail


def quantised_ma(rail: EmulatedRail, rail_w: float) -> int:
    """The current that the monitor reports: the nearest whole step, never below 0."""
    return rail.step_ma * max(0, round(rail_w * 1e6 / rail.millivolts / rail.step_ma))
