"""A command as it was run, and what it is run on."""

from collections.abc import Callable

from planner.profile.file import Profile
from tests.planner import profiles
from tests.running import Ran

HEAVY = {"torch", "tensorflow", "pandas", "sklearn", "paramiko", "pydantic", "numpy"}
LOCAL = '[devices.a]\naddress = "local"\n\n[devices.b]\naddress = "local"\n'


Planner = Callable[..., Ran]


def fleet() -> Profile:
    """Three devices, far enough apart that no two clusters tie."""
    times_s = {"desktop": 0.1, "tx2": 0.4, "nano": 1.7}
    return profiles.profile({name: profiles.device(profiles.step(each)) for name, each in times_s.items()})
