"""Devices and ranks made up for tests."""

from pathlib import Path

from planner.fleet.device import Device, Fleet, Interpreter, SshLogin
from planner.launch.ranks import PlacedRank, placed
from tests.planner.plans import plan, planned


def on(
    host: str | None, gpus: str | None = None, port: int | None = None, jump: str | None = None, **of_device: object
) -> dict[str, object]:
    """Where a device is, and the GPUs that it sees."""
    interpreter = Interpreter(environment={} if gpus is None else {"CUDA_VISIBLE_DEVICES": gpus})
    ssh = None if host is None else SshLogin(host, port, jump=jump)
    return {"ssh": ssh, "interpreter": interpreter, **of_device}


def ranks(server: str | None = None, **devices: dict[str, object]) -> tuple[PlacedRank, ...]:
    """The ranks of a plan of all these devices, at 32 samples a step each."""
    fleet = Fleet(tuple(Device(name=name, **entry) for name, entry in devices.items()), Path("fleet.toml"))  # type: ignore[arg-type]
    made = plan(*(planned(name) for name in devices))
    return placed(made if server is None else made._replace(server=server), fleet)
