"""`planner audit` refuses what its runs could not do before it trains anything."""

from pathlib import Path

from planner import json_records
from planner.profile.file import DeviceProfile
from tests.planner import profiles
from tests.planner.cli.commands import Planner

FLEET = '[devices.a]\naddress = "local"\n\n[devices.b]\naddress = "10.0.0.2"\n'


def audit(planner: Planner, **devices: DeviceProfile) -> str:
    """The problem that an audit of torch.distributed on these devices ends with."""
    Path("fleet.toml").write_text(FLEET)
    json_records.save(profiles.profile(devices), Path("profile.json"))
    return planner("audit", "--engine", "torch").problem()


def test_half_precision_is_refused_with_torch(planner: Planner) -> None:
    assert "fp16 scales its loss" in audit(planner, a=profiles.device(profiles.step(precision="fp16")))


def test_whoever_takes_part_must_be_trusted(planner: Planner) -> None:
    problem = audit(planner, a=profiles.device(), b=profiles.device(host="10.0.0.2"))
    assert "add --allow-plaintext" in problem
