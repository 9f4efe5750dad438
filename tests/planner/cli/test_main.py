"""The command line as the operator meets it: what is printed where, and the exit code."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from backends.strategies.presets import PRESETS
from planner import json_records
from planner.cli import main
from planner.errors import InterruptedRunError
from planner.plan.file import load_plan
from planner.profile.file import Profile
from planner.remote import trust
from planner.remote.known_hosts import HostKey
from tests.planner import profiles
from tests.planner.plans import plan, planned

COMMANDS = ("init", "check", "trust", "models", "profile", "recommend", "train", "audit", "lab", "power")
HEAVY = {"torch", "tensorflow", "pandas", "sklearn", "paramiko", "pydantic", "numpy"}
LOCAL = '[devices.a]\naddress = "local"\n\n[devices.b]\naddress = "local"\n'


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def problem(self, code: int = 1) -> str:
        """The one line that a failure leaves, nothing else anywhere."""
        assert (self.code, self.out) == (code, "")
        (line,) = self.err.splitlines()
        assert line.startswith("planner: ")
        return line.removeprefix("planner: ")


Planner = Callable[..., Ran]


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Planner:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["planner", *args])
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *capsys.readouterr())

    return run


def fleet() -> Profile:
    """Three devices, far enough apart that no two clusters tie."""
    times_s = {"desktop": 0.1, "tx2": 0.4, "nano": 1.7}
    return profiles.profile({name: profiles.device(profiles.step(each)) for name, each in times_s.items()})


@pytest.fixture
def profiled(planner: Planner) -> Planner:
    json_records.save(fleet(), Path("profile.json"))
    return planner


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(planner: Planner, command: str) -> None:
    shown = planner(command, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"Usage: planner {command}" in shown.out
    assert f"Example: planner {command}" in shown.out


def test_no_command_is_missing_from_these_tests(planner: Planner) -> None:
    listed = planner("--help").out.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.strip().splitlines()] == [*COMMANDS]


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_the_commands_are_listed_without_being_cut(planner: Planner, arguments: tuple[str, ...]) -> None:
    shown = planner(*arguments)
    assert (shown.code, shown.err) == (0, "")
    assert all(f"  {command} " in shown.out for command in COMMANDS)
    assert "..." not in shown.out.partition("Commands:")[2]


def test_help_loads_nothing_heavy() -> None:
    program = "import sys, planner.cli.main as c\ntry: c.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    assert "Usage: planner" in done.stdout
    assert HEAVY.isdisjoint(done.stderr.split())


def test_the_version_is_printed(planner: Planner) -> None:
    assert planner("--version").out.strip().count(".") == 2


@pytest.mark.parametrize("command", ["recommend", "train"])
def test_every_strategy_is_listed_in_the_help_of_its_option(planner: Planner, command: str) -> None:
    listed = planner(command, "--help").out.partition("Strategies:")[2]
    assert listed
    assert {line.split()[0] for line in listed.splitlines() if line.strip()} >= {*PRESETS}


# -- wrong usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("recomend",), "recomend"),
        (("recommend", "--metrics", "edp"), "--metrics"),
        (("recommend", "--steps", "0"), "--steps"),
        (("recommend", "--steps", "many"), "--steps"),
        (("recommend", "--top", "-1"), "--top"),
        (("trust",), "device"),
        (("init", "a", "b"), "b"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(planner: Planner, arguments: tuple[str, ...], named: str) -> None:
    problem = planner(*arguments).problem(code=2)
    assert named in problem
    assert problem.endswith("--help`")


# -- init, check, trust ----------------------------------------------------------------------------


def test_init_writes_a_fleet_file_once(planner: Planner) -> None:
    assert "planner check" in planner("init").out
    written = Path("fleet.toml").read_text()
    assert "[devices." in written
    assert planner("init").problem() == "fleet.toml exists already; name another file or remove it first"
    assert Path("fleet.toml").read_text() == written


def test_init_in_a_folder_that_is_not_there(planner: Planner) -> None:
    assert planner("init", "none/fleet.toml").problem() == "none/fleet.toml: No such file or directory"


class HostKeys(NamedTuple):
    """A host whose key is on record, and the key that it shows."""

    stored: HostKey
    shown: HostKey

    @property
    def file(self) -> str:
        return self.shown.files[0].read_text()


@pytest.fixture
def changed(planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostKeys:
    """A host that shows another key than the one on record."""
    files = (tmp_path / "known_hosts",)
    keys = HostKeys(*(HostKey("tx2", "tx2.lan", "ssh-ed25519", key, files) for key in ("AAAA", "BBBB")))
    trust.store(keys.stored)
    monkeypatch.setattr(trust, "fetch_key", lambda device: keys.shown)
    return keys


def answer(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{said}\n"))


def test_an_unknown_key_is_stored_where_the_operator_agrees(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed.shown.files[0].unlink()
    answer(monkeypatch, "n")
    asked = planner("trust", "tx2.lan")
    assert changed.shown.fingerprint in asked.out
    assert (asked.code, asked.err) == (1, "planner: the key of tx2.lan was not stored\n")
    answer(monkeypatch, "y")
    assert planner("trust", "tx2.lan").out.endswith("stored\n")
    assert "BBBB" in changed.file
    assert "was known already" in planner("trust", "tx2.lan").out


def test_a_changed_key_is_told_as_such_before_anything_is_asked(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = changed.file
    answer(monkeypatch, "n")
    asked = planner("trust", "tx2.lan")
    warning, stored, shown, *_ = asked.out.splitlines()
    assert warning == "WARNING: the host key of tx2.lan has changed"
    assert changed.stored.fingerprint in stored and "known_hosts:1" in stored
    assert changed.shown.fingerprint in shown
    assert asked.out.index("WARNING") < asked.out.index("Replace the stored one?")
    assert (asked.code, changed.file) == (1, before)


def test_a_changed_key_is_replaced_by_a_yes_to_just_that_or_by_its_own_option(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = changed.file
    refused = planner("trust", "--yes", "tx2.lan")
    assert (refused.code, changed.file) == (1, before)
    assert "--yes does not replace it, --replace does" in refused.err
    answer(monkeypatch, "y")
    assert planner("trust", "tx2.lan").code == 0
    replaced = changed.file
    assert "BBBB" in replaced and "AAAA" not in replaced
    changed.shown.files[0].write_text(before)
    assert planner("trust", "--replace", "tx2.lan").code == 0
    assert changed.file == replaced


def test_trust_needs_an_address(planner: Planner) -> None:
    assert 'write [user@]host[:port], or "local"' in planner("trust", "a b").problem()


def test_trust_of_this_machine_means_nothing(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert "no host key to trust" in planner("trust", "a").problem()


@pytest.mark.parametrize("command", ["check", "profile", "train"])
def test_a_missing_fleet_file_is_named_with_the_remedy(planner: Planner, command: str) -> None:
    problem = planner(command, "--fleet", "none.toml").problem()
    assert problem == "none.toml: no such fleet file; `planner init` writes an example to edit"


def test_all_mistakes_of_a_fleet_file_are_listed(planner: Planner) -> None:
    Path("fleet.toml").write_text('[devices.a]\naddress = "local"\nidle_wats = 3\nslowdown = 0.5\n')
    failed = planner("profile")
    assert (failed.code, failed.out) == (1, "")
    assert [line.partition(": devices.a.")[2].partition(":")[0] for line in failed.err.splitlines()] == [
        "idle_wats", "slowdown",
    ]  # fmt: skip
    assert 'did you mean "idle_watts"?' in failed.err


# -- models ----------------------------------------------------------------------------------------


def test_models_are_listed_with_sizes_and_sources(planner: Planner) -> None:
    found = {row["name"]: row for row in json.loads(planner("models", "--json").out)["models"]}
    assert len(found) == 10
    assert found["resnet50"]["parameters"] == 25_557_032
    assert found["resnet50"]["bytes"] == 4 * 25_557_032
    assert found["resnet50"]["multiply_adds"] == pytest.approx(4.09e9, rel=0.01)
    assert "He" in found["resnet50"]["source"]
    shown = planner("models").out
    assert all(name in shown for name in found)


# -- typos, before any device is contacted ---------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("profile", "--protocol", "papr"),
            '--protocol papr: unknown; did you mean "paper"? (known: adaptive, paper)',
        ),
        (("profile", "--framework", "torhc"), '--framework torhc: unknown; did you mean "torch"?'),
        (("check", "--framework", "torhc"), 'did you mean "torch"?'),
        (("profile", "--model", "cifar"), "did you mean 'cifar10'"),
        (("profile", "--model", "none.py:net"), "none.py"),
        (("profile", "--device", "aa"), 'no device "aa"; did you mean "a"? (known: a, b)'),
        (("profile", "--data", "none"), "give the one that holds the images"),
        (("train", "--metric", "edb"), '--metric edb: unknown; did you mean "edp"?'),
        (("train", "--metric", "edp", "--framework", "x"), "--framework x: unknown; (known: torch"),
        (("train", "--schedule", "cos"), "--schedule cos: unknown"),
        (("train", "--momentum", "2"), "--momentum 2: give a number from 0 to below 1"),
        (("train", "--model", "cifar10"), "--model cifar10: a plan has its own; add --metric"),
        (("train", "--batch-size", "8"), "--batch-size 8: a plan has its own; add --metric"),
        (("train", "--quiet", "--verbose"), "--quiet and --verbose: choose one of them"),
        (("profile", "-q", "-v"), "--quiet and --verbose: choose one of them"),
    ],
)
def test_a_typo_is_told_with_what_there_is(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    def contacted(*_: object) -> None:
        raise AssertionError("a device was contacted")

    monkeypatch.setattr("planner.agents.pool.connect", contacted)
    monkeypatch.setattr("planner.check.run.connect", contacted)
    Path("fleet.toml").write_text(LOCAL)
    assert told in planner(*arguments).problem()


# -- recommend -------------------------------------------------------------------------------------


def test_json_is_the_ranking_best_first_and_nothing_else(profiled: Planner) -> None:
    done = profiled("recommend", "--metric", "time", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert list(found) == ["metric", "model", "strategy", "frameworks", "ranking", "notes", "left_out"]
    assert (found["metric"], found["model"], len(found["ranking"])) == ("time", "net", 12)
    best = found["ranking"][0]
    assert list(best)[:7] == ["workers", "server", "time_s", "power_w", "energy_j", "edp_js", "interval"]
    times_s = [row["time_s"] for row in found["ranking"]]
    assert times_s == sorted(times_s)
    assert best["interval"] == pytest.approx([best["time_s"]] * 2)  # no spread is known


def test_csv_is_a_line_a_cluster(profiled: Planner) -> None:
    done = profiled("recommend", "--csv")
    table = pd.read_csv(io.StringIO(done.out))
    assert (done.code, done.err, len(table)) == (0, "", 12)
    assert table["edp_js"].is_monotonic_increasing
    assert (table["low"] <= table["edp_js"] * (1 + 1e-9)).all()


def test_what_is_to_be_known_of_a_csv_is_told_beside_it(profiled: Planner) -> None:
    dead = profiles.device()._replace(steps=(), error="lost")
    json_records.save(profiles.profile({**fleet().devices, "dead": dead}), Path("profile.json"))
    done = profiled("recommend", "--csv", "--metric", "energy")
    left_out, note = done.err.splitlines()
    assert left_out == "left out: dead: lost"
    assert "cannot save energy" in note
    assert len(pd.read_csv(io.StringIO(done.out))) == 12


def test_weights_stand_in_place_of_a_metric(profiled: Planner) -> None:
    assert json.loads(profiled("recommend", "--json").out)["metric"] == "edp"
    assert json.loads(profiled("recommend", "--weights", "energy=1", "--json").out)["metric"] == "energy"


def test_the_plan_is_of_the_best_or_of_the_place_that_is_chosen(profiled: Planner) -> None:
    ranking = json.loads(profiled("recommend", "--json").out)["ranking"]
    for place in (1, 3):
        shown = profiled("recommend", "--choose", str(place), "--out", "other.json").out
        chosen = load_plan(Path("other.json"))
        row = ranking[place - 1]
        assert f"wrote {f'number {place} to ' * (place > 1)}other.json" in shown
        assert [chosen.server, *chosen.names] == [row["server"], *row["workers"]]
    assert load_plan(Path("plan.json")).server == ranking[0]["server"]


@pytest.mark.parametrize(("top", "rows"), [("3", 3), ("0", 12), ("99", 12)])
def test_the_table_has_as_many_rows_as_are_asked_for(profiled: Planner, top: str, rows: int) -> None:
    shown = profiled("recommend", "--top", top)
    assert (shown.code, shown.err) == (0, "")
    assert f"best {rows} of 12 by edp" in shown.out
    assert sum(line[:2].strip().isdigit() for line in shown.out.splitlines()) == rows
    assert "wrote plan.json" in shown.out


def test_what_if_options_reach_the_prediction(profiled: Planner) -> None:
    def best(*arguments: str) -> dict[str, float]:
        row = json.loads(profiled("recommend", "--metric", "time", "--json", *arguments).out)["ranking"][0]
        assert isinstance(row, dict)
        return row

    assert best("--steps", "200000")["time_s"] == pytest.approx(2 * best()["time_s"])
    assert best("--rate", "desktop=1mbit", "--include", "tx2", "--server", "tx2")["time_s"] > best()["time_s"]
    assert best("--base-watts", "1000")["power_w"] == pytest.approx(best()["power_w"] + 1000)
    assert best("--exclude", "desktop")["time_s"] > best()["time_s"]


@pytest.mark.parametrize("what_if", [("--rate", "desktop=1mbit"), ("--batch-size", "16")])
def test_a_what_if_writes_a_plan_only_where_it_is_told_to(profiled: Planner, what_if: tuple[str, str]) -> None:
    assert profiled("recommend").code == 0
    before = Path("plan.json").read_bytes()
    option = "--rate desktop" if what_if[0] == "--rate" else "--batch-size 16"
    told = f"plan.json was not changed, because {option} is a what-if; -o FILE writes its plan"
    assert told in " ".join(profiled("recommend", *what_if).out.split())
    for form in ("--json", "--csv"):
        assert profiled("recommend", *what_if, form).err.splitlines()[-1] == told
    assert "wrote other.json" in profiled("recommend", *what_if, "-o", "other.json").out
    assert load_plan(Path("other.json")).batch == (16 if "16" in what_if else 32)
    assert Path("plan.json").read_bytes() == before


def test_a_fleet_without_watts_is_ranked_by_time_unless_a_metric_of_power_is_asked_for(planner: Planner) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    json_records.save(unknown, Path("profile.json"))
    shown = planner("recommend")
    assert (shown.code, load_plan(Path("plan.json")).metric) == (0, "time")
    assert "ranked by time, because no watts are known of a, b; to rank by" in " ".join(shown.out.split())
    assert "no watts are known of a, b; give idle_watts" in planner("recommend", "--metric", "edp").problem()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--batch-size", "4096"), "run `planner profile --model net --batch-size 4096`"),
        (("--metric", "energi"), 'did you mean "energy"? (known: time, power, energy, edp)'),
        (("--metric", ""), "--metric : unknown"),
        (("--metric", "time", "--weights", "energy=1"), "--metric time and --weights energy=1: choose one of them"),
        (("--weights", "time=x"), "--weights 'time=x': expected METRIC=NUMBER"),
        (("--weights", ""), "--weights '': expected METRIC=NUMBER"),
        (("--weights", "time=0"), "at least one weight must be above 0"),
        (("--rate", "desktop"), "--rate desktop: write DEVICE=RATE, as in --rate desktop=100mbit"),
        (("--rate", "desktop=fast"), "kbit, mbit, gbit"),
        (("--rate", "laptop=1mbit"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--server", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--include", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--exclude", "laptop"), "laptop: no such device; devices: desktop, tx2, nano"),
        (("--model", "resnet"), "profiled: net"),
        (("--framework", "jax"), "profiled: torch"),
        (("--base-watts", "-5"), "--base-watts: -5 is out of range"),
        (("--choose", "13"), "--choose 13: the ranking has places 1 to 12"),
        (("--csv", "--json"), "--csv and --json: choose one of them"),
        (("--out", "none/plan.json"), "cannot write none/plan.json: No such file or directory"),
        (("none.json",), "cannot read none.json: No such file or directory; run `planner profile"),
    ],
)
def test_what_recommend_cannot_do_is_one_line(profiled: Planner, arguments: tuple[str, ...], told: str) -> None:
    assert told in profiled("recommend", *arguments).problem()
    assert not Path("plan.json").exists()


def test_without_a_profile_recommend_says_how_to_make_one(planner: Planner) -> None:
    assert "run `planner profile` first" in planner("recommend").problem()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ('{"schema": 1, "devices": {', "profile.json, line 1: not JSON"),
        ('{"schema": 99}', "schema: written as 99, this planner reads 1"),
        ("[]", "expected an object (Profile)"),
        ("\x00", "not JSON"),
    ],
)
def test_a_broken_profile_is_named_with_the_remedy(planner: Planner, text: str, told: str) -> None:
    Path("profile.json").write_text(text)
    problem = planner("recommend").problem()
    assert told in problem
    assert "run `planner profile" in problem


# -- train -----------------------------------------------------------------------------------------


@pytest.fixture
def images(planner: Planner) -> str:
    """A directory that holds the first half of one of MNIST's files."""
    Path("images").mkdir()
    (Path("images") / "train-images-idx3-ubyte").write_bytes(b"\x00\x00\x08\x03")
    return "images"


def test_train_needs_data(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert planner("train").problem() == "no data: name a directory with --data"


def test_data_that_is_not_whole_is_named(planner: Planner, images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert "lacks train-labels-idx1-ubyte" in planner("train", "--data", images).problem()


def test_data_that_is_truncated_is_named(planner: Planner, images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    for name in ("train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (Path(images) / f"{name}-ubyte").write_bytes(b"\x00\x00")
    assert "train-images-idx3-ubyte" in planner("train", "--data", images).problem()


def test_train_without_a_plan_says_how_to_make_one(planner: Planner, shared_images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--data", shared_images).problem()
    assert problem.startswith("cannot read plan.json: No such file or directory; run `planner recommend` first")


def test_a_plan_for_other_images_is_refused(planner: Planner, shared_images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    json_records.save(plan(planned("a"))._replace(model="cifar10"), Path("plan.json"))
    assert "profile again with the same --data" in planner("train", "--data", shared_images).problem()


def test_what_is_no_run_folder_cannot_be_resumed(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--resume", "runs/none").problem()
    assert problem.endswith("name a run folder that `planner train` made")


@pytest.fixture
def shared_images(planner: Planner) -> str:
    """A few images as one npz."""
    import numpy as np

    Path("few").mkdir()
    images, labels = np.zeros((4, 32, 32, 3), np.uint8), np.arange(4)
    np.savez(Path("few") / "few.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    return "few"


# -- the rest of the world -------------------------------------------------------------------------


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "models", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_locale_without_the_signs_is_no_traceback(tmp_path: Path) -> None:
    json_records.save(fleet(), tmp_path / "profile.json")
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "recommend"]
    root = str(Path(main.__file__).parent.parent)
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": root}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_one_line_and_130(profiled: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.plan.strategy_search.best_of", interrupt)
    assert profiled("recommend").problem(code=130) == "stopped"


def test_a_run_that_the_operator_stopped_says_how_to_go_on(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise InterruptedRunError("stopped after step 5 of 10;\ngo on with `planner train --resume runs/x`")

    monkeypatch.setattr("planner.train.train.train", stopped)
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--data", "x").problem(code=130)
    assert problem == "stopped after step 5 of 10; go on with `planner train --resume runs/x`"
