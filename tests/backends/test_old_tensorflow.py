"""TensorFlow 2.6 under Python 3.6 computes what PyTorch computes here.

Names and layout are the same too.
"""

import os
import subprocess

import numpy as np
import pytest

from tests.backends import two_steps
from tests.installed import ROOT, old_python, using
from tests.running import HANG_S

pytestmark = pytest.mark.python36

#: Shares of a norm. Rounding flips a ReLU whose input is nearly zero, and batch normalisation over
#: few images magnifies that; arrays in another layout would be off by more than their norm.
WITHIN = {"weights": 1e-3, "gradients": 0.1, "momentum": 0.1, "state": 1e-3}


@pytest.mark.parametrize("model", ["cipher", "resnet"])
@pytest.mark.parametrize("frameworks", [using("torch")])
def test_an_old_tensorflow_makes_the_steps_that_torch_makes(tmp_path, frameworks, model):
    out = tmp_path / "old.npz"
    command = [old_python(), two_steps.__file__, "tensorflow", model, out]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    with np.load(out) as old:
        new = two_steps.two_steps(frameworks[0], model)
        for part in ("names", "shapes"):
            assert list(old[part]) == list(new[part])
        np.testing.assert_allclose(old["losses"], new["losses"], rtol=1e-4)
        for part, within in WITHIN.items():
            assert np.linalg.norm(old[part] - new[part]) <= within * np.linalg.norm(new[part])
