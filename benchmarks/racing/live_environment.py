"""An environment gives runs their fleet, profile and agents."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lab.errors import LabError
from lab.lab import Lab
from lab.schedule import play
from lab.spec import Spec, load_spec

from backends.data.dataset import Dataset
from planner.agents.pool import AgentPool
from planner.fleet.device import Fleet
from planner.fleet.file import load_fleet
from planner.profile.file import Profile, load_profile
from planner.profile.profiler import Profiler
from planner.profile.request import ProfileRequest
from planner.train.training_data import load_dataset

from .network_cards import Cards
from .racefile import Race

#: Steps that a profile is made for: few, so that devices are timed no longer than a race is worth.
STEPS_PLANNED = 5_000


class LiveEnvironment(NamedTuple):
    """Fleet, profile and folder of the environment that runs are made in.

    rates: what-if rates by device
    cards: counters of network cards
    folder: for events of runs
    stream_rates: a set of rates at which samples arrive; empty for samples that are there
    """

    fleet: Fleet
    profile: Profile
    rates: Mapping[str, float]
    agents: AgentPool
    cards: Cards
    dataset: Dataset
    folder: Path
    stream_rates: str = ""


class LiveEnvironments:
    """One lab that becomes each environment in turn; its agents stay as long as its devices do.

    folder: for the fleet file, profiles and the events of runs. Close it at the end, and the lab is
    gone.
    """

    def __init__(self, race: Race, name: str, folder: Path) -> None:
        self._race = race
        self._name = name
        self._lab = Lab(name)
        self._folder = folder
        self._fleet = folder / f"fleet-{name}.toml"
        self._dataset = load_dataset(str(race.path(race.data)))
        self._devices: list[str] = []
        self._stands: Path | None = None
        self._agents = AgentPool()
        self._playing: threading.Thread | None = None

    def at(self, label: str) -> LiveEnvironment:
        """The environment, as it is at its beginning. Raises PlannerError."""
        if self._playing is not None:
            self._playing.join()
        environment = self._race.environment(label)
        spec = self._spec(environment.spec)
        profiled = self._spec(environment.profiled or environment.spec)
        profile = self._profile(profiled)
        self._up(spec)
        names = [device.name for device in spec.devices]
        fleet, cards = load_fleet(self._fleet), Cards(self._name, names)
        return LiveEnvironment(
            fleet, profile, other_rates(profiled, spec), self._agents, cards, self._dataset, self._folder,
            environment.stream_rates,
        )  # fmt: skip

    def play(self, label: str) -> None:
        """Start the environment's schedule, if any, in the background."""
        environment = self._race.environment(label)
        schedule = self._spec(environment.spec).schedule
        if schedule:
            orders = (self._lab, schedule, environment.speed, lambda _: None)
            self._playing = threading.Thread(target=play, args=orders, daemon=True)
            self._playing.start()

    def renew(self) -> None:
        """Other agents: what failed a run may have left these useless."""
        self._agents.close()
        self._agents = AgentPool()

    def close(self) -> None:
        """End agents and lab."""
        self._agents.close()
        self._lab.down()

    def _spec(self, name: str) -> Spec:
        return load_spec(self._race.path(name))

    def _up(self, spec: Spec) -> None:
        """Unless it is what stands already, at the beginning of its schedule."""
        if spec.path == self._stands:
            return
        self._stands = None if spec.schedule else spec.path
        self._lab.up(spec, self._fleet, lambda *_: None)
        names = [device.name for device in spec.devices]
        if names != self._devices:
            self.renew()
            self._devices = names

    def _profile(self, spec: Spec) -> Profile:
        """Of a spec: made there, unless it is in the folder, and kept when it is complete."""
        path = profile_path(self._folder, self._race, spec)
        if not path.exists():
            self._up(spec)
            wanted = ProfileRequest(
                (self._race.model_name,), self._race.batch, input_shape=tuple(self._dataset.input_shape),
                classes=self._dataset.classes, steps_planned=STEPS_PLANNED,
            )  # fmt: skip
            partly = path.with_suffix(".part")
            Profiler(load_fleet(self._fleet), wanted, partly, lambda *_: None).run(path.with_suffix(".log"))
            partly.rename(path)
        return load_profile(path)


def profile_path(folder: Path, race: Race, spec: Spec) -> Path:
    """Where the profile of a spec is kept."""
    return folder / f"{race.name}-{spec.path.stem}.json"


def other_rates(before: Spec, now: Spec) -> dict[str, float]:
    """Line rates that are not those of the profile.

    Raises LabError where the devices are others.
    """
    known = {device.name: device.rate_bytes_per_s for device in before.devices}
    wanted = {device.name: device.rate_bytes_per_s for device in now.devices}
    if known.keys() != wanted.keys():
        raise LabError(f"{before.path} has other devices than {now.path}; name another spec as `profiled`")
    return {name: rate for name, rate in wanted.items() if rate != known[name]}
