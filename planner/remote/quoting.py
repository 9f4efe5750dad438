"""A command as one line that every login shell reads alike: sh, bash, zsh, csh, tcsh and fish.

Within single quotes csh takes no newline and replaces what follows "!", and fish replaces a
backslash before a quote. All of them read a backslash before one of these outside of quotes as the
sign itself. A ~/ at the start of a word is left to the shell: it is the home there, wherever
start-up files of the shell have gone.
"""

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z0-9_@+,./:-]+")
_ESCAPED = re.compile(r"(['!\\])")


def command_line(words: Sequence[str]) -> str:
    """The words of a command, quoted where they need it. A newline in one is read by sh alone."""
    return " ".join(map(_word, words))


def _word(word: str) -> str:
    if word.startswith("~/"):
        return "~/" + (_word(word[2:]) if word[2:] else "")
    return word if _PLAIN.fullmatch(word) else _quoted(word)


def _quoted(word: str) -> str:
    parts = (part for part in _ESCAPED.split(word) if part)
    return "".join(f"\\{part}" if _ESCAPED.fullmatch(part) else f"'{part}'" for part in parts) or "''"
