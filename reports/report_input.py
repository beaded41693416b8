"""The input of a report: tables and facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrctrace.parsers.schema import polars_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.metrics.results.closed_loop import ClosedLoopReplays
    from tfrctrace.metrics.results.metrics import TraceMetrics
    from tfrctrace.parsers._native import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """Tables with the columns of `tfrctrace.parsers.schema`, and facts about the inputs.

    `flows` and `bins` are always there, `tables` holds others by name as far as they were collected. Of
    `sources` and `problems` each is what the parsers say (`SourceSummary`, `Problem`). `rtt_quantiles` are
    those of `tfrctrace.metrics.flow.quantiles`, `sequence` the tiles of time-sequence graphs, `link_bins`
    those of `tfrctrace.metrics.flow.wifi_links`, `loss_course` that of
    `tfrctrace.metrics.flow.cumulative_losses`.
    Each of these is None where it would take too long. `joined` means that all sources
    are one trace with one time axis; else each has figures of its own. So are two captures of the same
    packets, which have a `clock`.
    """

    flows: pl.DataFrame
    bins: pl.DataFrame
    sources: Sequence[Mapping[str, Any]]
    problems: Sequence[Mapping[str, Any]]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    measured: TraceMetrics | None = None
    rtt_quantiles: pl.DataFrame | None = None
    sequence: pl.DataFrame | None = None
    link_bins: pl.DataFrame | None = None
    named_controls: pl.DataFrame | None = None
    """The congestion control of each direction with data, as `why` has it; None if it was not looked for."""
    predicted_windows: pl.DataFrame | None = None
    """Observed windows of drawn directions, and those that the best two candidates predict."""
    loss_course: pl.DataFrame | None = None
    first_losses: pl.DataFrame | None = None
    """Packets of `tfrctrace.metrics.flow.first_losses`; None if their numbers are not those of a capture."""
    joined: bool = False
    clock: Clock | None = None
    link: LinkTables | None = None
    """All flows together and their hosts over time; None if the inputs have no time in common."""
    closed_loops: ClosedLoopReplays | None = None
    """What algorithms would have done in place of flows, if that was asked for; it is not saved."""
    made_with: str = ""
    """Version and command of the program, for the footer; without paths."""
    window_ns: int | None = None
    """Width of the points of figures over time, if the user chose one; else it fits the trace."""

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by its name, empty if it was not collected."""
        import polars as pl

        found = self.tables.get(name)
        return pl.DataFrame(schema=polars_schema(name)) if found is None else found
