"""A launch written as commands of torchrun and Slurm."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.errors import ProjectError
from planner.fleet.device import Interpreter
from planner.launch.commands import slurm, torchrun
from planner.terminal import visible
from tests.planner.launch.made import on, ranks

TRAIN = ("python", "train.py", "--epochs", "3")
#: Each would start or change something, were it not quoted.
HOSTILE = (
    "$(touch a)", "`touch a`", "; touch a", "it's", 'a "b"', "two\nlines", "\n#SBATCH --uid=0", "*", "~", "!!", "~/x",
    "\x1b[2J'\\x41", "two\r\nlines", "\u202eright to left", "\x1b7",
)  # fmt: skip


def options(line: str) -> dict[str, str]:
    """The --name=value words of a command."""
    return dict(word.split("=", 1) for word in shlex.split(line) if word.startswith("--") and "=" in word)


def test_torchrun_has_a_line_a_node_with_as_many_processes_as_members() -> None:
    found = ranks(gpu0=on("big", "0"), gpu1=on("big", "1"), nano=on("10.0.0.7", port=2222))
    assert torchrun(found, TRAIN, "here").splitlines() == [
        "# Run each line on its node, in the folder of the project.",
        "# gpu0, gpu1 (big)",
        "env CUDA_VISIBLE_DEVICES=0,1 PLANNER_BATCH_SIZE=32 PLANNER_BATCH_SIZES=32,32,32 "
        "PLANNER_RANK_WEIGHT=1.0 PLANNER_DEVICES=gpu0,gpu1,nano torchrun --nnodes=2 --node-rank=0 --nproc-per-node=2 "
        "--rdzv-backend=static --master-addr=big --master-port=29500 --max-restarts=0 train.py --epochs 3",
        "# nano (10.0.0.7:2222)",
        "env PLANNER_BATCH_SIZE=32 PLANNER_BATCH_SIZES=32,32,32 "
        "PLANNER_RANK_WEIGHT=1.0 PLANNER_DEVICES=gpu0,gpu1,nano torchrun --nnodes=2 --node-rank=1 --nproc-per-node=1 "
        "--rdzv-backend=static --master-addr=big --master-port=29500 --max-restarts=0 train.py --epochs 3",
    ]


def test_what_the_fleet_file_says_of_a_device_is_kept() -> None:
    device = on("tx2", data_interface="eth1")
    device["interpreter"] = Interpreter("/opt/py/bin/python3", ("taskset", "-c", "0-3"), {"OMP_NUM_THREADS": "4"})
    assert (
        torchrun(ranks(tx2=device), TRAIN, "here")
        .splitlines()[-1]
        .startswith(
            "taskset -c 0-3 env OMP_NUM_THREADS=4 GLOO_SOCKET_IFNAME=eth1 NCCL_SOCKET_IFNAME==eth1 "
            "PLANNER_BATCH_SIZE=32 PLANNER_BATCH_SIZES=32 PLANNER_RANK_WEIGHT=1.0 PLANNER_DEVICES=tx2 "
            "/opt/py/bin/python3 -m torch.distributed.run --nnodes=1 "
        )
    )


def test_the_home_of_an_interpreter_is_left_to_the_shell_of_its_node() -> None:
    device = {**on("n1"), "interpreter": Interpreter("~/my torch/bin/python")}
    text = torchrun(ranks(a=device), ("python", "-c", "pass"), "here")
    assert " ~/'my torch/bin/python' -m torch.distributed.run " in text
    assert text.endswith(" --no-python ~/'my torch/bin/python' -c pass")


def test_members_of_a_node_share_the_variables_on_which_they_agree() -> None:
    a, b = on("big"), on("big")
    a["interpreter"] = Interpreter(environment={"X": "1", "Y": "1"})
    b["interpreter"] = Interpreter(environment={"X": "1", "Y": "2"})
    a["data"] = b["data"] = "/mnt/set"
    line = torchrun(ranks(a=a, b=b), TRAIN, "here").splitlines()[-1]
    assert {"X=1", "PLANNER_DATA=/mnt/set"} <= set(shlex.split(line)) and "Y=" not in line


@pytest.mark.parametrize(
    ("command", "end"),
    [
        (("python", "train.py", "a b"), "train.py 'a b'"),
        (("python", "-u", "train.py"), "train.py"),
        (("python", "-m", "pkg.train", "-x"), "-m pkg.train -x"),
        (("python", "-X", "dev", "train.py"), "--no-python python3 -X dev train.py"),
        (("./train.sh", "-x"), "--no-python ./train.sh -x"),
    ],
)
def test_a_command_becomes_what_torchrun_starts(command: tuple[str, ...], end: str) -> None:
    assert torchrun(ranks(a=on("a")), command, "here").endswith(f" --max-restarts=0 {end}")


def test_slurm_gets_a_step_a_node_and_names_each_host_once() -> None:
    found = ranks(a=on("n1", "0"), b=on("n1", "0"), tx2=on("10.0.0.7"), pc=on(None))
    text = slurm(found, TRAIN, "here", "/home/user/my project")
    assert "#SBATCH --nodes=3\n#SBATCH --nodelist=n1,tx2,here\n#SBATCH --chdir='/home/user/my project'\n" in text
    steps = [line for line in text.splitlines() if line.startswith("{ srun ")]
    assert [options(line)["--nodelist"] for line in steps] == ["n1", "n1", "tx2", "here"]
    assert [options(line)["--node-rank"] for line in steps] == ["0", "1", "2", "3"]
    assert all(line.endswith("train.py --epochs 3; echo $? >&3; } &") for line in steps)


@pytest.mark.parametrize("succeeding", ["sleep 0.2", "true"])
@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((0, 3), 3), ((4, 0), 4)])
def test_the_job_of_slurm_ends_with_the_first_step_that_fails(
    tmp_path: Path, codes: tuple[int, int], expected: int, succeeding: str
) -> None:
    """srun is here a program that runs its step, with no Slurm around it."""
    text = slurm(ranks(a=on("n1"), b=on("n2")), TRAIN, "here", "/")
    srun = tmp_path / "srun"
    srun.write_text(
        '#!/bin/bash\ncase "$*" in\n'
        f"*--node-rank=0*) code={codes[0]};;\n*) code={codes[1]};;\nesac\n"
        f"if [ $code = 0 ]; then {succeeding}; fi\nexit $code\n"
    )
    srun.chmod(0o755)
    done = subprocess.run(["bash", "-c", text], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    assert done.returncode == expected


@pytest.mark.parametrize("write", [torchrun, lambda *given: slurm(*given, "/it's $(here)")], ids=["torchrun", "slurm"])
def test_a_shell_gives_every_word_to_the_script_as_it_is(tmp_path: Path, write: Callable[..., str]) -> None:
    """torchrun and srun are here programs that write their words."""
    for name in ("torchrun", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\nprintf '%s\\0' \"$@\" >>words\n")
        (tmp_path / name).chmod(0o755)
    device = {**on("n1"), "interpreter": Interpreter(environment={"TOKEN": "$(touch here)"})}
    text = write(ranks(a=device), ("python", "train.py", *HOSTILE), "here")
    assert visible(text) == text
    subprocess.run(["bash", "-c", text], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    assert (tmp_path / "words").read_bytes().decode().split("\0")[-len(HOSTILE) - 1 : -1] == list(HOSTILE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["srun", "torchrun", "words"]


@pytest.mark.parametrize("folder", ["/a\n#SBATCH --uid=0", "/a\rb", "/a\x1b[2J", "/a\u2028b"])
def test_a_folder_that_would_add_a_line_to_the_script_is_refused(folder: str) -> None:
    with pytest.raises(ProjectError, match="rename the project's folder"):
        slurm(ranks(a=on("n1")), TRAIN, "here", folder)
