"""Which backend the members of a process group agree on; GPUs are stand-ins here."""

import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from backends.frameworks.process_group import GroupSettings
from tests.installed import computes_with

pytestmark = computes_with("torch")


class _Store:
    """What the members tell one another; a member waits for the words of the others."""

    def __init__(self) -> None:
        self._said: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self._changed:
            self._said[key] = value.encode()
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        with self._changed:
            assert self._changed.wait_for(lambda: key in self._said, timeout=60.0)
            return self._said[key]


@pytest.fixture
def agreed(monkeypatch):
    group_backend = importlib.import_module("backends.pytorch.group_backend")

    def agree(gpus: list[str | None], backend: str) -> list[str]:
        """What each member comes to; a member without a GPU has None."""
        monkeypatch.setattr(group_backend, "gpu_for_nccl", lambda rank: gpus[rank] or group_backend.NO_GPU)
        store = _Store()

        def member(rank: int) -> str:
            settings = GroupSettings(
                rank=rank, size=len(gpus), address="127.0.0.1", port=1, interface="lo", limit_s=9.0, wait_s=300.0
            )
            try:
                return group_backend.agree(settings._replace(backend=backend), store)
            except ValueError as error:
                return str(error)

        with ThreadPoolExecutor(len(gpus)) as members:
            return list(members.map(member, range(len(gpus))))

    return agree


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        (["a", "b"], "nccl"),
        (["a", None], "gloo"),
        ([None, None], "gloo"),
        (["a", "b", "a"], "gloo"),
    ],
)
def test_nccl_needs_a_gpu_of_its_own_for_every_member(agreed, gpus, found):
    assert agreed(gpus, "auto") == [found] * len(gpus)
    assert agreed(gpus, "gloo") == ["gloo"] * len(gpus)


def test_every_member_refuses_nccl_where_it_is_asked_for_and_cannot_be_had(agreed):
    assert agreed(["a", "b"], "nccl") == ["nccl", "nccl"]
    assert agreed(["a", None], "nccl") == [
        "backend=nccl: member 1 has no CUDA, or its torch no NCCL; leave the option out",
        "backend=nccl: this device has no CUDA, or its torch no NCCL; leave the option out",
    ]
    assert agreed(["a", "b", "a"], "nccl") == [
        "backend=nccl: members 0 and 2 compute on the same GPU, which NCCL refuses; leave the option out",
        "backend=nccl: two other members compute on the same GPU, which NCCL refuses; leave the option out",
        "backend=nccl: members 2 and 0 compute on the same GPU, which NCCL refuses; leave the option out",
    ]
