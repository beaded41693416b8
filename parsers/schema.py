"""Every column of every table: name, type, unit, meaning, and when it is null.

The core declares each column where it fills it (`native/src/tables/`); what only Python computes is declared
here. The page `docs/columns.md` is made from these declarations.

Rows of flows are tidy: one row for each flow and direction. Times are integer nanoseconds, counts are
integers, rates are bits per second, ratios go from 0 to 1. Null means "cannot be known from this trace" (the
column `notes` says why); zero means measured zero.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.parsers import _native

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION: Final = 3
"""Version of the JSON form; it changes when a name or a meaning does."""

ColumnType = Literal["uint32", "uint64", "int64", "float64", "string"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `null_when` is empty when the value is always known."""

    name: str
    type: ColumnType
    unit: str
    meaning: str
    null_when: str = ""


def polars_type(kind: ColumnType) -> pl.DataType:
    """Return the type of Polars that a column of this type has."""
    import polars as pl

    types: dict[ColumnType, pl.DataType] = {
        "uint32": pl.UInt32(),
        "uint64": pl.UInt64(),
        "int64": pl.Int64(),
        "float64": pl.Float64(),
        "string": pl.String(),
    }
    return types[kind]


def polars_schema(table: str) -> dict[str, pl.DataType]:
    """Return the Polars schema of `table` (one of `TABLES`)."""
    return {column.name: polars_type(column.type) for column in TABLES[table]}


_PROFILE: Final = Column(
    "profile", "string", "", "TFRC variant: `rfc5348`, `rfc3448`, `ns2` or `linux`", "not TFRC"
)

_OF_DIRECTION: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
)
_ENDS: Final = (
    *_OF_DIRECTION,
    Column("src", "string", "", "address of the sender"),
    Column("src_port", "uint32", "", "port of the sender"),
    Column("dst", "string", "", "address of the receiver"),
    Column("dst_port", "uint32", "", "port of the receiver"),
)

_OF_REPLAY: Final = (
    *_ENDS,
    Column("algorithm", "string", "", "rate algorithm: `tfrc`, `mtfrc`, ... or `module:Class`"),
    _PROFILE,
    Column(
        "reports",
        "string",
        "",
        "source of the reports: `reports` of the receiver, `simulated_reports` of one that is rebuilt "
        "from arrivals, or `tcp`: rounds and losses of a connection",
    ),
    Column("rtt_scale", "float64", "", "factor by which every round-trip time was multiplied"),
)

_BESIDE_REPLAY: Final = (
    Column("sent_bps", "float64", "bit/s", "payload sent since the row before", "no time passed"),
    Column("x_tfrc_bps", "float64", "bit/s", "rate that TFRC alone allows", "not MTFRC"),
    Column("x_t_bps", "float64", "bit/s", "X_t: rate that the MAC carries of each station", "as x_tfrc_bps"),
    Column("x_fair_bps", "float64", "bit/s", "X_fair: fair share of each flow", "not MTFRC, or no downloads"),
    Column("window_bytes", "float64", "bytes", "congestion window", "an algorithm without one"),
)

_ONE_STEP: Final = (
    *_ENDS,
    Column("algorithm", "string", "", "window algorithm: `newreno`, `cubic`, ... or `module:Class`"),
    Column("time_ns", "int64", "ns", "end of the round that shows the window", "lacking has the reason"),
    Column(
        "packet",
        "uint64",
        "",
        "number in the source of the acknowledgement that ended it",
        "as time_ns",
    ),
    Column(
        "event",
        "string",
        "",
        "what the algorithm decided on: `slow_start` or `congestion_avoidance` (a round), `loss`, or `mark`",
        "as time_ns",
    ),
    Column("before_bytes", "float64", "bytes", "observed window before", "as time_ns"),
    Column("predicted_bytes", "float64", "bytes", "window that the algorithm makes of it", "as time_ns"),
    Column("observed_bytes", "float64", "bytes", "observed window after", "as time_ns"),
    Column("deviation_segments", "float64", "", "predicted less observed, in segments", "as time_ns"),
    Column(
        "lacking",
        "string",
        "",
        "why no decision of the flow can be predicted, and what would help",
        "there are some",
    ),
)

_CLOSED_LOOP: Final = (
    *_ENDS,
    Column("algorithm", "string", "", "rate algorithm: `tfrc`, `newreno`, ... or `module:Class`"),
    _PROFILE,
    Column("time_ns", "int64", "ns", "start of a round of the model", "lacking has the reason"),
    Column(
        "duration_ms",
        "float64",
        "ms",
        "length of the round: a round-trip time, or until a loss was detected",
        "as time_ns",
    ),
    Column(
        "x_bps",
        "float64",
        "bit/s",
        "rate that the algorithm allowed in it",
        "the initial window, or as time_ns",
    ),
    Column("mode", "string", "", "what governed the rate, as the algorithm names it", "as time_ns"),
    Column("reason", "string", "", "what changed the rate", "as time_ns"),
    Column(
        "window_bytes", "float64", "bytes", "congestion window", "an algorithm without one, or as time_ns"
    ),
    Column(
        "sent_bps", "float64", "bit/s", "payload sent in the model", "the round lasted no time, or as time_ns"
    ),
    Column("received_bps", "float64", "bit/s", "payload of it that was not lost", "as sent_bps"),
    Column("rtt_ms", "float64", "ms", "round-trip time of packets sent when the round began", "as time_ns"),
    Column(
        "queued_bytes",
        "float64",
        "bytes",
        "payload of all flows in the queue when the round began",
        "as time_ns",
    ),
    Column("lost_packets", "uint32", "", "losses detected at the end of the round", "as time_ns"),
    Column(
        "p",
        "float64",
        "",
        "loss event rate at the end of the round, as a TFRC receiver computes it",
        "as time_ns",
    ),
    Column(
        "swept",
        "float64",
        "",
        "value of the property that `--sweep` varies, in bit/s, ms or bytes",
        "no `--sweep`, or as time_ns",
    ),
    Column(
        "lacking",
        "string",
        "",
        "why nothing can take the place of the flow, and what would help",
        "its bottleneck is known",
    ),
)

_CONGESTION_CONTROLS: Final = (
    *_OF_DIRECTION,
    Column(
        "candidate",
        "string",
        "",
        "a congestion control that may have sent it; those of a direction by likelihood",
        "nothing could be predicted",
    ),
    Column(
        "congestion_control",
        "string",
        "",
        "the answer for the direction, as in `why`: a name, or several joined by `|`",
        "see congestion_control_reason",
    ),
    Column("congestion_control_reason", "string", "", "why there is no answer", "there is one"),
    Column(
        "compared_rounds", "uint64", "", "rounds that were predicted; each cut counts as one", "no candidate"
    ),
    Column("predicted_rounds", "uint64", "", "those that came out as predicted", "no candidate"),
    Column(
        "log_likelihood",
        "float64",
        "",
        "natural logarithm of the likelihood of the observed windows, each from the observed one before it",
        "no candidate",
    ),
    Column("log_ratio_to_best", "float64", "", "log_likelihood less that of the likeliest", "no candidate"),
    Column(
        "log_ratio_to_smooth",
        "float64",
        "",
        "log_likelihood less that of growth as before and of any cut, which is no rule",
        "no candidate",
    ),
    Column(
        "beta",
        "float64",
        "",
        "median share of a window that a loss left, of whole segments rounded down (beta of RFC 9438)",
        "fewer than three losses in windows of twenty segments or more",
    ),
    Column("beta_low", "float64", "", "lower limit of its interval of 95 %, less a segment", "as beta"),
    Column("beta_high", "float64", "", "upper limit, and a segment more", "as beta"),
    Column(
        "c",
        "float64",
        "segments/s^3",
        "C of CUBIC (RFC 9438 section 4.2) by the growth of the windows",
        "not `cubic`, or fewer than three epochs outside of the Reno-friendly region, or they do not agree",
    ),
    Column("c_low", "float64", "segments/s^3", "lower limit of its interval of 95 %, by epochs", "as c"),
    Column("c_high", "float64", "segments/s^3", "upper limit", "as c"),
)


def _tables() -> tuple[dict[str, tuple[Column, ...]], dict[str, str]]:
    """Return the columns and the meaning of a row of each table."""
    tables: dict[str, tuple[Column, ...]] = {}
    rows: dict[str, str] = {}
    for name, row, columns in _native.tables():
        tables[name] = tuple(itertools.starmap(Column, columns))
        rows[name] = row
        if name == "replay":
            # the core knows the steps of one sender
            tables[name] = (*_OF_REPLAY, *tables[name], *_BESIDE_REPLAY)
            tables["one_step"] = _ONE_STEP
            rows["one_step"] = "each decision of a window algorithm on a flow, or each flow without any"
            tables["closed_loop"] = _CLOSED_LOOP
            rows["closed_loop"] = "each round of an algorithm at a model of a bottleneck"
    tables["congestion_controls"] = _CONGESTION_CONTROLS
    rows["congestion_controls"] = "each congestion control that may have sent a direction with data"
    return tables, rows


TABLES, ROWS = _tables()
"""The columns of each table by its name, and what one row of it is."""

FLOWS: Final = TABLES["flows"]

FEEDBACK: Final = TABLES["feedback"]
