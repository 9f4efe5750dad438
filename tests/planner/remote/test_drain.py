"""A stream is read in the background: its end is kept, and its lines are logged."""

import logging

import pytest

from planner.remote.drain import OUTPUT, Drain
from tests.running import HANG_S


def drained(chunks: list[bytes], limit: int = 100) -> Drain:
    rest = iter([*chunks, b""])
    made = Drain("tx2", lambda size: next(rest), limit)
    made.join(HANG_S)
    return made


def test_the_last_bytes_are_kept() -> None:
    assert drained([b"ab", b"cd", b"ef"], limit=3).bytes() == b"def"


def test_each_whole_line_is_logged_with_its_device(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, OUTPUT.name):
        drained([b"one\ntw", b"o\r\n", b"\xff\nunfinished"])
    assert [record.getMessage() for record in caplog.records] == [
        "tx2: one",
        "tx2: two",
        "tx2: \N{REPLACEMENT CHARACTER}",
    ]
