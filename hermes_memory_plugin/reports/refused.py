"""How a reader says that there is nothing to read."""

from __future__ import annotations

from hermes_memory_plugin.reports.document import ReadReport


class Refused(Exception):
    """The file cannot be read; `report` says why."""

    def __init__(self, report: ReadReport) -> None:
        super().__init__(report.reason)
        self.report = report
