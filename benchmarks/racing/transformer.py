"""A small vision transformer of 0.35 MB, whose sentence is the 49 places of an image of 7 by 7.

A model file as users write them: it goes to devices, where Python 3.6, torch and the agent's own
packages are all there is.
"""

import torch
from torch import nn

SHAPE = (28, 28, 1)
#: Places that are left after two convolutions with a stride of 2.
PLACES = (SHAPE[0] // 4) * (SHAPE[1] // 4)
#: Numbers a place is described by, heads of attention, and blocks.
WIDTH, HEADS, BLOCKS = 64, 4, 2


class VisionTransformer(nn.Module):
    """Blocks whose norms come first (Dosovitskiy et al., 2021), after convolutions.

    These take the place of patches, for SGD hardly trains a transformer without them
    (Xiao et al., Early Convolutions Help Transformers See Better, 2021).
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.embed = nn.Sequential(_halved(SHAPE[2], WIDTH // 2), _halved(WIDTH // 2, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, PLACES, WIDTH))
        self.blocks = nn.Sequential(*(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, batch_first=True, norm_first=True)
            for _ in range(BLOCKS)
        ))  # fmt: skip
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, images: "torch.Tensor") -> "torch.Tensor":
        places = self.embed(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(places + self.places)).mean(1))


def _halved(channels: int, out: int) -> "nn.Module":
    """To images of half the width and height."""
    return nn.Sequential(nn.Conv2d(channels, out, 3, 2, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


def transformer() -> "tuple[nn.Module, tuple[int, ...]]":
    """(module, input shape), with torch's own initial weights."""
    return VisionTransformer(10), SHAPE
