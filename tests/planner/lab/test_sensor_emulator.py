"""The sensor emulator of an emulated device.

It is a real program beside a real control group, read by the product's own sampler.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from planner.errors import RecordError
from planner.lab import kernel_counters
from planner.lab.cgroups import mounted
from planner.lab.kernel_counters import CpuCounter, cpu_seconds
from planner.lab.sensor_emulator import SensorEmulator, load_config
from profilers.sampling import Sampler
from profilers.sensors import discover
from tests.running import HANG_S

ROOT = Path(__file__).resolve().parents[3]
TOTAL = "sys/bus/i2c/drivers/ina3221x/0-0041/iio:device1/in_power0_input"
#: A device that needs 100 s to warm up, and then draws a fifth more of its dynamic watts.
TERMS = {"bend": 0.4, "leakage": 0.2, "fan": 0.0, "fan_from": 0.5, "supply": 0.0, "warm_s": 100.0}
#: Other tests use the loopback, so its bytes cost nothing here.
POWER = {"idle_w": 4.0, "dynamic_w": 10.0, "joules_per_byte": 0.0, "noise_w": 0.0, "period_s": 0.02}


def describe(folder: Path, **changes: Any) -> Path:
    """Write config.json of a TX2, replaced as a whole.

    Its processor time is in a file of the test's unless ``changes`` say otherwise.
    """
    found = {
        "tree": str(folder / "tree"), "kind": "tx2", "usage": {"path": str(folder / "usage"), "unit_s": 1e-9},
        "interface": "lo", "cpus": 0.5, "power": POWER, "seed": 1,
    } | changes  # fmt: skip
    (folder / "usage").touch()
    (folder / "config.new").write_text(json.dumps(found))
    return (folder / "config.new").replace(folder / "config.json")


def use(folder: Path, cpu_s: float) -> None:
    (folder / "usage").write_text(f"{round(cpu_s * 1e9)}\n")


@contextmanager
def program(config: Path) -> Iterator["subprocess.Popen[str]"]:
    """The sensor emulator as the lab starts it, from when its first reading is there."""
    command = [sys.executable, "-m", "planner.lab.sensor_emulator", str(config)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as emulator:
        try:
            until(lambda: (config.parent / "tree" / TOTAL).exists() or emulator.poll() is not None)
            yield emulator
        finally:
            emulator.kill()


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 20.0
    while not true():
        assert time.monotonic() < end_s, "it never happened"
        time.sleep(0.01)


def milliwatts(folder: Path) -> int:
    return int((folder / "tree" / TOTAL).read_text())


# -- one period after the other --------------------------------------------------------------------


class Clock:
    """A monotonic clock that passes when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(kernel_counters, "time", found)
    return found


def test_a_device_that_does_nothing_idles(tmp_path: Path, clock: Clock) -> None:
    use(tmp_path, 100.0)  # before the sensor emulator came
    emulator = SensorEmulator(load_config(str(describe(tmp_path))))
    clock.now_s += 0.02
    emulator.tick()
    assert milliwatts(tmp_path) == pytest.approx(4000, abs=20)


def test_watts_follow_the_share_of_the_quota_that_is_used(tmp_path: Path, clock: Clock) -> None:
    use(tmp_path, 0.0)
    emulator = SensorEmulator(load_config(str(describe(tmp_path))))
    clock.now_s += 0.1
    use(tmp_path, 0.025)  # half of the 0.05 s that half a core grants
    emulator.tick()
    assert milliwatts(tmp_path) == pytest.approx(4000 + 10_000 * 0.5, abs=20)


def test_what_a_period_holds_above_its_share_counts_in_the_next(tmp_path: Path, clock: Clock) -> None:
    use(tmp_path, 0.0)
    emulator = SensorEmulator(load_config(str(describe(tmp_path))))
    ticks = []
    for cpu_s in (0.07, 0.07):  # in 0.1 s half a core is 0.05 s
        clock.now_s += 0.1
        use(tmp_path, cpu_s)
        emulator.tick()
        user, idle = ((tmp_path / "tree/proc/stat").read_text().split()[column] for column in (1, 4))
        ticks.append((int(user), int(idle)))
    (first_busy, first_idle), (busy, _) = ticks
    assert first_idle == 0 and first_busy >= 10
    assert busy == pytest.approx(14, abs=1)


def test_watts_never_exceed_those_of_full_use(tmp_path: Path, clock: Clock) -> None:
    use(tmp_path, 0.0)
    emulator = SensorEmulator(load_config(str(describe(tmp_path, cpus=0.3))))
    emulator.config = load_config(str(describe(tmp_path, cpus=0.075)))  # the old quota was used a moment ago
    shares = []
    for cpu_s in (0.3 * 0.05, 0.3 * 0.05, 0.3 * 0.05):
        clock.now_s += 0.05
        use(tmp_path, cpu_s)
        emulator.tick()
        shares.append((milliwatts(tmp_path) - 4000) / 10_000)
    assert max(shares) <= 1.01
    assert shares[1] > 0.8, "the excess of the first"
    assert shares[2] < 0.2


def test_terms_bend_the_watts_and_a_device_warms_up(tmp_path: Path, clock: Clock) -> None:
    use(tmp_path, 0.0)
    emulator = SensorEmulator(load_config(str(describe(tmp_path, terms=TERMS))))
    read, busy_s = [], 0.0
    for seconds_of, share in ((0.1, 0.5), (0.1, 1.0), (1000.0, 1.0), (0.1, 1.0), (1000.0, 0.0), (0.1, 0.0)):
        clock.now_s += seconds_of
        busy_s += 0.5 * seconds_of * share
        use(tmp_path, busy_s)
        emulator.tick()
        read.append(milliwatts(tmp_path))
    half_cold, full_cold, _, full_warm, _, idle_cold = read
    assert half_cold == pytest.approx(4000 + 10_000 * 0.8 * 0.6, abs=30)  # 0.6 by the curve, not 0.5
    assert full_cold == pytest.approx(4000 + 10_000 * 0.8, abs=30)
    assert full_warm == pytest.approx(14_000, abs=20)
    assert idle_cold == pytest.approx(4000, abs=20)


def test_joules_of_many_short_periods_are_those_of_one_long_one(tmp_path: Path, clock: Clock) -> None:
    joules = {}
    for periods in (1, 600):
        (folder := tmp_path / str(periods)).mkdir()
        use(folder, 0.0)
        emulator = SensorEmulator(load_config(str(describe(folder, terms=TERMS))))
        joules[periods], began_s = 0.0, clock.now_s
        for period in range(1, periods + 1):
            clock.now_s = began_s + 60.0 * period / periods
            use(folder, 0.5 * 60.0 * period / periods)
            emulator.tick()
            joules[periods] += milliwatts(folder) / 1000 * 60.0 / periods
    assert joules[600] == pytest.approx(joules[1], rel=0.002)  # readings come in steps of 38 mW
    assert joules[600] == pytest.approx(60.0 * 12.0 + 10.0 * 0.2 * (60.0 - 100.0 * (1 - math.exp(-0.6))), rel=0.002)


def test_a_device_without_sensors_has_its_own_load_and_memory(tmp_path: Path) -> None:
    use(tmp_path, 0.0)
    emulator = SensorEmulator(load_config(str(describe(tmp_path, kind="toaster", power=None))))
    emulator.tick()
    assert discover(str(tmp_path / "tree")).sensors == ()
    assert "cpu0 " in (tmp_path / "tree/proc/stat").read_text()
    assert "MemTotal" in (tmp_path / "tree/proc/meminfo").read_text()
    assert emulator.period_s == 0.1


def test_limited_memory_is_the_control_group_s(tmp_path: Path) -> None:
    use(tmp_path, 0.0)
    (tmp_path / "held").write_text(str(1 << 20))
    (tmp_path / "stat").write_text("anon 5\n")
    memory = {"usage": str(tmp_path / "held"), "stat": str(tmp_path / "stat"), "limit_bytes": 4 << 20}
    emulator = SensorEmulator(load_config(str(describe(tmp_path, memory=memory))))
    assert "MemAvailable: 3072 kB" in (tmp_path / "tree/proc/meminfo").read_text()
    emulator.tick()
    assert "MemAvailable: 3072 kB" in (tmp_path / "tree/proc/meminfo").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cpus": "many"}, "cpus: expected a number, found 'many'"),
        ({"seed": []}, "seed: expected a whole number, found []"),
    ],
)
def test_a_config_that_does_not_fit_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = describe(tmp_path, **changes)
    with pytest.raises(RecordError) as raised:
        load_config(str(path))
    assert str(raised.value) == f"{path}: {message}; `planner lab up` writes it anew"


# -- the program -----------------------------------------------------------------------------------


def test_it_is_small_and_ends_with_its_config(tmp_path: Path) -> None:
    use(tmp_path, 0.0)
    config = describe(tmp_path)
    with program(config) as emulator:
        status = Path(f"/proc/{emulator.pid}/status").read_text()
        (own,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))
        assert int(own) < 14_000  # kB, without the pages of the interpreter, which all emulators share
        config.unlink()
        assert emulator.wait(HANG_S) == 0
    found = discover(str(tmp_path / "tree"))
    assert found.sensors == (), "a device that is switched off has no reading"
    assert f"/{TOTAL} does not exist" in dict(found.missing).values()


def test_it_ends_when_told_to(tmp_path: Path) -> None:
    use(tmp_path, 0.0)
    with program(describe(tmp_path, power=POWER | {"period_s": 10.0})) as emulator:
        emulator.terminate()
        assert emulator.wait(HANG_S) == 0
        assert not (tmp_path / "tree" / TOTAL).exists()


def test_it_follows_its_config(tmp_path: Path) -> None:
    use(tmp_path, 0.0)
    with program(describe(tmp_path)):
        until(lambda: milliwatts(tmp_path) == pytest.approx(4000, abs=20))
        describe(tmp_path, cpus=1.5, power=POWER | {"idle_w": 7.0})
        until(lambda: milliwatts(tmp_path) == pytest.approx(7000, abs=20))
        assert "cpu1 " in (tmp_path / "tree/proc/stat").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interface": "eth77"}, "lab sensor emulator: eth77: no such interface here"),
        ({"usage": {"path": "/no/such/usage", "unit_s": 1e-9}}, "lab sensor emulator: /no/such/usage: No such file"),
    ],
)
def test_what_it_cannot_read_ends_it_with_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    use(tmp_path, 0.0)
    with program(describe(tmp_path, **changes)) as emulator:
        _, said = emulator.communicate(timeout=HANG_S)
        assert emulator.returncode == 1
    assert said.startswith(message) and said.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups")
def test_the_product_reads_what_the_model_says_of_a_real_control_group(tmp_path: Path) -> None:
    groups, group = mounted(Path("/proc/self/mountinfo").read_text()), f"planner-test-emulator-{os.getpid()}"
    groups.make(group)
    power = POWER | {"period_s": 0.1}  # periods of the quota's length would alias with it
    try:
        groups.set_cpus(group, 0.3)
        usage = groups.usage(group)
        with program(describe(tmp_path, cpus=0.3, usage=usage._asdict(), power=power)), busy(groups.procs_files(group)):
            time.sleep(0.3)
            sampler = Sampler(str(tmp_path / "tree"))
            began_s, began = time.monotonic(), seconds(usage)
            sampler.start()
            time.sleep(1.5)
            window = sampler.stop()
            utilisation = (seconds(usage) - began) / (time.monotonic() - began_s) / 0.3
    finally:
        groups.remove(group)
    total = window.power[0]
    assert (total.sensor, total.source, total.covers) == ("ina3221:VDD_IN", "emulated", "module")
    assert total.watts == pytest.approx(4.0 + 10.0 * utilisation, rel=0.1)
    assert window.counters["u_cpu"].mean == pytest.approx(min(1.0, utilisation), abs=0.1)


def seconds(usage: CpuCounter) -> float:
    return cpu_seconds(Path(usage.path).read_text(), usage)


@contextmanager
def busy(procs_files: list[Path]) -> Iterator[None]:
    """A process in a control group that computes all the time."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            for entrance in procs_files:
                entrance.write_text(str(process.pid))
            yield
        finally:
            process.kill()
