"""Members of every kind of run wait for their samples, and go on where their streams were."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.data.arrivals import WaitInterrupted
from backends.data.loader import ArraySamples, ItemSamples
from backends.data.sequential_samples import SampleStream
from backends.frameworks.optimizer import GradientSettings
from backends.hosting.single_device import SingleDevice
from backends.protocol.events import Joined, Left, MemberProgress
from backends.protocol.member_specs import StreamOrder
from backends.strategies.strategy import Strategy
from backends.streams.stream_batches import ArrivingBatchSource, stream_batches
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.run_spec import STOPPED
from backends.training.step import step
from backends.training.stopping import STREAMS_ENDED
from tests.backends.fakes import BATCH, CLASSES, TEST, Softmax, images, run_spec
from tests.backends.peer_run import PeerRun
from tests.backends.rank_run import RankThreads
from tests.backends.server_run import ServerRun, WorkerThread
from tests.backends.stream_sources import PLENTY, HandSource, close_streams, stream
from tests.running import HANG_S, until

SYNC = Strategy.from_text("parameter-server:sync=synchronous")


@pytest.fixture(autouse=True)
def all_streams_end() -> Iterator[None]:
    yield
    close_streams()


def alone(folder: Path, source: HandSource, steps: int = 10, should_stop: Any = lambda: False, **changes: Any) -> Any:
    """Train on one device; gives its account, weights and events."""
    replica, events = Softmax(), []
    batches = stream(source, folder)
    spec = run_spec(folder, steps, checkpoint_every=1, **changes)
    try:
        account = SingleDevice(spec, replica, batches, events.append).train(TEST, should_stop)
    finally:
        batches.arrivals.close()
    return account, replica.weights, events


def offsets(folder: Path) -> dict[str, int]:
    return checkpoint.peek(str(folder / "checkpoint.npz"))["streams"]


# -- one device alone ------------------------------------------------------------------------------


def test_resumed_it_neither_loses_nor_repeats_a_sample(tmp_path: Path) -> None:
    for name in ("whole", "first", "rest"):
        (tmp_path / name).mkdir()
    _, expected, _ = alone(tmp_path / "whole", HandSource(until=PLENTY))
    account, _, events = alone(tmp_path / "first", HandSource(until=4 * BATCH + 3, ends=True))
    assert (account.done, account.reason) == (4, STREAMS_ENDED)
    assert [event.member for event in events if isinstance(event, Left)] == ["self"]
    assert offsets(tmp_path / "first") == {"self": 4 * BATCH}
    source = HandSource(until=PLENTY)
    _, weights, _ = alone(tmp_path / "rest", source, resume=str(tmp_path / "first" / "checkpoint.npz"))
    assert source.begun == [4 * BATCH]
    assert np.array_equal(weights, expected)


def test_a_checkpoint_without_streams_begins_at_the_first_sample(tmp_path: Path) -> None:
    from tests.backends.fakes import DrawnBatches

    spec = run_spec(tmp_path, 3)
    SingleDevice(spec, Softmax(), DrawnBatches(), lambda event: None).train(TEST, lambda: False)
    assert "streams" not in checkpoint.peek(str(tmp_path / "checkpoint.npz"))
    source = HandSource(until=PLENTY)
    alone(tmp_path, source, steps=5, resume=spec.checkpoints.path)
    assert source.begun == [0]


def test_the_source_is_told_what_the_checkpoints_contain(tmp_path: Path) -> None:
    source = HandSource(until=PLENTY)
    alone(tmp_path, source, steps=6)
    assert source.committed == [step * BATCH for step in range(1, 6)]


def test_a_device_that_waits_is_not_taken_for_one_whose_step_hangs(tmp_path: Path) -> None:
    replica, batches, computing_s = Softmax(), stream(HandSource(), tmp_path), []
    batches.arrivals.begin()

    def over() -> bool:
        computing_s.append(clock_of(replica).under_way()[1])
        return len(computing_s) > 2

    with pytest.raises(WaitInterrupted):
        step(replica, batches, GradientSettings(0.1, 0.0), over)
    assert computing_s == [0.0, 0.0, 0.0] and batches.arrivals.waited_s > 0.0


# -- a parameter server ----------------------------------------------------------------------------


def served(folder: Path, steps: int, **changes: Any) -> ServerRun:
    return ServerRun(run_spec(folder, steps, strategy=SYNC, members=2, heartbeat_s=HANG_S, **changes))


def worker(run: ServerRun, name: str, source: HandSource, folder: Path) -> WorkerThread:
    return WorkerThread(run, name, batches=stream(source, folder / name))


def steps_of(rows: dict[str, MemberProgress]) -> dict[str, int]:
    return {name: row.steps for name, row in rows.items()}


def test_the_checkpoint_of_a_server_has_the_offsets_of_the_steps_that_it_contains(tmp_path: Path) -> None:
    run = served(tmp_path, 12)
    members = [worker(run, name, HandSource(until=PLENTY), tmp_path) for name in ("a", "b")]
    account = run.account()
    assert account.finished
    made = {name: steps for name, steps in steps_of(account.workers).items() if steps}  # one may have come late
    assert offsets(tmp_path) == {name: steps * BATCH for name, steps in made.items()}
    for member in members:
        member.end()
    again = served(tmp_path, 20, resume=str(tmp_path / "checkpoint.npz"))
    before, sources = offsets(tmp_path), {name: HandSource(until=PLENTY) for name in ("a", "b")}
    for name, source in sources.items():
        worker(again, name, source, tmp_path)
    assert again.account().finished
    assert {name: source.begun for name, source in sources.items()} == {name: [at] for name, at in before.items()}


def test_a_worker_without_samples_leaves_and_the_others_make_all_steps(tmp_path: Path) -> None:
    run = served(tmp_path, 30)
    short = worker(run, "a", HandSource(until=3 * BATCH, ends=True), tmp_path)
    run.await_event(Joined)
    rest = worker(run, "b", HandSource(until=PLENTY), tmp_path)
    account = run.account()
    assert account.finished and steps_of(account.workers) == {"a": 3, "b": 27}
    (left,) = run.emitted(Left)
    assert (left.member, left.reason) == ("a", f"the stream has ended, after {3 * BATCH} samples")
    assert offsets(tmp_path) == {"a": 3 * BATCH, "b": 27 * BATCH}
    assert short.end().steps == 3 and rest.end().steps == 27


def test_a_worker_that_comes_back_goes_on_where_its_stream_was(tmp_path: Path) -> None:
    run = served(tmp_path, 10**6)
    first = worker(run, "a", HandSource(until=3 * BATCH, ends=True), tmp_path)
    worker(run, "b", HandSource(until=10 * BATCH), tmp_path)
    run.await_event(Left)
    first.end()
    source = HandSource(until=PLENTY)
    worker(run, "a", source, tmp_path)
    until(lambda: bool(source.begun), lambda: "it does not begin")
    assert source.begun == [3 * BATCH]
    run.stopping.set()
    run.account()


def test_a_worker_that_waits_when_the_run_is_stopped_ends_as_it_should(tmp_path: Path) -> None:
    run = served(tmp_path, 100)
    members = [worker(run, name, HandSource(), tmp_path) for name in ("a", "b")]
    run.await_event(Joined, 2)
    run.stopping.set()
    assert run.account().reason == STOPPED
    assert [member.end().steps for member in members] == [0, 0]


def test_batches_follow_the_rates_that_were_measured(tmp_path: Path) -> None:
    run = ServerRun(
        run_spec(
            tmp_path, 8, strategy=Strategy.from_text("parameter-server:sync=synchronous,batching=stream"),
            members=1, stream="replay:S1,most=20",
        )
    )  # fmt: skip
    source = stream(HandSource(until=PLENTY), tmp_path)
    source.arrivals._rate.per_second = lambda: 1e6
    source.arrivals.prepare = source.arrivals._source.begin
    WorkerThread(run, "a", batches=source)
    assert run.account().finished
    assert offsets(tmp_path) == {"a": BATCH + 7 * 20}


# -- peers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["baseline", "allreduce"])
def test_a_peer_without_samples_leaves_and_the_others_go_on(tmp_path: Path, strategy: str) -> None:
    run = PeerRun(tmp_path, strategy, 30, 3)
    ends = [PLENTY, PLENTY, 3 * BATCH]
    members = [
        run.start(seed, batches=stream(HandSource(end, ends=True), tmp_path / str(seed)))
        for seed, end in enumerate(ends)
    ]
    account = run.account()
    assert account.finished
    weights = [member.end() for member in members]
    assert np.allclose(weights[0], weights[1])
    (left,) = run.emitted(Left)
    assert left.member == "tx2"
    made = {name: steps for name, steps in steps_of(account.workers).items() if steps}  # one may have come late
    assert offsets(tmp_path) == {name: steps * BATCH for name, steps in made.items()}


def test_peers_without_samples_end_with_their_weights_and_go_on_later(tmp_path: Path) -> None:
    run = PeerRun(tmp_path, "allreduce", 100, 2)
    for seed in range(2):
        run.start(seed, batches=stream(HandSource(4 * BATCH, ends=True), tmp_path / str(seed)))
    account = run.account()
    assert (account.done, account.reason) == (8, STREAMS_ENDED)
    assert offsets(tmp_path) == {"nano": 4 * BATCH, "pc": 4 * BATCH}
    again = PeerRun(tmp_path, "allreduce", 12, 2, resume=str(tmp_path / "checkpoint.npz"))
    sources = [HandSource(PLENTY) for _ in range(2)]
    for seed, source in enumerate(sources):
        again.start(seed, batches=stream(source, tmp_path / str(seed)))
    assert again.account().finished
    assert [source.begun for source in sources] == [[4 * BATCH], [4 * BATCH]]


@pytest.mark.parametrize("strategy", ["parameter-server:sync=synchronous", "allreduce"])
def test_the_sources_of_all_members_are_told_what_the_checkpoints_contain(tmp_path: Path, strategy: str) -> None:
    sources = [HandSource(PLENTY) for _ in range(2)]
    data = [stream(source, tmp_path / str(seed)) for seed, source in enumerate(sources)]
    run: Any
    if strategy == "allreduce":
        run = PeerRun(tmp_path, strategy, 400, 2, checkpoint_every=4)
        for seed in range(2):
            run.start(seed, batches=data[seed])
    else:
        run = served(tmp_path, 400, checkpoint_every=4)
        for name, batches in zip("ab", data, strict=True):
            WorkerThread(run, name, batches=batches)
    until(lambda: all(source.committed for source in sources), lambda: "nothing is committed")
    run.stopping.set()
    run.account()
    for source in sources:
        assert source.committed == sorted({*source.committed})
        assert all(offset % BATCH == 0 for offset in source.committed)


# -- ranks of torch.distributed --------------------------------------------------------------------


def test_the_first_rank_s_checkpoint_has_the_offsets_of_all(tmp_path: Path) -> None:
    settings = run_spec(tmp_path, 12, checkpoint_every=4, stream="replay:S1")
    data = [stream(HandSource(PLENTY), tmp_path / str(rank)) for rank in range(2)]
    run = RankThreads(settings, (BATCH, BATCH), data=data)
    assert all(account.finished for account, _ in run.end())
    assert offsets(tmp_path) == {"rank0": 6 * BATCH, "rank1": 6 * BATCH}
    sources = [HandSource(PLENTY) for _ in range(2)]
    data = [stream(source, tmp_path / str(rank)) for rank, source in enumerate(sources)]
    rest = run_spec(tmp_path, 16, checkpoint_every=4, stream="replay:S1", resume=str(tmp_path / "checkpoint.npz"))
    assert all(account.finished for account, _ in RankThreads(rest, (BATCH, BATCH), data=data).end())
    assert [source.begun for source in sources] == [[6 * BATCH], [6 * BATCH]]


def test_ranks_go_on_until_the_last_stream_has_ended(tmp_path: Path) -> None:
    settings = run_spec(tmp_path, PLENTY, stream="replay:S1")
    untils = (8 * BATCH, 3 * BATCH + 1)
    data = [stream(HandSource(end, ends=True), tmp_path / str(rank)) for rank, end in enumerate(untils)]
    run = RankThreads(settings, (BATCH, BATCH), data=data)
    accounts = [account for account, _ in run.end()]
    assert {account.reason for account in accounts} == {STREAMS_ENDED}
    assert len({account.done for account in accounts}) == 1
    assert [[left.member for left in run.emitted(rank, Left)] for rank in range(2)] == [["rank0"], ["rank1"]]
    assert offsets(tmp_path) == {"rank0": 8 * BATCH, "rank1": 3 * BATCH}
    np.testing.assert_array_equal(run.replicas[0].weights, run.replicas[1].weights)


def test_a_rank_without_a_first_batch_ends_the_run_and_says_why(tmp_path: Path) -> None:
    settings = run_spec(tmp_path, PLENTY, stream="replay:S1")
    data = [stream(HandSource(BATCH - 1, ends=True), tmp_path / str(rank)) for rank in range(2)]
    with pytest.raises(ValueError, match="rank0: the stream has ended, after 7 samples: .*--engine planner they can"):
        RankThreads(settings, (BATCH, BATCH), data=data).end()


# -- the replay of a member's own samples ----------------------------------------------------------


def replayed(samples: Any, tmp_path: Path, text: str = "replay:1000000") -> ArrivingBatchSource:
    order = StreamOrder(text, 5, 0, "stream")
    return stream_batches(order, "pc", samples, CLASSES, 4, str(tmp_path / "stream"))


def test_images_and_samples_of_any_kind_are_replayed(tmp_path: Path) -> None:
    pixels, labels = images(12)
    of_images = replayed(ArraySamples(pixels, labels), tmp_path)
    of_items = replayed(ItemSamples([str(n) for n in range(12)], list, np.asarray), tmp_path)
    for batches in (of_images, of_items):
        batches.arrivals.begin()
    found, numbers = [next(of_images) for _ in range(3)], sum((next(of_items) for _ in range(3)), [])
    order = [int(number) for number in numbers]
    assert sorted(order) == list(range(12))
    assert np.array_equal(np.concatenate([batch[0] for batch in found]), pixels[order])
    for batches in (of_images, of_items):
        batches.arrivals.close()


def test_samples_that_have_no_positions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can only be read in order, and a replay needs samples by position"):
        replayed(SampleStream(lambda: iter("ab"), list), tmp_path)
