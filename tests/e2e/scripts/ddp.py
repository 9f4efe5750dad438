"""DistributedDataParallel, as PyTorch's tutorials write it."""

import os

import torch
import torch.distributed as dist
from planner_batches import ProportionalSampler
from small import EPOCHS, RATE, TEST, TRAIN, network, points, say
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

distributed = "RANK" in os.environ
if distributed:
    dist.init_process_group("gloo")
module = network()
model = DistributedDataParallel(module) if distributed else module
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
data, test = points(TRAIN), points(TEST)
sampler = ProportionalSampler(data, batch_size=8)
loader = DataLoader(data, batch_size=sampler.batch_size, sampler=sampler, num_workers=1)
test_sampler = DistributedSampler(test, shuffle=False) if distributed else None
steps = 0
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels) * sampler.weight
        loss.backward()
        optimizer.step()
        steps += 1
    model.eval()
    correct = torch.zeros(())
    with torch.no_grad():
        for inputs, labels in DataLoader(test, batch_size=4, sampler=test_sampler):
            correct += (model(inputs).argmax(1) == labels).sum()
    if distributed:
        dist.all_reduce(correct)
say(module, steps, correct.item() / TEST)
if distributed:
    dist.destroy_process_group()
os._exit(0)  # as examples/ddp_script.py, which tells why
