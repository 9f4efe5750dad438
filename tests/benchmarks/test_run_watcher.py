"""What is noted of a run while it goes on."""

from backends.protocol.events import MemberProgress, Progress
from benchmarks.racing.network_cards import Count
from benchmarks.racing.run_watcher import RunWatcher
from planner.agents.call import Event
from planner.train.events import Started


class _Cards:
    """One card that sends 1000 bytes between two readings."""

    rates = {"a": 1e9}

    def __init__(self) -> None:
        self._sent = 0

    def read(self) -> dict[str, Count]:
        self._sent += 1000
        return {"a": Count(0, self._sent)}


def _progress(payload: int, *steps: int) -> Progress:
    members = {str(place): MemberProgress(made, None, payload, None, True) for place, made in enumerate(steps)}
    return Progress(sum(steps), 1000, 1.0, members)


def _watched(*events: Event, left_out: str = "") -> RunWatcher:
    watch = RunWatcher(_Cards(), left_out, lambda: None)
    for event in (Started(), *events):
        watch.on_event("server", event)
    return watch


def test_reports_count_when_the_slowest_worker_has_ended_a_step() -> None:
    watch = _watched(_progress(50, 2, 2), _progress(60, 9, 2), _progress(70, 10, 3), _progress(80, 11, 3))
    found = watch.traffic()
    assert found is not None
    assert found.payload_bytes == 2 * (70.0 - 50.0)
    assert found.sent_bytes == 1000
