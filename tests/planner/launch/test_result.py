"""How a launch and its ranks ended, in words."""

from planner.launch.result import RankEnd, ended_before


def end(name: str, rank: int, exit_code: int | None, ended_by: str | None = None) -> RankEnd:
    return RankEnd(name, rank, exit_code, ended_by, 1.0, "/there")


def test_ranks_that_were_through_are_named_beside_one_that_fails() -> None:
    """As where batches differ, and each rank goes through as many samples by itself."""
    ends = [end("pc", 0, 0), end("tx2", 1, 1), end("tx1", 2, 0, "the end of tx2"), end("nano", 3, None)]
    said = "; pc (rank 0) had ended with exit code 0: do all ranks make the same number of steps?"
    assert ended_before(ends) == said
    assert ended_before(ends[1:]) == ""
