"""Train a small network with DistributedDataParallel on synthetic data.

Nothing in it is of planner: any launcher that sets torch.distributed's variables starts it.

    torchrun --nproc-per-node 2 ddp_script.py --steps 100
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def synthetic(samples: int) -> TensorDataset:
    """Points, and a label that says on which side of a plane they lie."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(samples, 20, generator=generator)
    plane = torch.randn(20, generator=generator)
    return TensorDataset(points, (points @ plane > 0).long())


def main() -> None:
    """Parse the options and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--checkpoint", default="model.pt")
    args = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} on {device}, {torch.get_num_threads()} threads")

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    data = synthetic(4096)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)

    step, epoch = 0, 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"step {step}: loss {loss.item():.4f}")
            if step == args.steps:
                break
        epoch += 1

    if rank == 0:
        torch.save(network.state_dict(), args.checkpoint)
    dist.destroy_process_group()
    # A thread of gloo may still be freeing the last exchange, for which it needs the interpreter:
    # one that ends meanwhile aborts ("terminate called without an active exception", torch 2.13).
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
