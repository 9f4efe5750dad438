"""What a renderable shows on a terminal of some width, and in a pipe."""

import io

from rich.console import RenderableType

from planner import console

#: Widths of terminals at which every table is tested.
WIDTHS = (80, 120, 200)


def shown(what: RenderableType, width: int = console.UNLIMITED_WIDTH) -> str:
    """What is printed, of which no line may be longer than the width; as in a pipe by default."""
    screen = console.plain(width=width)
    screen.file = io.StringIO()
    screen.print(what)
    text = screen.file.getvalue()
    assert all(len(line) <= width for line in text.splitlines()), text
    if width == console.UNLIMITED_WIDTH:
        assert all(line == line.rstrip() for line in text.splitlines()), text
    return text


def row(text: str, start: str) -> str:
    """The one line that begins with this word."""
    (found,) = (line for line in text.splitlines() if line == start or line.startswith(f"{start} "))
    return found
