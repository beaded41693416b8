"""All days of one link: what became of its objectives, its incidents, and where they were."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.audit.link_scores import LinkScores
from tfrctrace.audit.pieces import (
    DAY_NS,
    HOUR_NS,
    BusyTimes,
    clock_steps_ns,
    date_of,
    extent_of,
    file_extents,
    flows_between,
    small_frame,
)
from tfrctrace.metrics.audit.attribution import attribution_of, explained, separated
from tfrctrace.metrics.audit.courses import courses
from tfrctrace.metrics.audit.flow_events import with_edges_of_flows, without_packets
from tfrctrace.metrics.audit.held_back import held_back_within
from tfrctrace.metrics.audit.incidents import (
    SILENT_INTERVALS,
    RaisedStretch,
    incidents_of,
    raised_stretches,
    silences,
)
from tfrctrace.metrics.audit.mixtures import hosts_beyond, is_mixture
from tfrctrace.metrics.audit.regroup import near_side
from tfrctrace.metrics.audit.silence_proofs import edges_ns, is_clock_step, silence_facts
from tfrctrace.metrics.audit.states import split_stretches
from tfrctrace.metrics.objectives import COUNTS, ObjectiveResult, ranked_groups, total_outcome
from tfrctrace.metrics.results.audit import AuditedLink, FoundIncident, Silence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.audit.audit_folder import AuditFolder
    from tfrctrace.audit.pieces import Piece
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.base.hours_of_use import HoursOfUse
    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.held_back import HeldBack
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.audit.states import State
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.profiles.score import Profile

Day = tuple[str, "Mapping[str, Any]"]
"""Key and facts of a day."""

MOST_INCIDENTS: Final = 500
"""Incidents of a link that are listed, the longest first."""

_MOST_REFINED: Final = 100
"""Incidents whose begin and end are looked for in flows."""

_MOST_STRETCHES: Final = 5_000
"""Stretches of an objective of which incidents are made, the worst first."""

_GROUPS_AT_ONCE: Final = 500
"""Groups whose intervals are in memory."""

_SHOWN_HOSTS: Final = 50
"""Hosts of a link whose round-trip times are listed."""

_WEEK_NS: Final = 7 * DAY_NS

_ENOUGH_DAYS: Final = 4
"""Earlier days with which the same hours are enough to compare with."""


@dataclass(frozen=True, slots=True)
class LinkDays:
    """A link, and the tables of its days."""

    name: str
    pieces: tuple[Piece, ...]
    grouping: Grouping
    objectives: tuple[Objective, ...]
    folder: AuditFolder
    days: tuple[Day, ...]
    neighbours: tuple[BusyTimes, ...] = ()
    """Of other links of the same capture point."""
    hours: HoursOfUse | None = None
    """When somebody uses it, if that is declared."""

    def audited(self, first_number: int) -> AuditedLink:
        """Return what was found; incidents are numbered from `first_number`."""
        import polars as pl

        extent = extent_of(self.pieces)
        verdicts = self._scan("verdicts").collect()
        judged = [self._judged(place, verdicts) for place in range(len(self.objectives))]
        hours = self._scan("hours")
        host_hours = small_frame(hours, pl.col("by") == "host").drop("by")
        mean_ms = pl.col("rtt_sum_ns") / pl.col("rtt_samples") / 1e6
        near = near_side(host_hours.with_columns(rtt_p50_ms=mean_ms))
        silent = self._silences()
        changes, others, states = self._changes(judged)
        mixed = [one for one in changes if self._is_mixture(one, judged[one.objective][0], states, near)]
        others += mixed
        found = [*incidents_of(self.name, [one for one in changes if one not in mixed]), *silent]
        unexplained = {(one.objective, one.group) for one in others if not any(map(one.is_within, found))}
        incidents = self._incidents(first_number, found, near, [result for result, _ in judged])
        shown = self._shown_hosts(host_hours, verdicts, incidents)
        buckets = self._scan("hour_buckets")
        return AuditedLink(
            name=self.name,
            first_ns=extent.first_ns,
            last_ns=extent.last_ns,
            results=tuple(result for result, _ in judged),
            verdicts=verdicts,
            incidents=incidents,
            states=tuple(state for state in states if (state.objective, state.group) in unexplained),
            near=None if near is None else tuple(near),
            hours=hours.filter(by="link").drop("by").collect(),
            buckets=buckets.filter(by="link").drop("by").collect(),
            host_hours=host_hours,
            host_buckets=buckets.filter(
                pl.col("by") == "host", pl.col("measure") == "rtt", pl.col("group").is_in(shown)
            )
            .drop("by")
            .collect(),
            silent=tuple(
                Silence(gap.begin_ns, gap.end_ns, gap.silence.kind, gap.silence.proofs)
                for gap in silent
                if gap.silence is not None
            ),
        )

    def scored(self, link: AuditedLink, profiles: Sequence[Profile]) -> AuditedLink:
        """Return the link with its scores."""
        if not profiles:
            return link
        grouping = self.grouping
        scoring = LinkScores(link, self._scan("evidence"), self.pieces, grouping.by, grouping.every_ns or 1)
        return scoring.scored(profiles)

    def _silences(self) -> list[Incident]:
        """Return the times without packets, with what they were."""
        every_ns = self.grouping.every_ns or 1
        files, steps_ns = file_extents(self.pieces), clock_steps_ns(self.pieces)
        found: list[Incident] = []
        for gap in silences(self.name, BusyTimes(self.pieces).starts_ns, every_ns, self.hours):
            if is_clock_step(gap.begin_ns, gap.end_ns, every_ns, steps_ns):
                continue
            others = [one.has_between(gap.begin_ns, gap.end_ns) for one in self.neighbours]
            facts = silence_facts(gap.begin_ns, gap.end_ns, files, others)
            edges = edges_ns(gap.begin_ns, gap.end_ns, every_ns, files)
            pieces = self.pieces if len(found) < _MOST_REFINED else ()
            exact = without_packets(gap, edges, flows_between(pieces, gap.surroundings_ns))
            found.append(replace(exact, silence=facts))
        return found

    def _scan(self, table: str) -> pl.LazyFrame:
        return self.folder.scan(table, self.days)

    def _judged(self, place: int, verdicts: pl.DataFrame) -> tuple[ObjectiveResult, pl.DataFrame]:
        """Return what became of an objective, and its stretches with `STRETCH_COLUMNS`.

        Only the intervals of groups that violated it are read.
        """
        import polars as pl

        objective, extent = self.objectives[place], extent_of(self.pieces)
        every_ns = objective.grouping.every_ns or 1
        begin_ns = extent.first_ns // every_ns * every_ns
        end_ns = (extent.last_ns // every_ns + 1) * every_ns
        counts = verdicts.filter(objective=place).group_by("group").agg(pl.col(*COUNTS).sum())
        groups = ranked_groups(counts, (end_ns - begin_ns) // every_ns)
        intervals = self._near_violations(place, verdicts)
        raised = raised_stretches(objective, intervals, place, extent.last_ns)
        stretches = raised.drop("objective", "first_end_ns", "last_begin_ns", "ended")
        result = ObjectiveResult(
            objective=objective,
            begin_ns=begin_ns,
            end_ns=end_ns,
            intervals=intervals.filter(pl.col("verdict").is_in(["violated", "severe"])),
            groups=groups,
            stretches=stretches,
            total=total_outcome(groups, stretches),
        )
        return result, raised

    def _near_violations(self, place: int, verdicts: pl.DataFrame) -> pl.DataFrame:
        """Return the intervals of each group around the hours in which it violated an objective.

        What is farther from a violated interval neither raises nor clears a stretch.
        """
        import polars as pl

        objective = self.objectives[place]
        reach = max(SILENT_INTERVALS, objective.clear_after) * objective.clear_after + 1
        hours = reach * (objective.grouping.every_ns or 1) // HOUR_NS + 1
        bad = verdicts.filter(pl.col("objective") == place, pl.col("violated") + pl.col("severe") > 0).select(
            "group", "start_ns"
        )
        own = self._scan("intervals").filter(objective=place).drop("objective")
        if bad.is_empty():
            return own.head(0).collect()
        steps = pl.DataFrame({"step": range(-hours, hours + 1)}, schema={"step": pl.Int64})
        wanted = (
            bad.join(steps, how="cross")
            .select("group", hour=pl.col("start_ns") // HOUR_NS + pl.col("step"))
            .unique()
        )
        numbers = wanted["hour"].sort().to_list() or [0]
        start = pl.col("start_ns")
        # the first and the last hour of 64-bit times pass their ends
        first_ns, last_ns = max(numbers[0] * HOUR_NS, -(2**63)), min((numbers[-1] + 1) * HOUR_NS, 2**63) - 1
        return (
            own.filter(start.is_between(first_ns, last_ns))
            .with_columns(hour=start // HOUR_NS)
            .join(wanted.lazy(), on=["group", "hour"], how="semi", nulls_equal=True)
            .drop("hour")
            .collect()
        )

    def _changes(
        self, judged: Sequence[tuple[ObjectiveResult, pl.DataFrame]]
    ) -> tuple[list[RaisedStretch], list[RaisedStretch], list[State]]:
        """Return the stretches that are changes, the others, and the states of the groups of those."""
        import polars as pl

        changes: list[RaisedStretch] = []
        others: list[RaisedStretch] = []
        states: list[State] = []
        for place, (result, frame) in enumerate(judged):
            worst = frame.head(_MOST_STRETCHES)
            groups = worst["group"].unique(maintain_order=True)
            for start in range(0, len(groups), _GROUPS_AT_ONCE):
                is_own = pl.col("group").is_in(
                    groups[start : start + _GROUPS_AT_ONCE].implode(), nulls_equal=True
                )
                intervals = self._scan("intervals").filter(pl.col("objective") == place, is_own).collect()
                own = worst.filter(is_own)
                is_change, found = split_stretches(result.objective, place, own, intervals, result.captured)
                changes += (RaisedStretch(*row) for row in own.filter(is_change).iter_rows())
                others += (RaisedStretch(*row) for row in own.filter(~is_change).iter_rows())
                states += found
        return changes, others, states

    def _is_mixture(
        self,
        stretch: RaisedStretch,
        result: ObjectiveResult,
        states: Sequence[State],
        near: Sequence[str] | None,
    ) -> bool:
        """Return whether the link only had more samples than usual of hosts that are always far."""
        import polars as pl

        beyond = hosts_beyond(result.objective, states, self.objectives)
        if not beyond:
            return False
        start, every_ns = pl.col("start_ns"), self.grouping.every_ns or 1
        first_ns = stretch.begin_ns // every_ns * every_ns
        violated = result.intervals.filter(start >= stretch.begin_ns, start < stretch.end_ns)
        days = self._evidence_of_days(first_ns, stretch.end_ns)
        evidence = small_frame(days, (start >= first_ns) & (start < stretch.end_ns))
        # where no side is known, all that a link carries is `fwd`
        is_near = pl.col("group").is_in(list(near or ()))
        receivers = {"fwd": evidence.filter(~is_near), "rev": evidence.filter(is_near)}
        directions = violated["direction"].drop_nulls().unique().to_list()
        return bool(directions) and all(
            is_mixture(result.objective, receivers[direction], beyond) for direction in directions
        )

    def _evidence_of_days(self, begin_ns: int, end_ns: int) -> pl.LazyFrame:
        first, last = (date_of(time_ns // DAY_NS) for time_ns in (begin_ns, end_ns))
        days = [(key, facts) for key, facts in self.days if first <= facts["date"] <= last]
        return self.folder.scan("evidence", days)

    def _incidents(
        self,
        first_number: int,
        found: Sequence[Incident],
        near: Sequence[str] | None,
        results: Sequence[ObjectiveResult],
    ) -> tuple[FoundIncident, ...]:
        """Return the incidents by their begin, with where they were, and what held flows back."""
        bad_ns = [(one.begin_ns, one.end_ns) for one in found]
        longest = sorted(found, key=lambda one: (-one.lasted_ns, one.begin_ns))[:MOST_INCIDENTS]
        is_collected = any(one.has_causes for one in self.pieces)
        placed: list[tuple[Incident, Attribution]] = []
        for one in longest:
            where_of = partial(
                attribution_of,
                objectives=self.objectives,
                evidence=self._around(one),
                near=near,
                bad_ns=bad_ns,
            )
            placed += separated(one, self.objectives, where_of)
        parts: list[tuple[Incident, Attribution, HeldBack]] = []
        for whole, where in explained(placed, self.objectives):
            part = whole
            if len(parts) < _MOST_REFINED and not whole.is_silence:
                flows = flows_between(self.pieces, whole.surroundings_ns)
                part = with_edges_of_flows(whole, where, self.objectives, flows, near)
            evidence = self._around(part) if is_collected else None
            parts.append((part, where, held_back_within(part, evidence, where.hosts)))
        parts.sort(key=lambda one: (one[0].begin_ns, one[0].end_ns, not one[0].is_silence))
        extent = extent_of(self.pieces)
        went = courses([part for part, _, _ in parts], results)
        return tuple(
            FoundIncident(
                number,
                part.captured(extent.first_ns, extent.last_ns),
                course,
                self._with_drops(where, files),
                held,
                files,
            )
            for number, ((part, where, held), course, files) in enumerate(
                zip(parts, went, (self._files_of(part) for part, _, _ in parts), strict=True), first_number
            )
        )

    def _with_drops(self, where: Attribution, files: Sequence[str]) -> Attribution:
        """Return where an incident was, with what the capture says that it dropped if it missed data."""
        if where.place != "capture" or where.reason.kind == "silence":
            return where
        counts = [
            interface["dropped_packets"]
            for piece in self.pieces
            for source in piece.sources
            if source["source"] in files
            for interface in source["interfaces"]
        ]
        known = [count for count in counts if count is not None]
        return replace(where, reason=replace(where.reason, dropped=sum(known) if known else None))

    def _around(self, incident: Incident) -> pl.DataFrame:
        """Return the evidence of an incident: of the day before and after it, and of its hours for a week."""
        import polars as pl

        begin_ns, end_ns = incident.begin_ns - _WEEK_NS, incident.end_ns + DAY_NS
        start = pl.col("start_ns")
        is_near = start >= incident.begin_ns - DAY_NS
        if extent_of(self.pieces).first_ns < incident.begin_ns - _ENOUGH_DAYS * DAY_NS:
            # there is a baseline of the same hours
            is_near = start.is_between(incident.begin_ns - HOUR_NS, incident.end_ns + HOUR_NS)
        is_same_hour = (start - incident.begin_ns + HOUR_NS) % DAY_NS < incident.lasted_ns + 2 * HOUR_NS
        is_wanted = (start >= begin_ns) & (start < end_ns) & (is_near | is_same_hour)
        return small_frame(self._evidence_of_days(begin_ns, end_ns), is_wanted)

    def _files_of(self, incident: Incident) -> tuple[str, ...]:
        """Return the files that have packets of an incident; of sources without times all of their piece."""
        found: list[str] = []
        for piece in self.pieces:
            named = {
                source["source"]
                for source in piece.sources
                if source["start_ns"] is not None
                and source["start_ns"] < incident.end_ns
                and source["end_ns"] >= incident.begin_ns
            }
            if named:
                found += [name for name in piece.files if name in named] or piece.files
        return tuple(found)

    def _shown_hosts(
        self, hours: pl.DataFrame, verdicts: pl.DataFrame, incidents: Sequence[FoundIncident]
    ) -> list[str]:
        """Return the hosts that are listed: of places, then those that violated most, or have most data."""
        import polars as pl

        numbers = [place for place, one in enumerate(self.objectives) if one.grouping.by == self.grouping.by]
        violated = (
            verdicts.filter(pl.col("objective").is_in(numbers))
            .group_by("group")
            .agg(violated=(pl.col("violated") + pl.col("severe")).sum())
        )
        ordered = (
            hours.drop_nulls("group")
            .group_by("group")
            .agg(pl.col("wire_bytes").sum())
            .join(violated, on="group", how="left")
            .sort(pl.col("violated").fill_null(0), "wire_bytes", "group", descending=[True, True, False])
        )
        named = [host for incident in incidents for host in incident.where.hosts]
        return list(dict.fromkeys([*named, *ordered["group"].head(_SHOWN_HOSTS)]))[:_SHOWN_HOSTS]
