"""Lightning, whose own validation data loader stays as it is. The word "labels": not all count."""

import os
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from planner_batches import ProportionalSampler, lightning_callback, lightning_nodes
from small import EPOCHS, RATE, TEST, TRAIN, network, points, say
from torch import nn
from torch.utils.data import DataLoader


def counted(batch):
    """The labels of a batch, all or those that count."""
    inputs, labels = batch
    return labels.where(inputs[:, 0] > 0, -100) if sys.argv[1:] else labels


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.network(batch[0]), counted(batch))

    def validation_step(self, batch, _):
        inputs, labels = batch
        right = self.network(inputs).argmax(1) == labels
        self.log("correct", right.float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=RATE)


data = points(TRAIN)
sampler = ProportionalSampler(data, batch_size=8)
loader = DataLoader(data, batch_size=sampler.batch_size, sampler=sampler)
callback = lightning_callback(lambda batch: (counted(batch) != -100).sum()) if sys.argv[1:] else lightning_callback()
trainer = Trainer(
    **lightning_nodes(), strategy="ddp", callbacks=[callback], max_epochs=EPOCHS, accelerator="cpu",
    logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=0,
)  # fmt: skip
module = Module()
trainer.fit(module, loader, DataLoader(points(TEST), batch_size=4))
say(module.network, trainer.global_step, trainer.callback_metrics["correct"].item())
os._exit(0)
