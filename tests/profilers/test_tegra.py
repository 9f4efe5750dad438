"""The counters of a Jetson are read from its files; a missing file is a reason."""

import pytest

from profilers import tegra

GPUS = ["57000000.gpu", "57000000.gm20b", "17000000.gp10b", "17000000.gv11b", "17000000.ga10b"]


@pytest.mark.parametrize("folder", GPUS)
def test_the_integrated_gpu_of_each_generation_is_found(plant, folder):
    devfreq = "sys/class/devfreq/"
    tree = plant({f"{devfreq}{folder}/cur_freq": "318750000", f"{devfreq}3d00000.host1x/cur_freq": "1"})
    assert tegra.gpu_clock(tree) == 318.75e6


@pytest.mark.parametrize("name", tegra.EMC_CLOCKS)
def test_the_memory_controller_s_clock_has_moved_between_releases(plant, name):
    assert tegra.emc_clock(plant({name: "1600000000\n"})) == 1600e6
