"""A profile recorder keeps the profile of a fleet, which threads of several devices change."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.console import OnProgress
from planner.json_records import save
from planner.profile.file import Profile


class ProfileRecorder:
    """The profile so far. path: of profile.json, which ``save`` writes."""

    def __init__(self, profile: Profile, path: Path, on_progress: OnProgress) -> None:
        self.profile = profile
        self.on_progress = on_progress
        self._path = path
        self._lock = threading.Lock()
        self._stopped = False

    def change(self, changed: Callable[[Profile], Profile]) -> None:
        """Replace the profile."""
        with self._lock:
            if not self._stopped:
                self.profile = changed(self.profile)

    def save(self) -> None:
        """Write the profile. Raises RecordError where it cannot be written."""
        with self._lock:
            save(self.profile, self._path)

    def note(self, name: str, **changes: Any) -> None:
        """Change fields of one device's profile."""
        self.change(lambda profile: profile.with_device(name, **changes))

    def fail(self, name: str, reason: str, **changes: Any) -> None:
        """Note that a device failed, or only the changes that are given, and show the reason."""
        if not self._stopped:
            self.note(name, **changes or {"error": reason})
            self.on_progress(name, f"failed: {reason}", None)

    def stop(self) -> None:
        """Change nothing any more: agents that end now are no failures."""
        with self._lock:
            self._stopped = True
