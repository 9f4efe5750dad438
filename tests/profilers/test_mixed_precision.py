"""A device has the mixed precisions for which its processor or its GPU has instructions."""

import pytest

from profilers import mixed_precision
from profilers.file_tree import Unavailable


class Gpu:
    def __init__(self, capability):
        self._capability = capability

    def compute_capability(self):
        return self._capability


def cpuinfo(flags):
    return {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: fpu {flags} sse\n\nprocessor\t: 1\nflags\t\t: fpu\n"}


@pytest.fixture
def no_gpu(monkeypatch):
    def absent(tree):
        raise Unavailable("no driver")

    monkeypatch.setattr("profilers.sensors.nvml.gpus", absent)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("avx512f", ("bf16",)), ("avx512_bf16", ("bf16",)), ("amx_bf16", ("bf16",)), ("avx2", ()), ("amx_tile", ())],
)
def test_processors_have_bfloat16_with_amx_or_avx_512(plant, no_gpu, flags, expected):
    assert mixed_precision.supported(plant(cpuinfo(flags))) == expected


@pytest.mark.parametrize(
    ("capability", "expected"),
    [((6, 1), ()), ((7, 0), ("fp16",)), ((7, 5), ("fp16",)), ((8, 0), ("bf16", "fp16")), ((12, 0), ("bf16", "fp16"))],
)
def test_gpus_have_what_their_compute_capability_says(plant, monkeypatch, capability, expected):
    monkeypatch.setattr("profilers.sensors.nvml.gpus", lambda tree: (Gpu(capability),))
    assert mixed_precision.supported(plant(cpuinfo("avx2"))) == expected


@pytest.mark.parametrize(
    ("chip", "expected"),
    [("tegra210", ()), ("tegra186", ()), ("tegra194", ("fp16",)), ("tegra234", ("bf16", "fp16"))],
)
def test_jetsons_by_their_chip(plant, no_gpu, chip, expected):
    tree = plant({"proc/device-tree/compatible": f"nvidia,board\0nvidia,{chip}\0"})
    assert mixed_precision.supported(tree) == expected
