"""A DistributedDataParallel script as one writes it by hand, for any launcher that sets ``env://``."""

import argparse
import json
import time

import torch
import torch.distributed as dist
from job import job
from planner_batches import ProportionalSampler
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def main() -> None:
    """Train, and print the steps/s of the rank after the first ones."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True, help="first steps, which are not counted")
    args = parser.parse_args()

    made = job()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(made.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    sampler = ProportionalSampler(made.train, args.batch_size, drop_last=True)
    loader = DataLoader(made.train, batch_size=sampler.batch_size, sampler=sampler)

    step, epoch, began_s = 0, 0, 0.0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for images, labels in loader:
            if step == args.warm:
                began_s = time.perf_counter()
            optimizer.zero_grad()
            (made.loss(model(images), labels) * sampler.weight).backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
        epoch += 1
    print(json.dumps({"steps_per_s": (args.steps - args.warm) / (time.perf_counter() - began_s)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
