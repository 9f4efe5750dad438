"""Accelerate, with gradients accumulated over two batches and a schedule, as in its examples."""

import os

import torch
from accelerate import Accelerator
from planner_batches import ProportionalSampler, prepare
from small import EPOCHS, RATE, TEST, TRAIN, network, points, say
from torch import nn
from torch.utils.data import BatchSampler, DataLoader

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
data = points(TRAIN)
sampler = ProportionalSampler(data, batch_size=8)
loader = DataLoader(data, batch_sampler=BatchSampler(sampler, sampler.batch_size, drop_last=False))
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=len(loader) * EPOCHS)
test_loader = DataLoader(points(TEST), batch_size=4)
model, optimizer, schedule = prepare(accelerator, model, optimizer, schedule)
loader, test_loader = prepare(accelerator, loader, test_loader)
steps = 0
for _ in range(EPOCHS):
    model.train()
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(model(inputs), labels) * sampler.weight)
            optimizer.step()
            schedule.step()
        steps += 1
    model.eval()
    right = []
    for inputs, labels in test_loader:
        with torch.no_grad():
            right.append(accelerator.gather_for_metrics(model(inputs).argmax(1) == labels))
say(accelerator.unwrap_model(model), steps, torch.cat(right).float().mean().item())
accelerator.end_training()
os._exit(0)
