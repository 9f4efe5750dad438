"""Records come out as they went in, however their bytes are cut."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.streams.record_frames import MOST_BYTES, FrameReader, pack, pack_end
from backends.streams.source import StreamRecord

RECORDS = st.lists(st.builds(StreamRecord, st.integers(0, 2**63), st.binary(min_size=1, max_size=40)), max_size=6)


@given(RECORDS, st.integers(1, 30))
def test_bytes_in_pieces_make_the_same_records(records: list[StreamRecord], size: int) -> None:
    reader, content, found = FrameReader(), pack(records) + pack_end(7), []
    for start in range(0, len(content), size):
        found += reader.add(content[start : start + size])
    assert (found, reader.ended, reader.is_whole) == (records, True, True)


def test_what_is_cut_off_is_not_whole_and_no_end_is_none() -> None:
    reader = FrameReader()
    assert reader.add(pack([StreamRecord(3, b"abc")])[:-1]) == []
    assert not reader.is_whole and not reader.ended


def test_a_size_that_no_sample_has_is_refused() -> None:
    with pytest.raises(ValueError, match="a sample of .* bytes was announced"):
        FrameReader().add(struct.pack(">QI", 0, MOST_BYTES + 1))
