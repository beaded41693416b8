"""The results of a trace, as people get them."""

from __future__ import annotations

from tfrctrace.reports.report_input import ReportInput


class Results(ReportInput):
    """The input of a report; a notebook shows its summary."""

    def _repr_html_(self) -> str:
        from tfrctrace.reports.printers.notebook import overview

        return overview(self, title="Results")
