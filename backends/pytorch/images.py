"""A module that classifies images becomes a job with PyTorch's operations."""

from typing import Tuple

import torch
from torch import nn
from torch.nn import functional

from backends.jobs.job import ACCURACY, Job, Metric
from backends.models.layers import Shape


def image_job(module: nn.Module, input_shape: Shape, classes: int) -> Job:
    """A job of images and labels, for a module that maps scaled images to (batch, classes)."""
    metrics = {ACCURACY: Metric(_accuracy)}
    return Job(module, _forward, functional.cross_entropy, metrics, input_shape, classes)


def scaled(images: torch.Tensor) -> torch.Tensor:
    """Images to float32, channels first: bytes to -1 to 1, floats as they are.

    images: (batch, height, width, channels).
    """
    planes = images.permute(0, 3, 1, 2)
    if images.is_floating_point():
        return planes.clone(memory_format=torch.contiguous_format)  # a module may write to its input
    return planes.contiguous().float().mul_(2 / 255.0).sub_(1.0)


def _forward(module: nn.Module, batch: Tuple[torch.Tensor, torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    images, labels = batch
    return module(scaled(images)), labels


def _accuracy(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (outputs.argmax(1) == labels).float().mean()
