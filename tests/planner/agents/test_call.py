"""An order that serves others is at work from its first event until nobody needs it."""

import queue
from types import SimpleNamespace
from typing import Any

import pytest

from backends.protocol.events import Listening
from backends.protocol.orders import AwaitReachability, Stop
from planner.agents import call as call_module
from planner.agents.answers import Answer, Failure
from planner.agents.call import Call
from planner.errors import AgentError, DeviceLostError


class Sender:
    """Gives orders, which it keeps."""

    name = "tx2"

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, order: Any) -> None:
        self.sent.append(order)

    def failure(self, order: str, failure: Failure) -> Exception:
        return AgentError(f"{self.name}: {order}: {failure.message}")


def call(sender: Sender, *answers: Answer) -> Call:
    made = Call(sender, 7, AwaitReachability("10.0.0.2"))
    for answer in answers:
        made.answers.put(answer)
    return made


def test_it_is_told_to_end_when_nobody_needs_it() -> None:
    sender = Sender()
    with call(sender, Answer(7, event=Listening(5000))).serving(Listening, 1.0) as listening:
        assert (listening.port, sender.sent) == (5000, [])
    assert sender.sent == [Stop(7)]


@pytest.mark.parametrize(
    ("answers", "error", "told"),
    [
        ((Answer(7, failure=Failure("OSError", "in use", "")),), AgentError, "tx2: await reachability: in use"),
        ((Answer(7),), AgentError, "tx2: await reachability: it ended before it was ready"),
        ((), DeviceLostError, "tx2: no answer to `await reachability` within 0 s, though it.*"),
    ],
)
def test_one_that_does_not_begin_says_why(answers: tuple[Answer, ...], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=f"^{told}$"):
        call(Sender(), *answers).first(Listening, 0.0)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_file_may_take_any_time_while_its_pieces_come(monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(call_module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    made, pieces = Call(Sender(), 7, AwaitReachability("10.0.0.2"), lambda piece: None), iter(range(10))

    class Pieces(queue.Queue[Answer]):
        """Ten pieces come before the answer."""

        def get(self, block: bool = True, timeout: float | None = None) -> Answer:
            if next(pieces, None) is None:
                return Answer(7, failure=Failure("OSError", "the end", ""))
            clock.now_s += 4.0
            if arrives:
                made.take_piece(b"x")
            raise queue.Empty

    made.answers = Pieces()
    with pytest.raises(AgentError if arrives else DeviceLostError, match="the end" if arrives else "within 5 s"):
        made.result(5.0)
