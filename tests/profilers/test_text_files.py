"""Text of others is decoded by its first bytes; what is no text is named with its place."""

import pytest

from profilers.text_files import decode, read_text

TEXT = "time,watts\n1,2\näöü\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_in_every_encoding_is_read_without_its_mark(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(TEXT.encode(encoding))
    assert read_text(str(tmp_path / "a.csv")) == TEXT


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"watts\nna\xefve", "x: 0xef at byte 8 is no UTF-8 text"),
        (b"\xff\xfea\x00b", "x: 0x62 at byte 4 is no UTF-16-LE text"),
        (b"\xef\xbb\xbfa\x80", "x: 0x80 at byte 4 is no UTF-8 text"),
    ],
)
def test_a_byte_that_is_no_text_is_named_with_its_place(content, reason):
    with pytest.raises(ValueError, match=reason):
        decode(content, "x")


def test_short_texts_are_utf_8():
    assert [decode(content, "x") for content in (b"", b"a", b"\0", b"ab")] == ["", "a", "\0", "ab"]
