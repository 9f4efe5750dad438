"""Texts of ssh's configuration: %-tokens, ${VARIABLES}, ~, and several files on one line."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.fleet.device import expand_home

_TOKEN_OR_VARIABLE = re.compile(r"%(.)|\$\{([^}]*)\}", re.DOTALL)
#: `ssh -G` prints paths one after the other, without the quotation that a space in one needs.
_NEXT_FILE = re.compile(r" +(?=[/~%$\"]|none\b)")


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """Replace the %-tokens of ssh_config(5); unknown tokens stay as they are."""
    return re.sub(r"%(.)", lambda match: _token(match[1], tokens), text, flags=re.DOTALL)


def path_of(text: str, tokens: Mapping[str, str]) -> Path:
    """A file that the configuration names.

    Raises ValueError where the home or the variable that it names is not there.
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _token(match[1], tokens)
        if match[2] not in os.environ:
            raise ValueError(f'"{text}": the variable {match[2]} is not set; set it, or write the path')
        return os.environ[match[2]]

    return Path(_TOKEN_OR_VARIABLE.sub(replaced, str(expand_home(text))))


def files_of(values: Iterable[str]) -> list[str]:
    """The files of lines that may each name several. A relative one has no space in it."""
    files: list[str] = []
    for part in (part for value in values for part in _NEXT_FILE.split(value.strip())):
        quoted_or_whole = part[:1] in ("/", "~", "%", "$", '"')
        files += [part.strip('"')] if quoted_or_whole else part.split()
    return [file for file in files if file != "none"]


def agent_socket(text: str | None, tokens: Mapping[str, str]) -> Path | None:
    """The socket of the agent that IdentityAgent names, or the usual one. Raises ValueError."""
    if text == "none":
        return None
    if text is None or text == "SSH_AUTH_SOCK":
        text = "$SSH_AUTH_SOCK"
    if re.fullmatch(r"\$\w+", text):  # ssh has no agent where it is not set
        told = os.environ.get(text[1:])
        return Path(told) if told else None
    return path_of(text, tokens)


def _token(sign: str, tokens: Mapping[str, str]) -> str:
    return "%" if sign == "%" else tokens.get(sign, f"%{sign}")
