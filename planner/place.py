"""A model where an agent can build it."""

from pathlib import Path

from backends import models
from planner.agents import Agent


def place_model(agent: Agent, model: str) -> str:
    """A user's model file goes to the device; the name of a known model stays as it is."""
    if not models.is_user_model(model):
        return model
    path, _, function = model.rpartition(":")
    source = Path(path).read_bytes()
    return f"{agent.store(f'model-{models.fingerprint(model)}.py', source)}:{function}"
