"""One flow of a trace, with its rows of every table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    import polars as pl

    from tfrctrace.reports.figures.kinds import PlotKind
    from tfrctrace.reports.figures.publication import Drawing
    from tfrctrace.trace.tables import TableName
    from tfrctrace.trace.trace import Trace


@dataclass(frozen=True, repr=False)
class Flow:
    """A flow by its number, as `tfrctrace flows` shows it. `Trace.flow` makes it."""

    trace: Trace
    number: int

    def __post_init__(self) -> None:
        if self.rows.is_empty():
            raise UsageError(
                f"the trace has no flow {self.number}", hint="`trace.flows` numbers those it has"
            )

    def __repr__(self) -> str:
        from tfrctrace.reports.conversations import ends

        lead = self.rows.sort("wire_bytes", descending=True).row(0, named=True)
        words = (lead["transport"], lead["state"], lead["label"])
        return f"<Flow {self.number}: {ends(lead)}, {', '.join(word for word in words if word)}>"

    @property
    def rows(self) -> pl.DataFrame:
        """Its rows of the table of flows, one for each direction."""
        return self.table("flows")

    @property
    def rtt(self) -> pl.DataFrame:
        """One row for each RTT sample, in ns."""
        return self.table("rtt")

    @property
    def losses(self) -> pl.DataFrame:
        """One row for each retransmitted or out-of-order packet."""
        return self.table("losses")

    @property
    def rounds(self) -> pl.DataFrame:
        """One row for each round of data in flight: flight, window, what limited it."""
        return self.table("rounds")

    @property
    def bins(self) -> pl.DataFrame:
        """Counts in bins of time."""
        return self.table("bins")

    @property
    def packets(self) -> pl.DataFrame:
        """Its packets."""
        import polars as pl

        return pl.concat(self._own(batch) for batch in self.trace.packets())

    def table(self, name: TableName) -> pl.DataFrame:
        """Return its rows of any table that has flows."""
        if name == "variables":
            return self._own(self.trace.variables)  # which finds the flow of a sample
        table = self.trace.table(name)
        flows = table.frame(["flow"])
        if "flow" not in flows.columns:
            raise UsageError(f"the table `{name}` has no flows", hint=f"ask the trace: `trace.{name}`")
        # all columns of a hundred thousand flows would take a fifth of a gigabyte
        return table.take((flows["flow"] == self.number).arg_true().to_list())

    def throughput(self, width: str | timedelta) -> pl.DataFrame:
        """Return throughput and goodput (bit/s) of each direction in bins of `width`, such as `"500ms"`."""
        return self._own(self.trace.throughput(width))

    def plot(self, kind: PlotKind, *args: Any, **options: Any) -> Drawing:
        """Return the first figure of `kind` for this flow; further arguments as for `Trace.plot`."""
        return self.trace.plot(kind, *args, flow=self.number, **options)

    def _own(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(flow=self.number)
