"""Read the time of incidents under load again, to tell who filled the queue."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tfrctrace.audit.incident_pages import times_of_utc
from tfrctrace.base.errors import InputError
from tfrctrace.metrics.audit.attribution import LOADED_NS
from tfrctrace.metrics.audit.queue_fillers import (
    OF_ENDS,
    FilledQueue,
    loaded_bytes,
    queue_fillers,
    with_control,
)
from tfrctrace.reports.output import open_output
from tfrctrace.runs.cache import program_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from tfrctrace.api import Trace
    from tfrctrace.metrics.results.audit import Audit, AuditedLink, FoundIncident

    _Sources = Mapping[str, Mapping[str, Any]]
    """Facts of captures by name."""
    Opening = Callable[[list[str], str, str], Trace]

MOST_READ: Final = 10
"""Incidents of which captures are read again, the longest first."""

_FILE: Final = "fillers.json"

BIN_NS: Final = 10**8
"""Width of the bins by which the bytes of an incident are counted."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an earlier audit read of an incident."""

    made_by: str
    """Digest of the program, and of how it read."""
    queue: FilledQueue


@dataclass(frozen=True, slots=True)
class _Captures:
    """Where captures are, and how they are read again."""

    sources: _Sources
    paths: Mapping[str, str]
    every_ns: int
    trace_of: Opening

    def filled(self, link: AuditedLink, one: FoundIncident) -> FilledQueue:
        """Read who filled the queue."""
        begin_ns = one.incident.begin_ns
        end_ns = min(one.incident.end_ns, begin_ns + LOADED_NS)
        names = [name for name in one.files if (self.sources.get(name, {}).get("start_ns") or 0) < end_ns]
        if not names or any(name not in self.paths for name in names):
            return FilledQueue(lacking="captures gone")
        try:
            # the interval before has the handshakes of flows that caused it
            trace = self.trace_of(
                [self.paths[name] for name in names], *times_of_utc(begin_ns - self.every_ns, end_ns)
            )
            sent = _sent(trace, begin_ns, end_ns)
        except InputError:
            return FilledQueue(lacking="not readable")
        fillers = queue_fillers(loaded_bytes(sent, link.near, one.where.hosts, one.where.loaded))
        if not fillers:
            return FilledQueue(lacking="no bytes")
        flows = {filler.flow[0] for filler in fillers if filler.flow}
        rows = trace.controls_of(flows).iter_rows(named=True) if flows else ()
        controls = {(row["flow"], row["direction"]): row for row in rows}
        return FilledQueue(
            tuple(with_control(one, controls.get(one.flow) if one.flow else None) for one in fillers)
        )


def with_fillers(
    found: Audit, folder: str, paths: Mapping[str, str], *, options: str, trace_of: Opening
) -> Audit:
    """Return an audit with who filled the queue in incidents under load, of the first hour of each.

    What was read is kept in `folder`. `paths` are those of captures by the names that results have,
    `trace_of` opens captures between two times of UTC, with `options`. Nothing is read
    where no incident is under load.
    """
    loaded = [one for link in found.links for one in link.incidents if one.where.under_load]
    loaded.sort(key=lambda one: (-one.incident.lasted_ns, one.number))
    chosen = {one.number for one in loaded[:MOST_READ]}
    sources = {source["source"]: source for read in found.evidence for source in read.sources}
    captures = _Captures(sources, paths, found.every_ns, trace_of)
    path = Path(folder, _FILE)
    before, made_by = _load(path), _digest(program_digest() + options) if loaded else ""
    kept = dict[str, _Kept]()

    def filled(link: AuditedLink, one: FoundIncident) -> FilledQueue | None:
        if not one.where.under_load:
            return None
        if found.by != "host":
            return FilledQueue(lacking="not hosts")
        if one.number not in chosen:
            return FilledQueue(lacking="left out")
        key = _key(link, one, sources)
        known, is_there = before.get(key), all(name in paths for name in one.files)
        if known is None or (known.made_by != made_by and is_there):
            queue = captures.filled(link, one)
            if not queue.fillers:
                return queue
            known = _Kept(made_by, queue)
        kept[key] = known
        return known.queue

    links = tuple(
        replace(link, incidents=tuple(replace(one, queue=filled(link, one)) for one in link.incidents))
        for link in found.links
    )
    if kept:
        with open_output(str(path)) as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept, order="sorted"), indent=1) + b"\n")
    else:
        path.unlink(missing_ok=True)
    return replace(found, links=links)


def _load(path: Path) -> dict[str, _Kept]:
    with contextlib.suppress(OSError, msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Kept])
    return {}


def _key(link: AuditedLink, one: FoundIncident, sources: _Sources) -> str:
    """Return what differs if other packets would be read, or other bytes counted."""
    files = [sources.get(name) for name in one.files]
    times_ns = (one.incident.begin_ns, one.incident.end_ns)
    facts = (link.name, times_ns, link.near, one.where.hosts, one.where.loaded, one.files, files)
    return _digest(json.dumps(facts, sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _sent(trace: Trace, begin_ns: int, end_ns: int) -> pl.DataFrame:
    """Return what each direction sent between two times: `OF_ENDS` and `wire_bytes`."""
    import polars as pl

    trace.read("flows", "bins")
    key = ["flow", "direction"]
    is_within = (pl.col("time_ns") + pl.col("width_ns") > begin_ns) & (pl.col("time_ns") < end_ns)
    sums = [
        bins.filter(is_within).group_by(key).agg(pl.col("wire_bytes").sum())
        for bins in trace.table("bins").frames([*key, "time_ns", "width_ns", "wire_bytes"])
    ]
    total = pl.concat(sums).group_by(key).agg(pl.col("wire_bytes").sum())
    ends = trace.table("flows").frame(OF_ENDS).drop_nulls(["src", "dst"])
    return ends.join(total, on=key).sort(key)
