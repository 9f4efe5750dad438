"""Samples arrive while a run trains: what is said before, and what the result tells of them."""

import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from backends.protocol.stream_statistics import StreamStatistics
from backends.training import checkpoint
from backends.training.stopping import STREAMS_ENDED
from planner.train.orders import Options
from planner.train.stream_results import stream_notes, stream_result
from tests.installed import needs
from tests.planner.pairs import STEPS, left_files, new_pair, one_line, run_folders, start, training
from tests.planner.plans import plan, planned, replan, streamed, with_settings
from tests.running import FASHION, Command, fleet_file, plan_file, run, signal_all, tiny_model, until

with_torch = needs("torch")
ONE = StreamStatistics(30.0, 32, 320, 2.0, 400, 320, 60, 80, 20, 7, 1, "/cache/malformed")


def test_without_streams_nothing_is_said_and_nothing_is_in_the_result() -> None:
    assert stream_notes(Options(), plan(planned("a"))) == []
    assert stream_result([], 10.0) is None


@pytest.mark.parametrize(
    ("stream", "seed", "told"),
    [
        ("replay:S2", 3, ""),
        ("replay:S1", 0, ""),
        ("replay:S1", 5, ": the prediction is for the rates of --seed 0, not for those of --seed 5"),
        ("replay:40", 5, ""),
    ],
)
def test_of_which_rates_the_prediction_knows_is_said_and_what_would_not_wait(stream: str, seed: int, told: str) -> None:
    planned_for = plan(planned("a"), planned("b"), stream=stream, rates_seed=3 if stream == "replay:S2" else 0)
    note, fixed = stream_notes(Options(seed=seed), planned_for)
    assert note == f"samples arrive while it trains, --stream {stream}{told}"
    assert "each step waits for its 32 samples" in fixed
    assert len(stream_notes(Options(seed=seed), with_settings(planned_for, strategy="scadles"))) == 1


def test_the_figures_of_a_worker_that_was_started_again_are_added_up() -> None:
    later = ONE._replace(rate=28.0, offset=480, waited_s=3.0, arrived=200, used=160, peak_buffered=70)
    found = stream_result([ONE, later], 20.0, streamed(waiting_share=0.2))
    assert found is not None and found["predicted_waiting_share"] == 0.2
    assert (found["rate"], found["offset"], found["waited_s"], found["waiting_share"]) == (28.0, 480, 5.0, 0.25)
    assert (found["arrived"], found["used"], found["peak_buffered"], found["dropped"]) == (600, 480, 80, 40)


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


def test_a_run_of_two_devices_waits_for_its_samples_and_goes_on_where_they_were(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    replan(pair, stream="replay:desktop@3000/tx2@2000,policy=truncate", steps=100)
    done = run(pair, *training("--verbose"))
    assert done.popen.returncode == 0, done.errors
    assert "streams of samples" in done.output
    (first,) = run_folders(pair)
    workers = result_of(first)["workers"]
    saved = checkpoint.peek(str(first / "checkpoint.npz"))["streams"]
    for name, worker in workers.items():
        stream = worker["stream"]
        assert stream["used"] == worker["steps"] * stream["batch"]
        assert stream["arrived"] >= stream["used"] + stream["dropped"]
        assert saved.get(name, 0) == stream["offset"] >= stream["used"]
    assert sum(worker["steps"] for worker in workers.values()) == 100
    occupancy = [
        event["stream"]["buffered"]
        for event in map(json.loads, (first / "events.jsonl").read_text().splitlines())
        if event["type"] == "member_telemetry"
    ]
    assert len(occupancy) >= 2
    again = run(pair, "train", "--resume", str(first), "--steps", str(STEPS))
    assert again.popen.returncode == 0, again.errors
    second = next(folder for folder in run_folders(pair) if folder != first)
    for name, worker in result_of(second)["workers"].items():
        assert worker["stream"]["offset"] >= saved.get(name, 0) + worker["stream"]["used"]


def test_a_device_whose_source_stops_leaves_and_the_other_makes_all_steps(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    replan(pair, stream="replay:2000,stop=0.2,at=tx2", strategy="baseline")
    command = start(pair)
    command.says("tx2 leaves the run: the stream has ended")
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(pair)
    assert result_of(folder)["steps_made"] >= STEPS
    assert not left_files(pair)


@pytest.mark.e2e
@with_torch
def test_batches_of_torch_s_ranks_follow_the_rates_and_the_last_stream_ends_the_run(tmp_path: Path) -> None:
    fleet_file(tmp_path, {name: {"environment": {"OMP_NUM_THREADS": "1"}} for name in ("desktop", "tx2")})
    plan_file(tmp_path / "plan.json", tiny_model(tmp_path, 0.005), ("desktop", "tx2"), 100_000)
    exchange = {"engine": "torch:batching=stream", "strategy": "allreduce:batching=stream,aggregation=rates"}
    replan(tmp_path, stream="replay:desktop@300/tx2@120,stop=3,least=2", **exchange)
    command = Command(tmp_path, *training("--heartbeat", "60"))
    for name in ("desktop", "tx2"):
        command.says(f"{name} leaves the run: the stream has ended")
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(tmp_path)
    result = result_of(folder)
    assert result["ended"] == STREAMS_ENDED
    assert result["strategy"] == "allreduce:batching=stream,aggregation=rates"
    for worker in result["workers"].values():
        assert worker["stream"]["used"] + worker["stream"]["buffered"] == worker["stream"]["arrived"]
    assert not left_files(tmp_path)


@pytest.mark.e2e
def test_devices_train_on_what_a_producer_puts_into_the_directories_of_the_plan(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    to = f"directory:{tmp_path}/samples-{{device}}"
    made = produced(pair, to, 400)
    assert made.popen.returncode == 0, made.errors
    assert made.last_line == "800 samples were produced"
    replan(pair, stream=to)
    done = run(pair, *training("--json"))
    assert done.popen.returncode == 0, done.errors
    assert f"samples arrive while it trains, --stream {to}\n" in done.errors
    found = json.loads(done.output)
    assert (found["ended"], found["steps_made"]) == (STREAMS_ENDED, 100)
    assert {name: worker["stream"]["used"] for name, worker in found["workers"].items()} == {
        "desktop": 400, "tx2": 400
    }  # fmt: skip


@pytest.mark.e2e
@pytest.mark.parametrize("what", ["gone", "file"])
def test_a_directory_that_is_not_there_is_an_error_before_the_run(tmp_path: Path, what: str) -> None:
    pair = new_pair(tmp_path)
    (tmp_path / "file-tx2").touch()
    for healthy in ("file-desktop", "gone-desktop"):
        (tmp_path / healthy).mkdir()
    replan(pair, stream=f"directory:{tmp_path}/{what}-{{device}}")
    done = run(pair, *training())
    assert done.popen.returncode == 1
    said = one_line(done)
    assert f"tx2: run worker: --stream directory:{tmp_path}/{what}-{{device}}: {tmp_path}/{what}-tx2: " in said
    assert "export" not in done.output


@pytest.mark.e2e
def test_a_directory_into_which_nothing_comes_is_an_error_that_names_it(tmp_path: Path) -> None:
    pair = new_pair(tmp_path)
    (tmp_path / "empty").mkdir()
    replan(pair, stream=f"directory:{tmp_path}/empty,patience=1")
    done = run(pair, *training())
    assert done.popen.returncode == 1
    said = one_line(done)
    assert f"after step 0 of {STEPS} no more samples arrive" in said
    for name in ("desktop", "tx2"):
        assert f"{name}: {tmp_path}/empty: no sample has arrived for " in said
    assert "export" not in done.output


@pytest.mark.e2e
def test_a_broker_that_nobody_is_at_is_an_error_before_the_run(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"127.0.0.1:{server.getsockname()[1]}"
    pair = new_pair(tmp_path)
    replan(pair, stream=f"kafka:{nobody}")
    done = run(pair, *training())
    assert done.popen.returncode == 1
    assert f": run worker: --stream kafka:{nobody}: Kafka at {nobody}: " in one_line(done)


@pytest.mark.e2e
def test_a_source_that_is_gone_in_the_middle_ends_the_run_with_what_was_trained_and_an_error(tmp_path: Path) -> None:
    pair, to = new_pair(tmp_path), f"directory:{tmp_path}/samples-{{device}}"
    assert produced(pair, to, 400).popen.returncode == 0
    for name in ("desktop", "tx2"):
        folder = tmp_path / f"samples-{name}"
        (folder / max(each.name for each in folder.iterdir())).unlink()  # which tells that no more come
    replan(pair, stream=f"{to},patience=2")
    command = start(pair)
    until(lambda: steps_made(pair) >= 20 or command.popen.poll(), lambda: f"it makes no steps:\n{command.errors}")
    for name in ("desktop", "tx2"):
        (tmp_path / f"samples-{name}").rename(tmp_path / f"gone-{name}")
    assert command.ended() == 1
    said = one_line(command)
    assert re.search(r"samples-tx2: no sample has arrived for \d+ s: .*No such file or directory", said), said
    assert "go on with `planner train --resume" in said


@pytest.mark.e2e
def test_devices_train_on_their_topics_and_the_producer_goes_on_behind_them(tmp_path: Path) -> None:
    broker_module = pytest.importorskip("tests.kafka_broker")
    with broker_module.Broker() as broker:
        pair, to = new_pair(tmp_path), f"kafka:{broker.address}"
        made = produced(pair, to, 400)
        assert made.popen.returncode == 0, made.errors
        replan(pair, stream=to)
        done = run(pair, *training("--json"))
    assert done.popen.returncode == 0, done.errors
    found = json.loads(done.output)
    assert (found["ended"], found["steps_made"]) == (STREAMS_ENDED, 100)
    assert [worker["stream"]["offset"] for worker in found["workers"].values()] == [400, 400]


@pytest.mark.chaos
def test_a_run_goes_on_when_its_broker_is_back(tmp_path: Path) -> None:
    broker_module = pytest.importorskip("tests.kafka_broker")
    with broker_module.Broker() as broker:
        pair, to = new_pair(tmp_path), f"kafka:{broker.address}"
        replan(pair, stream=to, strategy="baseline")
        command = start(pair)
        until(lambda: '"joined"' in events(pair) or command.popen.poll(), lambda: f"nobody joins:\n{command.errors}")
        producer = Command(pair, *producing(to, "100"))
        until(lambda: steps_made(pair) >= 20 or command.popen.poll(), lambda: f"it makes no steps:\n{command.errors}")
        broker.go()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(broker_module.host_and_port(broker.address)).close()
        broker.come_back()
        assert command.ended() == 0, command.errors
        assert producer.popen.poll() is None, producer.errors
        signal_all([producer.popen.pid], signal.SIGINT)
        producer.ended()
    (folder,) = run_folders(pair)
    result = result_of(folder)
    assert (result["ended"], result["steps_made"]) == (None, STEPS)
    for worker in result["workers"].values():
        assert worker["stream"]["offset"] == worker["stream"]["used"]


def producing(to: str, rate: str, *options: str) -> tuple[str, ...]:
    devices = ("--device", "desktop", "--device", "tx2")
    return ("stream", "produce", to, "--data", str(FASHION), *devices, "--rates", rate, *options)


def produced(pair: Path, to: str, samples: int) -> Command:
    """So many samples for each device of a pair, at once."""
    return run(pair, *producing(to, "1e5", "--samples", str(samples)))


def steps_made(pair: Path) -> int:
    """As the last event of progress tells; 0 before."""
    lines = [line for line in events(pair).splitlines() if '"progress"' in line and line.endswith("}")]
    return max((json.loads(line)["done"] for line in lines), default=0)


def events(pair: Path) -> str:
    return "".join(path.read_text() for path in pair.glob("runs/*/events.jsonl"))
