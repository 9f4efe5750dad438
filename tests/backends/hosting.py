"""A host of a run, and those who take part in it, in threads of one process with real sockets between them."""

import threading
from typing import Any

from backends.network import framing
from backends.server.host import Host
from backends.training import checkpoint
from backends.training.run_spec import RunSpec
from planner.agents.certificates import Authority

LIMIT_S = 30.0


class Hosting:
    """A server or a conductor in a thread, with its authority, events and account."""

    def __init__(self, kind: type[Host], work: RunSpec) -> None:
        self.work = work
        self.authority = Authority()
        self.events: list[dict[str, Any]] = []
        self._heard = threading.Condition()
        self.stopping = threading.Event()
        self.host = kind(work, self.authority.identity(framing.SERVER), self._emit)
        listener = framing.listen("127.0.0.1")
        self.port = listener.getsockname()[1]
        self._account: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: Any) -> None:
        self._account = self.host.run(listener, self.stopping.is_set)

    def _emit(self, event: dict[str, Any]) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def named(self, kind: str) -> list[Any]:
        return [event[kind] for event in list(self.events) if kind in event]

    def await_event(self, kind: str, count: int = 1) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.named(kind)) >= count, LIMIT_S), (kind, self.events)

    def account(self) -> dict[str, Any]:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "the host hangs"
        return self._account

    @property
    def done(self) -> int:
        return int(self.host.office.tickets.done)

    def saved(self) -> checkpoint.Checkpoint:
        """The last checkpoint, when the run is over."""
        self.account()
        return checkpoint.read(str(self.work.checkpoint_path))[0]

    def connect(self, name: str, authority: Authority | None = None) -> framing.Connection:
        tls = framing.context((authority or self.authority).identity(name), server_side=False)
        return framing.connect("127.0.0.1", self.port, tls, LIMIT_S)


class Participant(threading.Thread):
    """One who takes part, in a thread, to the end or until it fails."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.failure: str | None = None

    def run(self) -> None:
        try:
            self.take_part()
        except Exception as error:  # noqa: BLE001 - whatever ends it, a test that waits for its end must hear of it
            self.failure = f"{type(error).__name__}: {error}"

    def take_part(self) -> None:
        raise NotImplementedError

    def await_end(self) -> None:
        self.join(LIMIT_S)
        assert not self.is_alive() and self.failure is None, self.failure or f"{type(self).__name__} hangs"
