"""What an agent says is taken apart, and what no agent would say is refused in one line."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.protocol.events import Joined, Progress
from backends.protocol.json_messages import encode
from planner.agents.answers import Answer, Failure, Hello

LINES = [
    {"pong": True},
    {"id": 1, "result": [1, {"a": None}]},
    {"id": 1, "result": None, "blob": 7},
    {"id": 1, "error": {"kind": "OSError", "message": "full", "traceback": "..."}},
    {"id": 1, "event": encode(Progress(1, 2, 0.5, {}))},
    {"hello": {"python": "3.6.9", "pid": 7}},
]
#: JSON that is hard on a reader, beside what Hypothesis makes up.
HARD = ["NaN", "1e999", "-1", "9" * 400, "[" * 100_000, '"pong"', "", "{}", '{"id": true}', "\udcff"]


def line(message: Any) -> bytes:
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (LINES[0], Answer(None)),
        (LINES[1], Answer(1, result=[1, {"a": None}])),
        (LINES[2], Answer(1, blob=7)),
        (LINES[3], Answer(1, failure=Failure("OSError", "full", "..."))),
        ({"id": 1, "event": encode(Joined("nano"))}, Answer(1, event=Joined("nano"))),
    ],
)
def test_each_line_is_one_thing(message: Any, answer: Answer) -> None:
    assert Answer.read(line(message)) == answer
    assert answer.ends == ("event" not in message)


@pytest.mark.parametrize(
    "message",
    [
        "pong", [1], None, {}, {"id": "1", "result": None}, {"id": -1, "result": None}, {"id": 1, "blob": -5},
        {"id": 1, "blob": 1.5}, {"id": 1, "blob": True}, {"id": 1, "error": "full"}, {"id": 1, "error": {"kind": "x"}},
        {"id": 1, "event": {"type": "joined"}}, {"id": 1, "event": {"type": "joined", "member": 5}},
        {"id": 1, "event": 5},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_no_agent_says_is_refused(message: Any) -> None:
    with pytest.raises(ValueError, match="."):
        Answer.read(line(message))


def test_a_refusal_shows_the_beginning_of_a_line_and_no_more() -> None:
    with pytest.raises(ValueError, match="^not JSON: 'x{80}'$"):
        Answer.read(b"x" * 10_000)


@settings(max_examples=200, derandomize=True)
@given(
    st.sampled_from(LINES).map(line),
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 8), st.binary(max_size=4) | st.sampled_from(HARD)), max_size=3
    ),
)
def test_whatever_comes_is_understood_or_refused(said: bytes, changes: list[tuple[int, int, bytes | str]]) -> None:
    for at, gone, put in changes:
        new = put.encode("utf-8", "surrogateescape") if isinstance(put, str) else put
        said = said[:at] + new + said[at + gone :]
    for kind in (Answer, Hello):
        try:
            kind.read(said)
        except ValueError as error:
            assert "\n" not in str(error)
