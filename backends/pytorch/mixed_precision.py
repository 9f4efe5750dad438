"""Forward passes in bfloat16 or float16, with weights and gradients in float32 (torch.autocast).

Micikevicius et al., Mixed Precision Training, 2018.
"""

import warnings
from typing import Any

import torch

from backends.frameworks.device import MPS
from backends.pytorch.accelerators import torch_device
from profilers.mixed_precision import BF16, BF16_CAPABILITY, FP16, FP16_CAPABILITY

_TYPES = {BF16: torch.bfloat16, FP16: torch.float16}


def require(precision: str, accelerator: str) -> None:
    """Raises ValueError where torch cannot compute in a mixed precision on its accelerator."""
    remedy = "profile it with --precision fp32"
    if accelerator == "cpu":
        if precision == FP16:
            raise ValueError("fp16 needs a GPU, and torch computes on the processor here; " + remedy)
        return
    if accelerator == MPS:
        if precision == FP16 or not _autocasts():
            raise ValueError("%s is not used on Apple GPUs, or needs a newer torch or macOS; %s" % (precision, remedy))
        return
    capability = torch.cuda.get_device_capability()
    if capability < (FP16_CAPABILITY if precision == FP16 else BF16_CAPABILITY):
        raise ValueError("%s is slow on GPUs of compute capability %d.%d; %s" % ((precision,) + capability + (remedy,)))


def _autocasts() -> bool:
    """Whether torch computes in bfloat16 on the Apple GPU."""
    ones = torch.ones(1, 1, device=torch_device(MPS))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where it cannot, it says so and goes on in float32
            with autocast(BF16, MPS):
                return bool(torch.mm(ones, ones).dtype == torch.bfloat16)
    except (RuntimeError, TypeError):
        return False


def autocast(precision: str, accelerator: str) -> Any:
    """The context in which torch computes what allows it in a mixed precision."""
    return torch.autocast(accelerator, dtype=_TYPES[precision])


class LossScale:
    """The factor of the loss that keeps small float16 gradients above zero.

    torch's GradScaler finds gradients that are not finite, and adapts the factor. It reads
    gradients through an optimizer, which here never makes a step.
    """

    def __init__(self, gradients: torch.Tensor) -> None:
        holder = torch.nn.Parameter(torch.empty_like(gradients))
        holder.grad = gradients
        self._optimizer = torch.optim.SGD([holder], lr=0.0)
        if hasattr(torch.amp, "GradScaler"):  # torch 2.3 on
            self._scaler: Any = torch.amp.GradScaler(gradients.device.type)
        else:
            self._scaler = torch.cuda.amp.GradScaler()

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss times the factor."""
        scaled: torch.Tensor = self._scaler.scale(loss)
        return scaled

    def unscale(self) -> bool:
        """Divide the gradients by the factor; whether they stay.

        They do not where one of them is not finite and a smaller factor, which is the next one,
        may help. The factor 1 does not help: such a gradient is the model's own.
        """
        factor = self._scaler.get_scale()
        self._scaler.unscale_(self._optimizer)
        self._scaler.update()
        return bool(self._scaler.get_scale() >= factor or factor <= 1.0)
