"""Buffers that a forward pass assigns anew are part of a replica's state."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from backends.frameworks import base  # noqa: E402
from backends.jobs.failure import JobFailure  # noqa: E402
from backends.jobs.job import Job  # noqa: E402


class Centred(torch.nn.Module):
    """Multiplies by a buffer, which the backward pass needs, and then gives it another value."""

    def __init__(self, grows: bool = False, persistent: bool = True) -> None:
        super().__init__()
        self.dense, self.grows = torch.nn.Linear(2, 1), grows
        self.register_buffer("scale", torch.ones(2), persistent)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.dense(x) * self.scale.sum()
        self.scale = torch.cat([self.scale, self.scale]) if self.grows else self.scale * 0.5
        return found


def replica(module: torch.nn.Module) -> base.Replica:
    job = Job(module, lambda module, batch: (module(batch), batch), lambda outputs, _: outputs.mean(), {})
    return base.framework("torch").replica(job)


def test_the_state_has_what_a_forward_pass_assigns():
    made = replica(Centred())
    for _ in range(2):
        made.gradient(torch.ones(3, 2))
    np.testing.assert_array_equal(made.state, [0.25, 0.25])
    np.testing.assert_array_equal(made.gradients, [1.0, 1.0, 1.0])  # of a scale of a half in the second pass


def test_a_forward_pass_takes_the_state_that_is_loaded():
    made = replica(Centred())
    made.gradient(torch.ones(3, 2))
    made.state[:] = 4.0
    made.load()
    made.gradient(torch.ones(3, 2))
    np.testing.assert_array_equal(made.state, [2.0, 2.0])
    np.testing.assert_array_equal(made.gradients, [8.0, 8.0, 8.0])


def test_a_buffer_that_changes_its_shape_is_refused():
    with pytest.raises(JobFailure, match=r"its buffer scale had the shape \(2,\) and now has \(4,\); let it keep"):
        replica(Centred(grows=True)).gradient(torch.ones(3, 2))


def test_a_buffer_that_is_never_saved_may_grow():
    made = replica(Centred(grows=True, persistent=False))
    for scales in (2.0, 4.0):
        made.gradient(torch.ones(3, 2))
        np.testing.assert_array_equal(made.gradients, [scales] * 3)
