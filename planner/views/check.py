"""This view shows a symbol for each check of each device, and below it details and remedies."""

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from planner.check.findings import CHECKS, FAILED, OK, SKIPPED, WARNING, CheckReport, Finding
from planner.views.tables import TextTable, stack

#: Sign and colour of each status; the signs read without colour.
SYMBOLS = {OK: ("✓", "green"), WARNING: ("!", "yellow"), FAILED: ("✗", "bold red"), SKIPPED: ("–", "dim")}
#: Checks whose details are shown where all is well.
DETAILED = ("python", "framework", "gpu", "disk", "power", "clock")


def render(report: CheckReport) -> RenderableType:
    """A row for each device and a column for each check; below, the details and the remedies.

    A narrow screen leaves out the checks that every device passes.
    """
    by_device: dict[str, dict[str, Finding]] = {}
    for finding in report.findings:
        by_device.setdefault(finding.device, {})[finding.check] = finding
    checks = (*CHECKS, *dict.fromkeys(each.check for each in report.findings if each.check not in CHECKS))
    passed = [check for check in checks if all(found[check].status == OK for found in by_device.values())]
    columns = ("device", *checks)
    made = TextTable("checks", columns, left=columns, optional=passed)
    for device, found in by_device.items():
        made.add_row(device, *(Text(*SYMBOLS[found[check].status]) for check in checks))
    details = [line for device, found in by_device.items() for line in _device_details(device, found)]
    problems = [_problem(finding) for finding in report.findings if finding.status in (FAILED, WARNING)]
    able = sum(report.able.values())
    verdict = f"{able} of {len(report.able)} devices can take part"
    style = "green" if able == len(report.able) else "bold red"
    return stack([made], [*details, *problems, Text(verdict, style=style)])


def _device_details(device: str, found: Mapping[str, Finding]) -> list[Text]:
    words = [f"{check} {found[check].detail}" for check in DETAILED if found[check].status == OK]
    return [Text(f"  {device}: {'; '.join(words)}", style="dim")] if words else []


def _problem(finding: Finding) -> Text:
    sign, style = SYMBOLS[finding.status]
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return Text.assemble((f"{sign} {finding.device}: {finding.check}: ", style), f"{finding.detail}{remedy}")
