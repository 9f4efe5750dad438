"""A device starts an agent, imports a framework and receives files before it can train."""

from typing import NamedTuple


class Startup(NamedTuple):
    """The beginning of a run on one device.

    agent_s: until the device is reached and its agent answers.
    framework_s: that the import of a framework took, by name.
    bytes_per_s: of what this machine sends it over SSH.
    """

    agent_s: float
    framework_s: dict[str, float]
    bytes_per_s: float

    def with_framework(self, name: str, seconds: float) -> "Startup":
        """The same after the import of another framework."""
        return self._replace(framework_s={**self.framework_s, name: seconds})
