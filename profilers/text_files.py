"""Text files that others wrote are decoded by their first bytes: UTF-8, UTF-16 or UTF-32."""

import codecs
from typing import Optional, Tuple

from profilers.regular_file import open_regular

#: The longest first: UTF-32 begins as UTF-16 does.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: So many bytes tell whether a file without a mark is UTF-16: every second one of ASCII is then 0.
LOOKED_AT = 64


def read_text(path: str) -> str:
    """The text of a file. Raises OSError, and ValueError that names the file and the byte."""
    with open_regular(path) as stream:
        return decode(stream.read(), path)


def decode(content: bytes, shown: str, encoding: Optional[str] = None, start: int = 0) -> str:
    """The text of a whole file, without its mark. Errors call the file ``shown``.

    encoding: where it is known already, as for a part of a file, which begins at byte ``start``.
    Raises ValueError naming the first byte that is no text.
    """
    name, mark_bytes = (encoding, 0) if encoding else encoding_of(content)
    try:
        return content[mark_bytes:].decode(name)
    except UnicodeDecodeError as error:
        at = mark_bytes + error.start
        wrong, at = "0x%02x" % content[at], at + start
        raise ValueError(
            "%s: %s at byte %d is no %s text; save it as UTF-8" % (shown, wrong, at, name.upper())
        ) from None


def encoding_of(content: bytes) -> Tuple[str, int]:
    """(encoding, bytes of its mark) by the first bytes of a file; UTF-8 where nothing says more."""
    for mark, name in MARKS:
        if content.startswith(mark):
            return name, len(mark)
    odd, even = content[1:LOOKED_AT:2], content[:LOOKED_AT:2]
    if odd and not any(odd) and all(even):
        return "utf-16-le", 0
    if odd and not any(even) and all(odd):
        return "utf-16-be", 0
    return "utf-8", 0
