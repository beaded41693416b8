"""The document of `flows --format json`: rows have the columns that the core declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, defstruct

from tfrctrace.metrics.results.document import Tool
from tfrctrace.metrics.results.flows import FlowNumber, SourceProblem, SourceSummary
from tfrctrace.parsers.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from tfrctrace.parsers.schema import Column

_TYPES: dict[str, Any] = {
    "uint32": FlowNumber,
    # msgspec has no bound beyond 63 bits
    "uint64": Annotated[int, Meta(ge=0, extra_json_schema={"maximum": 2**64 - 1})],
    "int64": Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    "float64": float,
    "string": str,
}


def _field(column: Column) -> tuple[str, Any]:
    words = f"{column.meaning} ({column.unit})" if column.unit else column.meaning
    kind = _TYPES[column.type]
    if column.null_when:
        kind, words = kind | None, f"{words}; null: {column.null_when}"
    return column.name, Annotated[kind, Meta(description=words)]


def _row(name: str, table: str) -> type[Struct]:
    return defstruct(name, map(_field, TABLES[table]), frozen=True, forbid_unknown_fields=True)


FlowRow: Any = _row("FlowRow", "flows")
HopRow: Any = _row("HopRow", "hops")


class FlowsDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `tfrctrace flows --format json` writes. Times are integers in ns, rates bit/s."""

    schema_version: Annotated[int, Meta(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    tool: Tool
    sources: list[SourceSummary]
    flows: list[FlowRow]
    hops: Annotated[list[HopRow], Meta(description="of more than two captures (`--pair`), else empty")]
    warnings: list[SourceProblem]
