"""A known model as a Python file of plain torch computes what planner's own module computes."""

import importlib
from typing import Any

import numpy as np
import pytest

from backends import models
from backends.frameworks.base import FRAMEWORKS
from planner.export.torch_source import torch_source
from tests.installed import computes_with
from tests.trained_runs import images, probabilities

SMALL = {"cipher": (28, 28, 1), "nin": (32, 32, 3), "cifar10": (32, 32, 3), "squeezenet": (32, 32, 3)}


@pytest.mark.parametrize("name", models.MODELS)
def test_it_is_python_that_imports_nothing_but_torch(name: str) -> None:
    text = torch_source(models.model(name), "uint8", "model.safetensors")
    compile(text, "model.py", "exec")
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert imports == [
        "from collections import OrderedDict", "import torch", "from torch import nn", "from torch.nn import functional"
    ]  # fmt: skip


class TestWithTorch:
    pytestmark = computes_with("torch")

    @pytest.mark.parametrize(("name", "shape"), SMALL.items())
    def test_with_the_same_arrays_it_gives_the_same_probabilities(self, name: str, shape: tuple[int, int, int]) -> None:
        import torch

        from backends.pytorch import export

        replica: Any = importlib.import_module(FRAMEWORKS["torch"]).build(name, shape, 10)
        some = images(shape).test_images[:4]
        expected = probabilities(replica, some)
        made: dict[str, Any] = {}
        exec(torch_source(models.model(name, shape, 10), "uint8", "model.safetensors"), made)  # noqa: S102
        network = made["Network"]().eval()
        network.load_state_dict(export.detached(replica).state_dict())
        np.testing.assert_allclose(network(torch.from_numpy(some)).detach().numpy(), expected, atol=1e-4)
