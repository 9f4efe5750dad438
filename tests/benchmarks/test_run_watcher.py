"""What is noted of a run while it goes on."""

from backends.protocol.events import MemberProgress, Progress
from benchmarks.racing.network_cards import Count
from benchmarks.racing.run_watcher import RunWatcher
from planner.agents.call import Event
from planner.train.events import Started, TimeOver


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


def test_the_first_steps_are_left_out() -> None:
    watch = _watched(_progress(10, 1, 1), _progress(20, 2, 2), _progress(30, 3, 3))
    found = watch.traffic()
    assert found is not None and found.payload_bytes == 2 * (30.0 - 20.0)


def test_a_worker_beside_its_server_uses_no_card() -> None:
    watch = _watched(_progress(10, 2, 2), _progress(30, 3, 3), left_out="0")
    found = watch.traffic()
    assert found is not None and found.payload_bytes == 20.0


def test_a_run_with_a_single_report_tells_nothing_of_its_traffic() -> None:
    assert _watched(_progress(10, 2, 2)).traffic() is None


def test_bytes_of_the_whole_run_end_with_its_training() -> None:
    watch = _watched(TimeOver(), _progress(10, 2, 2), _progress(10, 3, 3))
    assert watch.card_bytes == 1000
    assert watch.traffic() is None


def test_a_run_that_ends_at_its_target_has_its_bytes_as_well() -> None:
    watch = _watched(_progress(10, 2, 2), _progress(10, 3, 3))
    watch.end()
    assert watch.card_bytes is not None


def test_who_waits_for_the_beginning_is_told() -> None:
    begun = []
    RunWatcher(None, "", lambda: begun.append(True)).on_event("planner", Started())
    assert begun == [True]
