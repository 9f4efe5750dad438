"""Devices that compute in numpy, a model for them, and probes and timings that are brief."""

from pathlib import Path

import pytest

from backends.profiling import step_profile
from planner.profile.link_probe import ProbeLengths
from profilers import steptime
from tests.running import ROOT

#: Environment of a device whose framework called torch is in numpy.
NUMPY_ALONE = {"PYTHONPATH": f"{ROOT / 'tests' / 'numpy_framework'}:{ROOT}"}
#: Probes that tell no rate precisely.
BRIEF = ProbeLengths(throughput_s=0.2, limit_s=1.2, enough_s=0.02, turns=0)
#: A softmax regression whose every step takes at least so long, whatever the machine.
MODEL = """
import time
from tests.backends.fakes import Softmax

class Slow(Softmax):
    def gradient(self, *args, **options):
        time.sleep({step_s})
        return super().gradient(*args, **options)

def tiny():
    return Slow(input_shape={shape}, classes=10), {shape}
"""


def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are timed in windows of a tenth of a second, looked at twice in each."""
    monkeypatch.setattr(steptime, "CHECK_S", 0.05)
    monkeypatch.setattr(steptime, "WINDOW_S", 0.1)
    monkeypatch.setattr(steptime, "LONGEST_S", 0.2)
    monkeypatch.setattr(steptime, "WARMUP_S", 0.1)
    monkeypatch.setattr(step_profile, "SENSED_S", 0.1)


def numpy_model(folder: Path, step_s: float = 0.02, shape: tuple[int, int, int] = (28, 28, 1)) -> str:
    """A user's model file in that folder; returns the name of the model."""
    path = folder / "tiny.py"
    path.write_text(MODEL.format(step_s=step_s, shape=shape))
    return f"{path}:tiny"
