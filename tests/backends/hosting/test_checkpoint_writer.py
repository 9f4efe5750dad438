"""Checkpoints are written one at a time, and a disk that hangs holds up no run."""

import errno
import shutil
import threading

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM
from backends.hosting import checkpoint_writer, spare_place
from backends.hosting.checkpoint_writer import CheckpointWriter
from backends.protocol.events import CheckpointFailed, CheckpointWritten, Saving
from backends.training import checkpoint
from backends.training.checkpoint import Checkpoint
from tests.running import until

LAYOUT = Layout((Variable("w", (2,), 0, 2),), ())


def filled(step=7, weight=1.0):
    weights = np.full(2, weight, np.float32)
    return Checkpoint(weights, {MOMENTUM: weights}, np.empty(0, np.float32), {"step": step, "evaluations": []}, LAYOUT)


def test_a_writer_leaves_out_what_is_due_while_it_writes_and_waits_for_it_at_the_end(tmp_path, monkeypatch):
    begun, go_on, events = threading.Event(), threading.Event(), []
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda *given: (begun.set(), go_on.wait(), write(*given)))
    writer = CheckpointWriter(str(tmp_path / "c.npz"), events.append)
    writer.write_in_background(lambda: filled(step=1))
    begun.wait()
    writer.write_in_background(lambda: filled(step=2))
    go_on.set()
    writer.write(lambda: filled(step=3))
    assert [event.step for event in events] == [1, 3]


def test_weights_that_are_not_finite_are_nowhere_a_checkpoint(tmp_path):
    events = []
    CheckpointWriter(str(tmp_path / "c.npz"), events.append).write(lambda: filled(weight=np.nan))
    assert events == [CheckpointFailed(f"{tmp_path}/c.npz: weights of step 7 are not finite")]


def test_what_cannot_be_copied_is_told_and_ends_nothing(tmp_path):
    def broken():
        raise MemoryError("no room for a copy")

    events = []
    CheckpointWriter(str(tmp_path / "c.npz"), events.append).write(broken)
    assert events == [CheckpointFailed(f"{tmp_path}/c.npz: MemoryError: no room for a copy")]


def test_what_the_disk_does_not_take_is_kept_elsewhere_told_once_and_the_disk_tried_again(tmp_path):
    events, path = [], tmp_path / "later" / "c.npz"
    writer = CheckpointWriter(str(path), events.append)
    for step in (1, 2):
        writer.write(lambda step=step: filled(step))
        assert checkpoint.peek(events[-1].path)["step"] == step
    path.parent.mkdir()
    writer.write(lambda: filled(3))
    assert checkpoint.peek(str(path))["step"] == 3
    assert [type(event) for event in events] == [CheckpointFailed] + 3 * [CheckpointWritten]
    assert events[0].reason.startswith(f"{path}: No such file or directory; it is kept in a spare place")
    shutil.rmtree(path.parent)
    writer.write(lambda: filled(4))
    assert events[-2] == events[0]


def test_without_room_anywhere_the_checkpoint_fails_with_the_cause(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    events = []
    monkeypatch.setattr(spare_place, "keep", full)
    CheckpointWriter(str(tmp_path / "no" / "c.npz"), events.append).write(filled)
    (event,) = events
    assert event.reason == f"{tmp_path}/no/c.npz: No space left on device, and no other place takes it"


@pytest.fixture
def stuck(tmp_path, monkeypatch):
    """The path of a checkpoint whose disk takes nothing until the test ends."""
    go_on = threading.Event()
    monkeypatch.setattr(checkpoint, "write", lambda *given: go_on.wait())
    yield str(tmp_path / "c.npz")
    go_on.set()


def test_a_write_that_hangs_is_given_up_once_and_others_go_elsewhere(stuck, monkeypatch):
    monkeypatch.setattr(checkpoint_writer, "LEAST_S", 0.1)
    events = []
    writer = CheckpointWriter(stuck, events.append)
    writer.write(filled)
    assert events == [CheckpointFailed(f"{stuck}: writing takes more than 0 s: it hangs")]
    monkeypatch.setattr(checkpoint_writer, "LEAST_S", 30.0)
    writer.write(lambda: filled(8))
    assert checkpoint.peek(events[1].path)["step"] == 8 and len(events) == 2


def test_where_the_spare_place_hangs_too_no_copy_of_the_weights_is_added_until_it_goes_on(stuck, monkeypatch):
    """One disk for both, such as an SD card that stops answering."""
    events, copies, go_on, now_s = [], [], threading.Event(), [0.0]
    keep = spare_place.keep
    monkeypatch.setattr(spare_place, "keep", lambda *given: go_on.wait() and keep(*given))
    writer = CheckpointWriter(stuck, events.append, lambda: now_s[0])

    def snapshot():
        copies.append(len(copies))
        return filled(step=len(copies))

    for _ in range(10):
        writer.write_in_background(snapshot)
        now_s[0] += 60.0
    assert copies == [0, 1]
    assert events == [CheckpointFailed(f"{stuck}: writing takes more than 30 s: it hangs")]
    before = threading.active_count()
    go_on.set()
    until(lambda: threading.active_count() < before, lambda: str(threading.enumerate()))
    writer.write(snapshot)
    assert checkpoint.peek(events[-1].path)["step"] == 3


def test_while_a_disk_hangs_memory_comes_before_temporary_files_which_may_be_there(stuck, monkeypatch):
    folders, keep = [], spare_place.keep
    monkeypatch.setattr(spare_place, "keep", lambda write, wanted, given: folders.append(given) or keep(write, wanted))
    monkeypatch.setattr(checkpoint_writer, "LEAST_S", 0.0)
    writer = CheckpointWriter(stuck, lambda event: None)
    writer.write(filled)
    writer.write(filled)
    assert folders == [("/dev/shm", None)]


def test_a_hanging_write_in_the_background_is_noticed_when_the_next_is_due(stuck):
    events, now_s = [], [0.0]
    writer = CheckpointWriter(stuck, events.append, lambda: now_s[0])
    writer.write_in_background(filled)
    now_s[0] = 29.0
    writer.write_in_background(filled)
    assert not events
    now_s[0] = 31.0
    writer.write_in_background(filled)
    assert events[0] == CheckpointFailed(f"{stuck}: writing takes more than 30 s: it hangs")
    writer.join()


def test_who_waits_for_a_write_says_so_until_it_has_ended(tmp_path, monkeypatch):
    """The operator waits on, and does not take a slow disk for a host that is lost."""
    go_on, events, write = threading.Event(), [], checkpoint.write

    def hear(event):
        events.append(event)
        if events.count(Saving()) == 3:
            go_on.set()

    monkeypatch.setattr(checkpoint, "write", lambda *given: (go_on.wait(), write(*given)))
    monkeypatch.setattr(checkpoint_writer, "SIGN_S", 0.001)
    CheckpointWriter(str(tmp_path / "c.npz"), hear).write(filled)
    assert events[:3] == [Saving()] * 3
    assert CheckpointWritten in map(type, events)


def test_what_a_hanging_write_has_written_in_the_end_is_no_checkpoint(tmp_path, monkeypatch):
    begun, go_on, events = threading.Event(), threading.Event(), []
    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", lambda *given: (begun.set(), go_on.wait(), write(*given)))
    monkeypatch.setattr(checkpoint_writer, "LEAST_S", 0.0)
    path, before = tmp_path / "c.npz", set(threading.enumerate())
    writer = CheckpointWriter(str(path), events.append)
    writer.write_in_background(filled)
    begun.wait()
    writer.join()
    (hanging,) = set(threading.enumerate()) - before
    go_on.set()
    hanging.join()
    assert not path.exists()
    monkeypatch.setattr(checkpoint_writer, "LEAST_S", 30.0)
    writer.write(lambda: filled(9))
    assert [type(event) for event in events] == [CheckpointFailed, CheckpointWritten]
    assert checkpoint.peek(str(path))["step"] == 9
