"""The commands with which torchrun or Slurm start a script on the nodes of a plan, as text.

Nothing is contacted: a node is named by what the fleet file says.
"""

import ipaddress
import os
import shlex
from collections.abc import Sequence

from planner.errors import ProjectError
from planner.fleet.device import Device, Interpreter
from planner.launch.ranks import PlacedRank, data_variable, nodes_of, plan_variables
from planner.remote.quoting import command_line

#: torchrun's own default.
PORT = 29500
#: An interpreter of this name has its torchrun beside it in the path.
_DEFAULT_PYTHON = Interpreter().python


def torchrun(ranks: Sequence[PlacedRank], command: Sequence[str], this_host: str) -> str:
    """A line a node, each behind a comment that names its members.

    this_host: how the others reach this machine, where it is the first member.
    """
    lines = ["# Run each line on its node, in the folder of the project."]
    for members in nodes_of(ranks):
        ssh = members[0].device.ssh
        where = "this machine" if ssh is None else ssh.host + ("" if ssh.port is None else f":{ssh.port}")
        lines.append(f"# {', '.join(each.name for each in members)} ({where})")
        lines.append(_node_command(members, ranks, command, this_host))
    return "\n".join(lines)


def slurm(ranks: Sequence[PlacedRank], command: Sequence[str], this_host: str, folder: str) -> str:
    """A script for sbatch: the first step that fails ends all, and its exit code is the job's.

    folder: of the project, which all nodes are expected to share.
    Raises ProjectError for a folder that no ``#SBATCH`` line can name.
    """
    if not folder.isprintable():
        raise ProjectError(f"{folder!r} does not fit into a line of a Slurm script; rename the project's folder")
    nodes = nodes_of(ranks)
    hosts = [_slurm_name(members[0].device, this_host) for members in nodes]
    steps = [
        f"srun --nodes=1 --ntasks=1 --overlap {_quoted(f'--nodelist={host}')} "
        + _node_command(members, ranks, command, this_host)
        for host, members in zip(hosts, nodes, strict=True)
    ]
    distinct = list(dict.fromkeys(hosts))
    return "\n".join(
        [
            "#!/bin/bash",
            "#SBATCH --job-name=planner-launch",
            f"#SBATCH --nodes={len(distinct)}",
            f"#SBATCH --nodelist={','.join(distinct)}",
            f"#SBATCH --chdir={shlex.quote(folder)}",
            "# Nodes are named as in the fleet file; change the names here and below where Slurm has others.",
            "",
            "# The exit codes of the steps, as they end. `wait -n` misses a step that has ended before.",
            'ends=$(mktemp -u) && mkfifo "$ends" && exec 3<> "$ends" && rm "$ends"',
            *(f"{{ {step}; echo $? >&3; }} &" for step in steps),
            f'for step in {{1..{len(steps)}}}; do read -r code <&3; [ "$code" = 0 ] || exit "$code"; done',
            "# Slurm ends the steps that are left with the job.",
        ]
    )


def _node_command(
    members: Sequence[PlacedRank], ranks: Sequence[PlacedRank], command: Sequence[str], this_host: str
) -> str:
    """torchrun with the variables of a node.

    Only with a static rendezvous does --node-rank count: others order the nodes as they come.
    """
    rank, device = members[0], members[0].device
    variables = {**_common_variables(members), **_interface(device), **plan_variables(rank, ranks)}
    words = [
        *device.interpreter.prefix,
        "env",
        *(f"{name}={value}" for name, value in variables.items()),
        *(
            ["torchrun"]
            if device.interpreter.python == _DEFAULT_PYTHON
            else [device.interpreter.python, "-m", "torch.distributed.run"]
        ),
        f"--nnodes={ranks[-1].node + 1}",
        f"--node-rank={rank.node}",
        f"--nproc-per-node={len(members)}",
        "--rdzv-backend=static",
        f"--master-addr={_address(ranks, this_host)}",
        f"--master-port={PORT}",
        "--max-restarts=0",
        *_program(command, device.interpreter.python),
    ]
    for_shell = {*device.interpreter.prefix, device.interpreter.python}  # which reads their ~/
    return " ".join(command_line([word]) if word in for_shell else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    """A word for bash, by its bytes where a terminal would not show it as it is."""
    if all(sign.isprintable() or sign in "\n\t" for sign in word):
        return shlex.quote(word)
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\\" else f"\\{byte:03o}" for byte in os.fsencode(word)
    )
    return f"$'{plain}'"


def _common_variables(members: Sequence[PlacedRank]) -> dict[str, str]:
    """The variables of the fleet file on which the members agree."""
    first, *others = ({**rank.device.interpreter.environment, **data_variable(rank.device)} for rank in members)
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _interface(device: Device) -> dict[str, str]:
    if device.data_interface is None:
        return {}
    return {"GLOO_SOCKET_IFNAME": device.data_interface, "NCCL_SOCKET_IFNAME": f"={device.data_interface}"}


def _program(command: Sequence[str], python: str) -> list[str]:
    """A command as torchrun takes it: a script, a module behind -m, or any program."""
    words = list(command)
    if words[0] == "python":
        arguments = [word for word in words[1:2] if word != "-u"] + words[2:]  # torchrun has -u by itself
        if arguments and (arguments[0] == "-m" or not arguments[0].startswith("-")):
            return arguments
        words[0] = python
    return ["--no-python", *words]


def _address(ranks: Sequence[PlacedRank], this_host: str) -> str:
    """Where the nodes reach the first, as far as the fleet file says."""
    first = ranks[0].device
    alone = ranks[-1].node == 0
    return "127.0.0.1" if alone else first.data_address or (first.ssh.host if first.ssh else this_host)


def _slurm_name(device: Device, this_host: str) -> str:
    if device.ssh is None:
        return this_host
    try:
        ipaddress.ip_address(device.ssh.host)
    except ValueError:
        return device.ssh.host
    return device.name
