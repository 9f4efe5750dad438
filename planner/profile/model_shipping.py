"""A user's model file is shipped to a device together with the files that it imports."""

from pathlib import Path

from backends import models
from backends.models.user_source import source_files
from planner.agents.client import AgentClient


def ship_model(agent: AgentClient, model: str) -> str:
    """Store a user's model on a device and return its name there.

    model: the name of a known model, returned unchanged, or ``path.py:function``.
    Raises RemoteError.
    """
    if not models.is_user_model(model):
        return model
    path, _, function = model.rpartition(":")
    folder = f"model-{models.fingerprint(model)}"
    stored = [
        agent.store(f"{folder}/{source.name}", source.content, str(Path(path).parent / source.name))
        for source in source_files(model)
    ]
    return f"{stored[0]}:{function}"
