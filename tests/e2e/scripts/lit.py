"""Lightning, whose own validation data loader stays as it is."""

import os

import torch
from lightning.pytorch import LightningModule, Trainer
from planner_batches import ProportionalSampler, lightning_callback, lightning_nodes
from small import EPOCHS, RATE, TEST, TRAIN, network, points, say
from torch import nn
from torch.utils.data import DataLoader


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()

    def training_step(self, batch, _):
        inputs, labels = batch
        return nn.functional.cross_entropy(self.network(inputs), labels)

    def validation_step(self, batch, _):
        inputs, labels = batch
        right = self.network(inputs).argmax(1) == labels
        self.log("correct", right.float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=RATE)


data = points(TRAIN)
sampler = ProportionalSampler(data, batch_size=8)
loader = DataLoader(data, batch_size=sampler.batch_size, sampler=sampler)
trainer = Trainer(
    **lightning_nodes(), strategy="ddp", callbacks=[lightning_callback()], max_epochs=EPOCHS, accelerator="cpu",
    logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=0,
)  # fmt: skip
module = Module()
trainer.fit(module, loader, DataLoader(points(TEST), batch_size=4))
say(module.network, trainer.global_step, trainer.callback_metrics["correct"].item())
os._exit(0)
