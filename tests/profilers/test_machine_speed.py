"""A reference loop beside a measurement tells how fast the machine was meanwhile."""

import statistics
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import machine_speed
from profilers.cores import thread_cpu_s
from profilers.file_tree import FileTree
from profilers.machine_speed import INTERRUPTED, ReferenceLoop, ReferenceRounds, SpeedMeter, period_s, uninterrupted_s

HANG_S = 20.0

pytestmark = pytest.mark.timeout(60)


class Loop:
    """Rounds of given processor seconds; ``made`` is set once there were all of them."""

    def __init__(self, *seconds):
        self._seconds = list(seconds)
        self.made = threading.Event()

    def __call__(self):
        if len(self._seconds) == 1:
            self.made.set()
        return self._seconds.pop(0) if self._seconds else 0.5


@pytest.fixture(autouse=True)
def without_pause(monkeypatch):
    monkeypatch.setattr(machine_speed, "MOST_PERIOD_S", 0.001)


def meter(loop, tmp_path):
    return SpeedMeter(loop, usable_cores=1.0, tree=FileTree(tmp_path))


def test_the_speed_is_that_of_its_rounds(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_speed, "MOST_PERIOD_S", 60.0)
    monkeypatch.setattr(machine_speed, "LEAST_PERIOD_S", 60.0)  # one round, then a pause beyond this test
    loop = Loop(0.002)
    speed = meter(loop, tmp_path)
    speed.start()
    assert loop.made.wait(HANG_S)
    found = speed.stop()
    assert (found.loop_s, found.stdev_s, found.rounds, found.taken_s) == (0.002, None, 1, (0.002,))
    assert (found.stolen_share, found.throttled_share) == (None, None)


def test_a_turn_gives_what_was_measured_since_the_one_before(tmp_path):
    loop = Loop(0.002, 0.004)
    speed = meter(loop, tmp_path)
    speed.start()
    assert loop.made.wait(HANG_S)
    first = speed.turn()
    rest = speed.stop()
    assert first.rounds >= 1 and first.loop_s is not None and first.loop_s >= 0.002
    assert rest.rounds == 0 or rest.loop_s is not None


def test_it_can_be_started_again(tmp_path):
    loop = Loop(0.001)
    speed = meter(loop, tmp_path)
    for _ in range(2):
        speed.start()
        assert loop.made.wait(HANG_S)
        speed.stop()


def test_a_measurement_without_a_round_has_no_speed(tmp_path):
    speed = meter(Loop(0.001), tmp_path)
    speed._lost = machine_speed.LostTime(FileTree(tmp_path))
    assert speed.turn() == machine_speed.MachineSpeed(None, None, 0, loop=machine_speed.LOOP)


@pytest.mark.parametrize(
    ("taken_s", "expected_s"),
    [([0.004], 0.004), ([0.004, 0.005], 0.0045), ([0.004, 0.005, 0.02], 0.0045), ([0.004, 0.004, 0.02, 0.02], 0.004)],
)
def test_interrupted_rounds_do_not_count(taken_s, expected_s):
    assert uninterrupted_s(taken_s) == pytest.approx(expected_s)


@given(st.lists(st.floats(1e-4, 1e-4 * INTERRUPTED), min_size=1))
def test_all_others_count_alike(taken_s):
    assert uninterrupted_s(taken_s) == pytest.approx(statistics.mean(taken_s))


def test_rounds_are_made_one_by_one_between_parts_of_a_measurement(tmp_path):
    rounds = ReferenceRounds(Loop(0.002, 0.003), FileTree(tmp_path))
    assert (rounds.speed().loop_s, rounds.speed().rounds) == (None, 0)
    rounds.make()
    assert (rounds.speed().loop_s, rounds.speed().rounds) == (0.002, 1)
    rounds.make()
    assert (rounds.speed().loop_s, rounds.speed().taken_s) == (0.0025, (0.002, 0.003))


def test_a_block_bounds_a_measurement(tmp_path):
    loop = Loop(0.002, 0.004)
    with meter(loop, tmp_path) as beside:
        assert loop.made.wait(HANG_S)
        assert beside.so_far().rounds >= 1
    with beside:  # it has ended, or it could not begin again
        pass


def test_rounds_take_no_more_than_their_share_of_a_slow_device(monkeypatch):
    monkeypatch.setattr(machine_speed, "MOST_PERIOD_S", 5.0)
    assert period_s(0.001, 0.005) == pytest.approx(0.2)
    assert period_s(0.001, 0.005 * 0.15) == pytest.approx(1 / 0.75)
    assert period_s(0.0, 0.005) == 0.02
    assert period_s(1.0, 0.005) == 5.0


def test_the_loop_tells_the_processor_time_of_its_own_thread():
    loop = ReferenceLoop()
    before_s = thread_cpu_s()
    taken_s = loop()
    assert 0 < taken_s <= thread_cpu_s() - before_s
