"""`planner models` lists what `planner profile` times."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planner.profile.request import ProfileRequest
from tests.planner.cli.commands import LOCAL, Planner, fleet


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[ProfileRequest]:
    """What was to be profiled; nothing is."""
    asked: list[ProfileRequest] = []

    def profiler(devices: Any, request: ProfileRequest, *_: Any) -> Any:
        asked.append(request)
        return SimpleNamespace(run=lambda log: fleet())

    monkeypatch.setattr("planner.profile.profiler.Profiler", profiler)
    Path("fleet.toml").write_text(LOCAL)
    return asked


def test_with_a_stream_alone_nothing_of_a_profile_is_timed_again(
    profiled: Planner, requests: list[ProfileRequest]
) -> None:
    stream = "directory:/data/{device}"
    assert profiled("profile", "--stream", stream).code == 0
    assert profiled("profile", "--stream", stream, "--model", "resnet").code == 0
    assert profiled("profile", "--stream", stream, "--out", "other.json").code == 0
    assert [each.models for each in requests] == [(), ("resnet",), ("cifar10",)]
    assert all(each.stream is not None and each.stream.text == stream for each in requests)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("replay:S1", "--stream replay:S1: a replay tells its rates itself; give it to `planner recommend`"),
        ("tape:x", "--stream tape:x: unknown source of a stream 'tape'"),
    ],
)
def test_a_stream_whose_samples_cannot_be_counted_is_refused(
    planner: Planner, requests: list[ProfileRequest], stream: str, told: str
) -> None:
    assert told in planner("profile", "--stream", stream).problem()
    assert requests == []
