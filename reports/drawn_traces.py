"""The traces of a report that are drawn, each on its own time axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.reports.elements import Unit, Words
    from tfrctrace.reports.inputs import Input

MOST_TRACES: Final = 6
"""Traces that get figures of their own; of more, those with most bytes are drawn."""

_SILENT: Final = "No figures are drawn for the {} with fewer bytes."


@dataclass(frozen=True, slots=True)
class DrawnTrace:
    """A trace on one time axis: its name (empty if it is the only one), start in ns, flows and bins."""

    number: int
    name: str
    start_ns: int | None
    flows: pl.DataFrame
    bins: pl.DataFrame
    window_ns: int | None = None
    """Width of the points of its figures, if the user chose one."""

    def key(self, kind: str) -> str:
        """Return the key of a figure or table of this trace."""
        return f"{kind}-{self.number}"

    def titled(self, title: str) -> str:
        """Return a title that names the trace if there are others."""
        return f"{title}: {self.name}" if self.name else title

    @property
    def linked(self) -> str:
        """Name of the time axis that its figures have in common."""
        return f"time-{self.number}"

    def origin_ns(self, first_ns: int) -> int:
        """Return 0 s of the time axis: the start of the trace, or `first_ns` if that is not known."""
        return first_ns if self.start_ns is None else self.start_ns

    def seconds(self, times_ns: Sequence[int]) -> tuple[float, ...]:
        """Return times in seconds since the trace began (its first time if that is not known)."""
        origin_ns = self.origin_ns(min(times_ns, default=0))
        return tuple((time_ns - origin_ns) / 1e9 for time_ns in times_ns)

    @property
    def lasted_s(self) -> float:
        """Time from its start to its last packet."""
        end_ns = self.flows["end_ns"].max()
        if self.start_ns is None or not isinstance(end_ns, int):
            return 0.0
        return (end_ns - self.start_ns) / 1e9

    def over_time(
        self,
        kind: str,
        title: str,
        curves: Sequence[Curve],
        *,
        unit: Unit,
        caption: str,
        value_label: str = "",
    ) -> Figure:
        """Return a figure of `curves` on the time axis of this trace."""
        chart = "Step" if any(curve.form == "steps" for curve in curves) else "Line"
        return Figure(
            key=self.key(kind),
            title=self.titled(title),
            description=f"{chart} chart of {counted(len(curves), 'curve')}.",
            caption=caption,
            unit=unit,
            value_label=value_label,
            curves=tuple(curves),
            lasted_s=max([self.lasted_s, *(curve.x[-1] for curve in curves if curve.x)]),
            linked=self.linked,
        )

    def steps(
        self,
        label: str,
        style: int,
        times_ns: Sequence[int],
        values: pl.Series,
        *,
        marked: tuple[int, ...] = (),
    ) -> Curve:
        """Return the curve of `values` that hold from `times_ns` on."""
        return Curve(
            label, style, self.seconds(times_ns), tuple(values.to_list()), marked=marked, form="steps"
        )

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a table that are of flows of this trace."""
        return frame.join(self.flows.select("flow").unique(), on="flow", how="semi")


def drawn_traces(
    flows: pl.DataFrame,
    bins: pl.DataFrame,
    inputs: Sequence[Input],
    starts_ns: Mapping[str, int],
    *,
    joined: bool,
    window_ns: int | None = None,
) -> list[DrawnTrace]:
    """Return the traces that are drawn, in the order of the inputs."""
    import polars as pl

    names = flows["source"].unique(maintain_order=True).to_list()
    if joined or len(names) <= 1:
        return [DrawnTrace(1, "", min(starts_ns.values(), default=None), flows, bins, window_ns)]
    size = {source.name: source.wire_bytes for source in inputs}
    largest = set(sorted(names, key=lambda name: -size.get(name, 0))[:MOST_TRACES])
    traces: list[DrawnTrace] = []
    for name in names:
        if name in largest:
            own = flows.filter(pl.col("source") == name)
            own_bins = bins.join(own, on=["flow", "direction"], how="semi")
            traces.append(DrawnTrace(len(traces) + 1, name, starts_ns.get(name), own, own_bins, window_ns))
    return traces


def left_out(traces: Sequence[DrawnTrace], inputs: int) -> tuple[Words, ...]:
    """Return the sentence on traces without figures."""
    if len(traces) < MOST_TRACES or inputs == len(traces):
        return ()
    return ((_SILENT.format(counted(inputs - len(traces), "trace")),),)
