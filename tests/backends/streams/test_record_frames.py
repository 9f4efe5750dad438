"""Records come out as they went in."""

from hypothesis import given
from hypothesis import strategies as st

from backends.streams.record_frames import Unpacked, pack, pack_end, unpack
from backends.streams.source import StreamRecord

RECORDS = st.lists(st.builds(StreamRecord, st.integers(0, 2**63), st.binary(min_size=1, max_size=40)), max_size=6)


@given(RECORDS)
def test_bytes_make_the_same_records(records: list[StreamRecord]) -> None:
    assert unpack(pack(records) + pack_end(7)) == Unpacked(records, ended=True, is_whole=True)


def test_what_is_cut_off_is_not_whole_and_no_end_is_none() -> None:
    records = [StreamRecord(2, b"x"), StreamRecord(3, b"abc")]
    assert unpack(pack(records)[:-1]) == Unpacked(records[:1], ended=False, is_whole=False)
