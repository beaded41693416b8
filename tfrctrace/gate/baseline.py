"""A baseline: the quantities of good runs, kept as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.base.errors import UsageError
from tfrctrace.gate.requirement import parse_comparison

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.gate.requirement import BaselineComparison
    from tfrctrace.gate.values import CheckedRun

SCHEMA_VERSION: Final = 3

USUAL: Final = (
    "sum(goodput_bps)",
    "sum(retransmitted_packets) / sum(data_packets)",
    "mean(plr)",
    "p95(rtt_ms)",
    "mean(delay_p95_ms)",
    "min(jain)",
)
"""Default quantities of a baseline, as far as the runs have them."""

_MOST_BYTES: Final = 64_000_000
_LARGEST: Final = 1e60


@dataclass(frozen=True, slots=True)
class Baseline:
    """The value of each quantity in each run that has one, and how they were measured."""

    path: str
    measured_with: Mapping[str, Any]
    values: Mapping[str, tuple[float, ...]]


def write_baseline(
    file: TextIO,
    runs: Sequence[CheckedRun],
    comparisons: Sequence[BaselineComparison],
    measured_with: Mapping[str, Any],
    *,
    only_known: bool,
    version: str,
) -> None:
    """Write what `comparisons` are in `runs`; with `only_known` only those that every run has."""
    rows = [row for row in _rows(runs, comparisons) if not only_known or len(row["values"]) == len(runs)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tfrctrace", "version": version},
        "measured_with": dict(measured_with),
        "runs": [run.name for run in runs],
        "quantities": rows,
    }
    json.dump(document, file, indent=1, allow_nan=False)
    file.write("\n")


def _rows(runs: Sequence[CheckedRun], comparisons: Sequence[BaselineComparison]) -> Iterator[dict[str, Any]]:
    for comparison in comparisons:
        taken = [run.values_of(comparison.quantity) for run in runs]
        yield {
            "quantity": comparison.quantity.name,
            "unit": comparison.quantity.unit,
            "values": [value for one in taken for value in one.values],
        }


def read_baseline(path: str) -> Baseline:
    """Return the baseline at `path`. Raises `UsageError` if it is not a baseline, or has another version."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UsageError(f"is larger than {_MOST_BYTES} bytes")
        return _parsed(path, json.loads(text))
    except OSError as error:
        raise UsageError(
            f"`{path}`: {(error.strerror or str(error)).lower()}", hint="`--write-baseline` writes one"
        ) from error
    except (ValueError, RecursionError) as error:
        words = str(error) if isinstance(error, UsageError) else f"is not a baseline: {error}"
        raise UsageError(f"`{path}`: {words}", hint="`--write-baseline` writes one") from error


def _parsed(path: str, document: object) -> Baseline:
    import msgspec

    from tfrctrace.metrics.results.verdict import BaselineFile

    version = document.get("schema_version") if isinstance(document, dict) else SCHEMA_VERSION
    if version != SCHEMA_VERSION:
        raise UsageError(f"has format version {version}, and this program reads {SCHEMA_VERSION}")
    file = msgspec.convert(document, BaselineFile)
    values = {
        parse_comparison(row.quantity).quantity.name: tuple(map(finite_number, row.values))
        for row in file.quantities
    }
    return Baseline(path, file.measured_with, values)


def finite_number(value: object) -> float:
    """Return a value from a file as a number. Raises `UsageError` for what is none."""
    # NaN fails the comparison; squares of larger numbers overflow
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise UsageError(f"has the value `{str(value)[:40]}`, which is not a number of a run")
    return float(value)


def check_alike(baseline: Baseline, measured_with: Mapping[str, Any]) -> None:
    """Raise `UsageError` if a baseline was measured in another way: the numbers cannot be compared."""
    # what is not given may be missing, or empty in one of several ways
    before, now = (
        {name: json.dumps(value) for name, value in options.items() if value}
        for options in (baseline.measured_with, measured_with)
    )
    for name in (*now, *sorted(before.keys() - now.keys())):
        if before.get(name) != now.get(name):
            was, given = before.get(name, "null"), now.get(name, "null")
            raise UsageError(
                f"`{baseline.path}` was measured with {name} {was}, these runs with {given}",
                hint="give the same options, or write the baseline anew",
            )
