"""Typos in options are told with what there is, before any device is contacted."""

from pathlib import Path

import pytest

from tests.planner.cli.commands import LOCAL, Planner


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("profile", "--protocol", "papr"),
            '--protocol papr: unknown; did you mean "paper"? (known: adaptive, paper)',
        ),
        (("profile", "--framework", "torhc"), '--framework torhc: unknown; did you mean "torch"?'),
        (("check", "--framework", "torhc"), 'did you mean "torch"?'),
        (("profile", "--model", "cifar"), "did you mean 'cifar10'"),
        (("profile", "--model", "none.py:net"), "none.py"),
        (("profile", "--device", "aa"), 'no device "aa"; did you mean "a"? (known: a, b)'),
        (("profile", "--data", "none"), "give the one that holds the images"),
        (("train", "--metric", "edb"), '--metric edb: unknown; did you mean "edp"?'),
        (("train", "--metric", "edp", "--framework", "x"), "--framework x: unknown; known: torch"),
        (("train", "--schedule", "cos"), "--schedule cos: unknown"),
        (("train", "--momentum", "2"), "--momentum 2: give a number from 0 to below 1"),
        (("train", "--model", "cifar10"), "--model cifar10: a plan has its own"),
        (("train", "--batch-size", "8"), "--batch-size 8: a plan has its own"),
        (("train", "--quiet", "--verbose"), "--quiet and --verbose: choose one of them"),
        (("profile", "--micro-batch", "2", "--batch-size", "33"), "--micro-batch 2 leaves one sample of 33 alone"),
        (("profile", "--micro-batch", "2", "--batch-size", "12"), "--micro-batch 2 leaves one sample of 3 alone"),
        (("train", "--metric", "edp", "--micro-batch", "2", "--batch-size", "5"), "leaves one sample of 5 alone"),
        (("profile", "-q", "-v"), "--quiet and --verbose: choose one of them"),
    ],
)
def test_a_typo_is_told_with_what_there_is(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    def contacted(*_: object) -> None:
        raise AssertionError("a device was contacted")

    monkeypatch.setattr("planner.agents.pool.connect", contacted)
    monkeypatch.setattr("planner.check.run.connect", contacted)
    Path("fleet.toml").write_text(LOCAL)
    assert told in planner(*arguments).problem()
