"""Paths of the configuration of ssh: with spaces, several on a line, with variables and tokens."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.remote.ssh_texts import agent_socket, expand, files_of, path_of

TOKENS = {"h": "tx2", "d": "/home/me"}


@given(st.text(alphabet="%hp a"))
def test_a_text_whose_percent_signs_are_doubled_comes_back(text: str) -> None:
    assert expand(text.replace("%", "%%"), {"h": "tx2"}) == text


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("/home/First Last/.ssh/known_hosts", ["/home/First Last/.ssh/known_hosts"]),
        ("/a b/known ~/c d/known", ["/a b/known", "~/c d/known"]),
        ("/a b/x  /c/y %d/z ${HOME}/w", ["/a b/x", "/c/y", "%d/z", "${HOME}/w"]),
        ('"/a b/x" "/c/y"', ["/a b/x", "/c/y"]),
        ("here there", ["here", "there"]),
        ("none", []),
    ],
)
def test_a_line_names_files(line: str, files: list[str]) -> None:
    assert files_of([line]) == files


def test_a_path_may_have_variables_tokens_and_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", "/my keys")
    monkeypatch.setenv("HOME", "/home/me")
    assert path_of("${KEYS}/%h", TOKENS) == Path("/my keys/tx2")
    assert path_of("~/50%% of %h", TOKENS) == Path("/home/me/50% of tx2")
    monkeypatch.delenv("KEYS")
    with pytest.raises(ValueError, match="the variable KEYS is not set"):
        path_of("${KEYS}/%h", TOKENS)


def test_an_agent_is_named_in_ways_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/usual")
    monkeypatch.setenv("OTHER", "/other")
    assert agent_socket(None, TOKENS) == agent_socket("SSH_AUTH_SOCK", TOKENS) == Path("/usual")
    assert agent_socket("$OTHER", TOKENS) == agent_socket("${OTHER}", TOKENS) == Path("/other")
    assert agent_socket("%d/my agent", TOKENS) == Path("/home/me/my agent")
    assert agent_socket("none", TOKENS) is None
    monkeypatch.delenv("SSH_AUTH_SOCK")
    monkeypatch.delenv("OTHER")
    assert agent_socket(None, TOKENS) is agent_socket("$SSH_AUTH_SOCK", TOKENS) is None
    assert agent_socket("$OTHER", TOKENS) is None
