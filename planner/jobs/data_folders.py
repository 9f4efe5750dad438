"""Devices that read the data of a run from folders of their own must all have the same data."""

from collections.abc import Mapping

from backends.protocol.events import FolderContent
from backends.protocol.orders import SurveyData
from planner.agents.client import AgentClient
from planner.agents.pool import in_parallel
from planner.errors import RunError
from planner.fleet.device import Device
from planner.units import counted

#: For a card that is slow and a set of many files.
SURVEY_S = 600.0


def require_equal_data(agents: Mapping[str, AgentClient], devices: Mapping[str, Device]) -> None:
    """Compare the folders that the fleet file names, by count, bytes and hash.

    Members divide the samples among them by position, which means the same only in equal data.
    Raises RunError naming the devices and what differs, RemoteError where a folder is missing.
    """
    folders = {name: device.data for name, device in devices.items() if device.data is not None}
    if len(folders) < 2:
        return
    found: dict[str, FolderContent] = in_parallel(
        folders, lambda name: agents[name].call(SurveyData(folders[name]), SURVEY_S)
    )
    if len(set(found.values())) > 1:
        told = "; ".join(f"{name}: {folders[name]} has {_described(content)}" for name, content in found.items())
        raise RunError(
            f"the data of the devices differ: {told}; copy one set to all, or correct `data` in the fleet file"
        )


def _described(content: FolderContent) -> str:
    return f"{counted(content.files, 'file')}, {content.bytes} bytes, hash {content.hash}"
