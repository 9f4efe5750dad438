"""Which member of a plan is which rank, and what its process learns of that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.launch.ranks import PlacedRank, environment, nodes_of
from tests.planner.launch.made import on, ranks


def places(found: tuple[PlacedRank, ...]) -> dict[str, tuple[int, int, int, int]]:
    """Rank, node, local rank and local size by name."""
    return {each.name: (each.rank, each.node, each.local_rank, each.local_size) for each in found}


def test_the_plans_server_is_the_first_rank() -> None:
    assert places(ranks("tx2", pc=on("pc"), tx2=on("tx2"), nano=on("nano"))) == {
        "tx2": (0, 0, 0, 1),
        "pc": (1, 1, 0, 1),
        "nano": (2, 2, 0, 1),
    }


def test_members_of_one_host_are_one_node_of_neighbours() -> None:
    found = ranks(gpu0=on("big", "0"), nano=on("nano"), gpu1=on("big", "1"))
    assert places(found) == {"gpu0": (0, 0, 0, 2), "gpu1": (1, 0, 1, 2), "nano": (2, 1, 0, 1)}
    assert [rank.gpus for rank in found] == ["0,1", "0,1", None]
    assert [[rank.name for rank in node] for node in nodes_of(found)] == [["gpu0", "gpu1"], ["nano"]]


def test_members_that_see_the_same_gpu_cannot_count_it_by_their_local_rank() -> None:
    assert places(ranks(a=on("big", "0"), b=on("big", "0"))) == {"a": (0, 0, 0, 1), "b": (1, 1, 0, 1)}
    assert places(ranks(a=on("big", "0"), b=on("big"))) == {"a": (0, 0, 0, 1), "b": (1, 1, 0, 1)}


def test_the_variables_are_those_of_torch_distributed_and_of_the_plan() -> None:
    found = ranks(gpu0=on("big", "0"), gpu1=on("big", "1"), nano=on("nano"))
    assert environment(found[1], found, "192.168.0.5", 23456) == {
        "MASTER_ADDR": "192.168.0.5",
        "MASTER_PORT": "23456",
        "RANK": "1",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "NODE_RANK": "0",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "PLANNER_BATCH_SIZE": "32",
        "PLANNER_BATCH_SIZES": "32,32,32",
        "PLANNER_RANK_WEIGHT": "1.0",
        "PLANNER_DEVICES": "gpu0,gpu1,nano",
    }


def test_data_that_are_on_a_device_are_named() -> None:
    found = ranks(a=on("a", data="/mnt/set"), b=on("b"))
    variables = [environment(rank, found, "x", 1) for rank in found]
    assert [each.get("PLANNER_DATA") for each in variables] == ["/mnt/set", None]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([None, "", "0", "1"])), min_size=1),
    st.data(),
)
def test_ranks_count_through_nodes_and_local_ranks_through_each(
    members: list[tuple[str | None, str | None]], data: st.DataObject
) -> None:
    devices = {f"d{number}": on(host, gpus) for number, (host, gpus) in enumerate(members)}
    server = data.draw(st.sampled_from(list(devices)))
    found = ranks(server, **devices)
    assert sorted(rank.name for rank in found) == sorted(devices) and found[0].name == server
    assert [rank.rank for rank in found] == list(range(len(devices)))
    assert [rank.node for rank in found] == sorted(rank.node for rank in found)
    assert sum(rank.weight for rank in found) == pytest.approx(len(found))
    for node in nodes_of(found):
        assert [rank.local_rank for rank in node] == list(range(node[0].local_size))
        assert len({rank.device.ssh for rank in node}) == 1
