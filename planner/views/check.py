"""The doctor's report on screen: symbols in a table that fits a narrow terminal, words below it. Pure."""

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.check.findings import CHECKS, FAILED, OK, SKIPPED, WARNING, CheckReport, Finding

SYMBOLS = {OK: ("✓", "green"), WARNING: ("!", "yellow"), FAILED: ("✗", "bold red"), SKIPPED: ("–", "dim")}
HEADINGS = {
    "reachable": "up",
    "host key": "host\nkey",
    "framework": "frame-\nwork",
    "data plane": "data\nplane",
}
#: What is worth a word where it is in order.
TELLING = ("python", "framework", "gpu", "disk", "power", "clock")


def table(report: CheckReport) -> RenderableType:
    """A row a device, a column a check; below it what was found, and what to do about the rest."""
    rows = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    rows.add_column("device", no_wrap=True)
    for check in CHECKS:
        rows.add_column(HEADINGS.get(check, check), no_wrap=True)
    by_device: dict[str, dict[str, Finding]] = {}
    for finding in report.findings:
        by_device.setdefault(finding.device, {})[finding.check] = finding
    for device, found in by_device.items():
        rows.add_row(Text(device), *(symbol(found[check]) for check in CHECKS))
    told = [line for device, found in by_device.items() for line in telling(device, found)]
    wanting = [trouble(finding) for finding in report.findings if finding.status in (FAILED, WARNING)]
    return Group(rows, *told, *wanting, verdict(report))


def symbol(finding: Finding) -> Text:
    """A status that reads without colour."""
    sign, style = SYMBOLS[finding.status]
    return Text(sign, style=style)


def telling(device: str, found: Mapping[str, Finding]) -> list[Text]:
    """One line on what a device has; none where nothing is known."""
    words = [f"{check} {found[check].detail}" for check in TELLING if found[check].status == OK]
    return [Text(f"  {device}: {', '.join(words)}", style="dim")] if words else []


def trouble(finding: Finding) -> Text:
    """What is wrong and what to do about it."""
    sign, style = SYMBOLS[finding.status]
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return Text.assemble((f"{sign} {finding.device}: {finding.check}: ", style), f"{finding.detail}{remedy}")


def verdict(report: CheckReport) -> Text:
    """How many devices can take part."""
    able = sum(report.able.values())
    style = "green" if able == len(report.able) else "bold red"
    return Text(f"{able} of {len(report.able)} devices can take part", style=style)
