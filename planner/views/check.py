"""This view shows which devices can take part, what each computes with, and what to mend."""

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from planner.check.findings import CHECKS, FAILED, OK, SKIPPED, WARNING, CheckReport, Finding
from planner.views.notes import few
from planner.views.tables import TextTable, stack

#: Sign and colour of each status; the signs read without colour.
SYMBOLS = {OK: ("✓", "green"), WARNING: ("!", "yellow"), FAILED: ("✗", "bold red"), SKIPPED: ("–", "dim")}
#: Checks whose details are shown of every device.
DETAILED = ("framework", "power")
#: Checks whose details are shown as well if verbose.
VERBOSE = ("python", "framework", "gpu", "disk", "power", "clock")

ByDevice = Mapping[str, Mapping[str, Finding]]


def render(report: CheckReport, verbose: bool = False) -> RenderableType:
    """How many devices can take part; a row for each; every failure, and the first warnings.

    verbose: a column for each check, all details and all warnings.
    """
    by_device: dict[str, dict[str, Finding]] = {}
    for finding in report.findings:
        by_device.setdefault(finding.device, {})[finding.check] = finding
    able = sum(report.able.values())
    verdict = f"{able} of {len(report.able)} devices can take part."
    style = "bold green" if able == len(report.able) else "bold red"
    failures, warnings = ([_problem(each) for each in report.findings if each.status == of] for of in (FAILED, WARNING))
    details = [line for device, found in by_device.items() for line in _device_details(device, found)]
    table = _symbols(by_device, report) if verbose else _devices(by_device, report.able)
    return stack([Text(verdict, style=style), table], [*failures, *few(warnings, details, verbose)])


def _devices(by_device: ByDevice, able: Mapping[str, bool]) -> TextTable:
    columns = ("device", "", *DETAILED)
    made = TextTable("", columns, left=columns)
    for device, found in by_device.items():
        sign = Text(*SYMBOLS[OK if able[device] else FAILED])
        made.add_row(device, sign, *(found[check].detail if _is_known(found[check]) else "-" for check in DETAILED))
    return made


def _is_known(finding: Finding) -> bool:
    return finding.status in (OK, WARNING)


def _symbols(by_device: ByDevice, report: CheckReport) -> TextTable:
    """A column for each check. A narrow screen leaves out those that every device passes."""
    checks = (*CHECKS, *dict.fromkeys(each.check for each in report.findings if each.check not in CHECKS))
    passed = [check for check in checks if all(found[check].status == OK for found in by_device.values())]
    columns = ("device", *checks)
    made = TextTable("checks", columns, left=columns, optional=passed)
    for device, found in by_device.items():
        made.add_row(device, *(Text(*SYMBOLS[found[check].status]) for check in checks))
    return made


def _device_details(device: str, found: Mapping[str, Finding]) -> list[str]:
    words = [f"{check} {found[check].detail}" for check in VERBOSE if found[check].status == OK]
    return [f"{device}: {'; '.join(words)}"] if words else []


def _problem(finding: Finding) -> str:
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return f"{SYMBOLS[finding.status][0]} {finding.device}: {finding.check}: {finding.detail}{remedy}"
