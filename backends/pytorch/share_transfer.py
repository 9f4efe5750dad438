"""Whole arrays go from the first member to the shares of all, and back, one variable at a time."""

from typing import Any, Iterator, Tuple

import numpy as np
import torch
import torch.distributed as dist

from backends.frameworks.layout import Variable
from backends.pytorch.broken_exchange import as_group_error


class ShareTransfer:
    """One member's part; all call the same methods in the same order.

    A share has the rows that FSDP2 gives its member: equally many, but for the last members.
    group: of torch.distributed, for what is on the host. Raises GroupError where it breaks off.
    """

    def __init__(self, rank: int, size: int, group: Any) -> None:
        self.rank, self._size, self._group = rank, size, group

    def broadcast(self, values: torch.Tensor) -> None:
        """Set the values, on the host, to the first member's."""
        with as_group_error():
            dist.broadcast(values, 0, group=self._group)

    def total(self, value: float) -> float:
        """The sum of all members' values."""
        found = torch.tensor(value, dtype=torch.float64)
        with as_group_error():
            dist.all_reduce(found, group=self._group)
        return float(found)

    def collect(self, share: torch.Tensor, variable: Variable) -> np.ndarray:
        """The whole variable on the first member, of its shape; an empty array on others."""
        if self.rank:
            self._send(share.cpu().contiguous(), 0)
            return np.empty(0, np.float32)
        whole = torch.empty(variable.shape)
        for rank, rows in self._rows(variable):
            if rank:
                self._receive(whole[rows], rank)
            else:
                whole[rows] = share.cpu()
        found: np.ndarray = whole.numpy()
        return found

    def distribute(self, whole: np.ndarray, share: torch.Tensor, variable: Variable) -> None:
        """Set the share to that of the first member's flat array, of which others have none."""
        if self.rank:
            received = torch.empty(share.shape)
            self._receive(received, 0)
            share.copy_(received)
            return
        values = torch.from_numpy(np.array(whole[variable.part], np.float32)).view(variable.shape)
        for rank, rows in self._rows(variable):
            if rank:
                self._send(values[rows], rank)
            else:
                share.copy_(values[rows])

    def _rows(self, variable: Variable) -> Iterator[Tuple[int, slice]]:
        """The rows of each member's share."""
        rows = variable.shape[0]
        each = -(-rows // self._size)
        for rank in range(self._size):
            yield rank, slice(min(rows, rank * each), min(rows, (rank + 1) * each))

    def _send(self, values: torch.Tensor, rank: int) -> None:
        if values.numel():
            with as_group_error():
                dist.send(values, rank, group=self._group)

    def _receive(self, values: torch.Tensor, rank: int) -> None:
        if values.numel():
            with as_group_error():
                dist.recv(values, rank, group=self._group)
