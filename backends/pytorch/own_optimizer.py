"""The optimizer that a job brings, with its scheduler, and what they keep as bytes."""

import io
import zipfile
from typing import Any, List

import numpy as np
import torch

from backends.data.archives import require_modest_members
from backends.frameworks.base import NO_OPTIMIZER
from backends.jobs.failure import refusal
from backends.jobs.job import Job
from backends.jobs.user_job import takes, type_in_words

#: What a missing or failing step of reading the bytes is called.
UNREADABLE = "the state of the job's optimizer cannot be read: %s"


class TorchOptimizer:
    """A torch.optim optimizer of the job's. Raises JobFailure for another, ValueError for none."""

    def __init__(self, job: Job, parameters: List[torch.nn.Parameter]) -> None:
        if job.optimizer is None:
            raise ValueError(NO_OPTIMIZER)
        self._optimizer: Any = job.optimizer(parameters)
        if not hasattr(self._optimizer, "step") or not hasattr(self._optimizer, "state_dict"):
            raise refusal(
                "its optimizer returns %s; it must return a torch.optim optimizer of the parameters it is given"
                % type_in_words(self._optimizer)
            )
        _require_alone("optimizer", self._optimizer)
        held = {id(each) for group in self._optimizer.param_groups for each in group["params"]}
        if not held & {id(each) for each in parameters}:
            raise refusal("its optimizer holds none of the parameters that it is given, and would train nothing")
        self._scheduler: Any = None if job.scheduler is None else job.scheduler(self._optimizer)
        if job.scheduler is not None:
            _require_alone("scheduler", self._scheduler)

    def step(self) -> None:
        """One step with the gradients of the parameters, and one of the scheduler."""
        self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()

    def state(self) -> np.ndarray:
        """What both keep, (n,) uint8."""
        stream = io.BytesIO()
        scheduler = None if self._scheduler is None else self._scheduler.state_dict()
        torch.save({"optimizer": self._optimizer.state_dict(), "scheduler": scheduler}, stream)
        return np.frombuffer(stream.getvalue(), np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Go on from what they kept. Raises ValueError where torch cannot read it safely."""
        stream = io.BytesIO(state.tobytes())
        try:
            if zipfile.is_zipfile(stream):
                require_modest_members(stream)
            stream.seek(0)
            # Only tensors and plain values are read, no code.
            saved = torch.load(stream, map_location="cpu", weights_only=True)
        except TypeError as error:
            raise ValueError(UNREADABLE % "it takes torch 1.13 or later") from error
        except Exception as error:  # noqa: BLE001 - torch raises whatever damaged bytes lead to
            raise ValueError(UNREADABLE % error) from error
        self._optimizer.load_state_dict(saved["optimizer"])
        if self._scheduler is not None and saved["scheduler"] is not None:
            self._scheduler.load_state_dict(saved["scheduler"])


def _require_alone(what: str, made: Any) -> None:
    """Raises JobFailure for what cannot make a step by itself, as with a closure or a metric."""
    if not hasattr(made, "step") or not takes(made.step, ()):
        raise refusal(
            "its %s returns %s; it must return one of torch.optim whose step() needs no argument"
            % (what, type_in_words(made))
        )
