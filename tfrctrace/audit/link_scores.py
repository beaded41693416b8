"""Scores of a link by profiles, of what the audit and the batch kept of it.

A capture sees a path in two halves, and each is scored for itself: the client side between the capture and
the hosts that open connections, the server side between it and those that accept them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.audit.pieces import HOUR_NS, STREAM_COLUMNS
from tfrctrace.base.grouping import Grouping
from tfrctrace.metrics.audit.regroup import SIDES, interval_start
from tfrctrace.metrics.groups import Groups, percentile
from tfrctrace.metrics.loaded_delay import (
    LEAST_SAMPLES,
    LOADING_SUMS,
    MEASURES,
    delays_by_load,
    link_load,
)
from tfrctrace.metrics.profiles.delay_grades import DelayGrades
from tfrctrace.metrics.profiles.outcome import Conditions, Requirement, quality_of_outcome
from tfrctrace.metrics.profiles.stream_opinion import StreamFacts, stream_opinion
from tfrctrace.metrics.profiles.voice import Voice
from tfrctrace.metrics.results.audit import Score
from tfrctrace.metrics.sets.up_down import BELIEVED
from tfrctrace.reports.units import counted, enumerated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.audit.pieces import Piece
    from tfrctrace.metrics.profiles.score import Profile
    from tfrctrace.metrics.results.audit import AuditedLink


_NO_SIDES: Final = {"fwd": "both sides", "rev": "both sides"}
_OTHER: Final = {"fwd": "rev", "rev": "fwd"}
_OTHER_END: Final = {"sender": "receiver", "receiver": "sender"}
_KEY: Final = ["group", "segment"]


@dataclass(frozen=True, slots=True)
class LinkScores:
    """A link that was audited, its evidence, and what the batch read of it."""

    link: AuditedLink
    evidence: pl.LazyFrame
    pieces: tuple[Piece, ...]
    by: str
    every_ns: int

    def scored(self, profiles: Sequence[Profile]) -> AuditedLink:
        """Return the link with its scores."""
        scores: list[Score] = []
        hours: list[Score] = []
        for profile in profiles:
            match profile.rules:
                case Requirement() as needed:
                    scores += self._outcomes(profile.name, needed, _KEY)
                    hours += self._outcomes(profile.name, needed, [*_KEY, "start_ns"])
                case DelayGrades() as grades:
                    scores += self._delays(profile.name, grades)
                case Voice() as voice:
                    scores += sorted(self._streams(profile.name, voice), key=_worst_first)
        return replace(self.link, scores=tuple(scores), hour_scores=tuple(hours))

    def _outcomes(self, name: str, needed: Requirement, key: list[str]) -> Iterator[Score]:
        """Give the quality of outcome of both halves and of hosts, or of each hour of the halves."""
        import polars as pl

        samples, losses = (
            one.with_columns(start_ns=interval_start(HOUR_NS)) for one in (self._samples(), self._losses())
        )
        if "start_ns" in key:
            samples = samples.filter(pl.col("segment") != self.by)
        rows = samples.group_by(key).agg(
            first_ns=pl.col("start_ns").min(), last_ns=pl.col("start_ns").max() + HOUR_NS
        )
        for one in needed.delays:
            found = percentile(samples, key, one.percentile / 100).rename({"value": f"p{one.percentile:g}"})
            rows = rows.join(found.drop("n") if "n" in rows.columns else found, on=key, nulls_equal=True)
        lost = losses.group_by(key).agg(pl.col("lost", "shown").sum())
        rows = rows.join(lost, on=key, how="left", nulls_equal=True).sort(pl.col("segment") == self.by, *key)
        rates = self._largest_rates()
        for row in rows.iter_rows(named=True):
            yield self._outcome(name, needed, row, rates.get(row["group"]))

    def _outcome(
        self, name: str, needed: Requirement, row: Mapping[str, Any], largest_bps: float | None
    ) -> Score:
        delays = {delay.percentile: row[f"p{delay.percentile:g}"] for delay in needed.delays}
        loss = row["lost"] / row["shown"] if row["shown"] else None
        found = quality_of_outcome(needed, Conditions(delays, row["n"], loss, largest_bps))
        reason = ""
        if found.score is None:
            reason = f"{counted(row['n'], 'sample')} of the delay, and {needed.least} are needed"
        elif found.unknown:
            reason = f"{enumerated(list(found.unknown))} not known"
        return Score(
            profile=name,
            group=row["group"] or "",
            segment=row["segment"],
            value=found.score,
            unit="%",
            grade="",
            is_at_most=bool(found.unknown) and found.score is not None and found.score > 0,
            reason=reason,
            n=row["n"],
            first_ns=max(row["first_ns"], self.link.first_ns),
            last_ns=min(row["last_ns"], self.link.last_ns),
            inputs={
                **{f"p{percent:g}_ms": value for percent, value in delays.items()},
                "loss": loss,
                "loss_segments": row["shown"],
                "largest_bps": largest_bps,
            },
        )

    @property
    def _sides(self) -> Mapping[str, str]:
        return _NO_SIDES if self.link.near is None else SIDES

    def _samples(self) -> pl.DataFrame:
        """Return buckets of round-trip times of halves and hosts, by the hour."""
        import polars as pl

        columns = ("start_ns", "from_ns", "to_ns", "samples")
        halves = self.link.buckets.filter(measure="rtt").select(
            pl.lit(self.link.name).alias("group"), _segment(self._sides), *columns
        )
        hosts = self.link.host_buckets.filter(direction="received").select(
            "group", pl.lit(self.by).alias("segment"), *columns
        )
        return pl.concat([halves, hosts])

    def _losses(self) -> pl.DataFrame:
        """Return lost segments and those of which losses show, of the same groups."""
        import polars as pl

        behind = {"lost": "lost_behind_capture", "shown": "losses_shown"}
        before = {"lost": "lost_before_capture", "shown": "arrivals_shown"}
        crossed = {way: self._sides[other] for way, other in _OTHER.items()}
        own = pl.lit(self.by).alias("segment")
        link, hosts = pl.lit(self.link.name).alias("group"), pl.col("group")
        received, sent = (self.link.host_hours.filter(direction=way) for way in ("received", "sent"))
        parts = (
            (self.link.hours, link, _segment(self._sides), behind),
            (self.link.hours, link, _segment(crossed), before),
            (received, hosts, own, behind),
            (sent, hosts, own, before),
        )
        return pl.concat(
            frame.select(
                group, segment, "start_ns", **{name: pl.col(source) for name, source in counts.items()}
            )
            for frame, group, segment, counts in parts
        )

    def _largest_rates(self) -> dict[str | None, float]:
        """Return the largest rate of payload in one direction, of all intervals, by host and of the link."""
        import polars as pl

        rate = pl.col("payload_bytes") * 8e9 / self.every_ns
        hosts = self.evidence.group_by("group").agg(rate.max().alias("rate")).collect()
        rates: dict[str | None, float] = dict(hosts.drop_nulls("rate").iter_rows())
        sent = self.evidence.filter(direction="sent").group_by("start_ns", _way(self.link.near))
        link = sent.agg(rate.sum().alias("rate")).select(pl.col("rate").max()).collect().item()
        if link is not None:
            rates[self.link.name] = link
        return rates

    def _delays(self, name: str, grades: DelayGrades) -> Iterator[Score]:
        """Give the grades of both halves of the path."""
        import polars as pl

        way = _way(self.link.near)
        sums = ("wire_bytes", *LOADING_SUMS)
        rows = (
            self.evidence.filter(direction="sent")
            .group_by("start_ns", direction=way)
            .agg(pl.col(*sums).sum())
            .collect()
        )
        load = link_load(Groups(Grouping("link", every_ns=self.every_ns), rows, pl.DataFrame()))
        buckets = (
            pl.scan_parquet([piece.tables["group_buckets"] for piece in self.pieces if piece.tables])
            .filter(pl.col("measure") == MEASURES[0], pl.col("direction") == "sent")
            .join(load.loads.drop_nulls("load").lazy(), on="start_ns")
            .group_by(direction=way, measure="measure", load="load", from_ns="from_ns", to_ns="to_ns")
            .agg(pl.col("samples").sum())
            .with_columns(group=pl.lit(self.link.name))
            .collect()
        )
        for one in sorted(delays_by_load(buckets), key=lambda one: self._sides[one.direction]):
            few = [
                f"{counted(samples, 'sample')} while the link was {state}"
                for state, samples in (("idle", one.idle_samples), ("loaded", one.loaded_samples))
                if samples < LEAST_SAMPLES
            ]
            yield Score(
                profile=name,
                group=self.link.name,
                segment=self._sides[one.direction],
                value=one.increase_ms,
                unit="ms",
                grade="" if one.increase_ms is None else grades.grade(one.increase_ms),
                is_at_most=False,
                reason=f"{enumerated(few)}, and {LEAST_SAMPLES} are needed" if few else "",
                n=one.loaded_samples,
                first_ns=self.link.first_ns,
                last_ns=self.link.last_ns,
                inputs={
                    "idle_p50_ms": one.idle_p50_ms,
                    "idle_samples": one.idle_samples,
                    "loaded_p50_ms": one.loaded_p50_ms,
                    "idle_s": load.idle_s,
                    "loaded_s": load.loaded_s,
                },
            )

    def _streams(self, name: str, voice: Voice) -> Iterator[Score]:
        """Give the scores of the RTP streams of all pieces."""
        import polars as pl

        for piece in self.pieces:
            if "rtp_sources" not in piece.tables:
                continue
            is_doubtful = pl.col("vantage_confidence") < BELIEVED
            flows = (
                pl.read_parquet(piece.tables["flows"], columns=list(STREAM_COLUMNS))
                .rename({"payload_bytes": "payload"})
                .with_columns(vantage=pl.when(~is_doubtful).then("vantage"))
            )
            back = flows.select(
                "flow",
                pl.col("direction").replace_strict(_OTHER),
                back_rtt_ms="rtt_mean_ms",
                back_payload="payload",
            )
            key = ["flow", "direction"]
            sources = (
                pl.read_parquet(piece.tables["rtp_sources"])
                .join(flows, on=key)
                .join(back, on=key, how="left")
            )
            if piece.vantage is not None:
                has_more = pl.col("payload") >= pl.col("back_payload").fill_null(0)
                there = pl.lit(_OTHER_END.get(piece.vantage, piece.vantage))
                given = pl.when(has_more).then(pl.lit(piece.vantage)).otherwise(there)
                sources = sources.with_columns(vantage=given)
            for row in sources.iter_rows(named=True):
                yield stream_opinion(name, voice, StreamFacts.of_row(row))


def _way(near: Sequence[str] | None) -> pl.Expr:
    """Return the direction of what a host sent."""
    import polars as pl

    if near is None:
        return pl.lit("fwd").alias("direction")
    is_near = pl.col("group").is_in(list(near)).fill_null(value=False)
    return pl.when(is_near).then(pl.lit("fwd")).otherwise(pl.lit("rev")).alias("direction")


def _segment(sides: Mapping[str, str]) -> pl.Expr:
    import polars as pl

    return pl.col("direction").replace_strict(sides, return_dtype=pl.String).alias("segment")


def _worst_first(one: Score) -> tuple[bool, float, str, int]:
    return one.value is None, one.value or 0.0, one.group, one.first_ns
