"""Why flows were no faster, in a terminal: sentences, and a bar of the ledger."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.flow.causes import CAUSES
from tfrctrace.reports.units import (
    format_bytes,
    format_count,
    format_duration_s,
    format_rate_bps,
    format_share,
)
from tfrctrace.reports.why_words import sentences, untold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from tfrctrace.metrics.flow.causes import CausesOfRows
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow

_BAR: Final = 40
_LEAST_SHOWN: Final = 0.005
_WIDTH: Final = 100


def write_why(
    file: TextIO,
    shown: Sequence[FlowCauses],
    beside: CausesOfRows,
    others: Sequence[UntoldFlow],
    *,
    order: str,
    width: int | None = None,
) -> None:
    """Write why each of the flows `shown`, of those `beside` them, was no faster.

    `others` are flows whose cause is unknown, `order` is how flows were chosen; empty if they were named.
    """
    for flow in shown:
        ends = f"{flow.src}:{flow.src_port} → {flow.dst}:{flow.dst_port}"
        volume = f"{format_bytes(flow.payload_bytes)} in {format_duration_s(flow.duration_s)}"
        file.write(
            printable(f"flow {flow.flow}  {ends}  {volume}, {format_rate_bps(flow.goodput_bps)}") + "\n"
        )
        for line in _bars(flow):
            file.write(f"  {line}\n")
        for sentence in sentences(flow, beside):
            _write_wrapped(file, sentence, "  ", width)
        file.write("\n")
    for sentence in untold(others):
        _write_wrapped(file, sentence, "", width)
    if order and len(shown) < len(beside):
        number = f"{format_count(len(shown))} of {format_count(len(beside))}"
        file.write(f"{number} directions with data, {order}; `--rows 0` shows all\n")
    elif not shown and not others:
        file.write("no flow with data\n")


def _write_wrapped(file: TextIO, sentence: str, indent: str, width: int | None) -> None:
    for line in textwrap.wrap(sentence, (width or _WIDTH) - len(indent), break_on_hyphens=False):
        file.write(f"{indent}{line}\n")


def _bars(flow: FlowCauses) -> Iterable[str]:
    shares = sorted(((getattr(flow, f"{cause}_share"), cause) for cause in CAUSES), reverse=True)
    for share, cause in shares:
        if share >= _LEAST_SHOWN:
            yield f"{cause:17} {format_share(round(share, 3)):>7}  {'█' * max(round(share * _BAR), 1)}"


def why_frame(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of causes with the columns of `FlowCauses`, in its order."""
    import polars as pl

    from tfrctrace.metrics.results.why import FlowCauses

    whole, share = pl.UInt64, pl.Float64
    types: dict[str, type[pl.DataType]] = dict.fromkeys(FlowCauses.__struct_fields__, share)
    types |= dict.fromkeys(
        ("src_port", "dst_port", "payload_bytes", "changes", "flight_bytes", "window_bytes"), whole
    )
    types |= dict.fromkeys(("compared_rounds", "predicted_rounds", "rtt_probes", "delay_backoffs"), whole)
    types |= dict.fromkeys(("buffer_bytes", "buffer_low_bytes", "buffer_high_bytes", "path_changes"), whole)
    types |= dict.fromkeys((name for name in types if name.endswith("_reason")), pl.String)
    types |= dict.fromkeys(("direction", "src", "dst", "main_cause", "main_sign", "second_cause"), pl.String)
    types |= dict.fromkeys(("congestion_control", "discipline"), pl.String)
    types |= {"windows_estimated": pl.Boolean}
    types |= {"flow": pl.UInt32, "start_ns": pl.Int64, "path_change_ns": pl.Int64}
    return rows.select(pl.col(name).cast(kind) for name, kind in types.items())
