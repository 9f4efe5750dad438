"""CUDA_VISIBLE_DEVICES selects GPUs as in CUDA."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.sensors.visible_gpus import visible_gpus

UUIDS = ["GPU-aaaa1111-1", "GPU-aaaa2222-2", "GPU-bbbb3333-3"]


@pytest.mark.parametrize(
    "setting, indices",
    [
        (None, (0, 1, 2)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("none", ()),
        ("1", (1,)),
        ("2,0", (2, 0)),
        (" 1 , 2 ", (1, 2)),
        ("1,1", (1,)),
        ("0,7,1", (0,)),
        ("0,-1,1", (0,)),
        ("0,,1", (0,)),
        ("GPU-bbbb", (2,)),
        ("GPU-bbbb3333-3,0", (2, 0)),
        ("GPU-aaaa", ()),
        ("GPU-aaaa2,GPU-cccc,0", (1,)),
        ("MIG-GPU-bbbb3333-3/1/0", (2,)),
        ("MIG-0a1b2c3d", ()),
    ],
)
def test_a_setting_selects_these_gpus(setting, indices):
    assert visible_gpus(UUIDS, setting) == indices


def test_a_gpu_without_a_uuid_is_named_by_its_index_only():
    assert visible_gpus(["", ""], "1") == (1,)
    assert visible_gpus(["", ""], "GPU-") == ()


@given(st.text(alphabet="0123456789,-GPUMIGab/ "))
def test_any_setting_selects_existing_gpus_once(setting):
    found = visible_gpus(UUIDS, setting)
    assert set(found) <= {0, 1, 2} and len(set(found)) == len(found)
