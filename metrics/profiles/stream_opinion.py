"""The opinion score of an RTP stream, where codec and vantage allow one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrctrace.metrics.profiles.voice import opinion, rating
from tfrctrace.metrics.results.audit import Score

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.metrics.profiles.voice import Voice


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What a capture shows of a source of RTP."""

    name: str
    payload_type: int
    vantage: str | None
    sent: int
    lost: int
    """Before the capture."""
    reported_lost: int | None
    """Of all, by the last report of its receiver; None without one."""
    ahead_ms: float | None
    """Round-trip time between the capture and the receiver, and between the capture and the sender."""
    behind_ms: float | None
    jitter_ms: float | None
    first_ns: int
    last_ns: int

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> StreamFacts:
        """Return the facts of a row of `rtp_sources` with those of its flow."""
        return cls(
            name=f"{row['src']} → {row['dst']} {row['ssrc']:08x}",
            payload_type=row["payload_type"],
            vantage=row["vantage"],
            sent=row["sent_packets"],
            lost=row["lost_packets"],
            reported_lost=row["reported_lost_packets"],
            ahead_ms=row["rtt_mean_ms"],
            behind_ms=row["back_rtt_ms"],
            jitter_ms=row["jitter_ms"],
            first_ns=row["start_ns"],
            last_ns=row["end_ns"],
        )

    @property
    def loss(self) -> float | None:
        """Share that the receiver did not get; None where losses beyond the capture are not known."""
        if not self.sent:
            return None
        lost = [count for count in (self.reported_lost,) if count is not None]
        if self.vantage == "receiver":
            lost.append(self.lost)
        # reports leave out what was lost after the last one, and count duplicates as arrived
        return min(max([*lost, self.lost]) / self.sent, 1.0) if lost else None

    @property
    def rtt_ms(self) -> float | None:
        """Round-trip time of the whole path, of both halves, or of a capture at one of its ends."""
        if self.ahead_ms is not None and self.behind_ms is not None:
            return self.ahead_ms + self.behind_ms
        if self.vantage == "sender":
            return self.ahead_ms
        return self.behind_ms if self.vantage == "receiver" else None


def stream_opinion(profile: str, voice: Voice, stream: StreamFacts) -> Score:
    """Return the score of a whole stream, or why there is none."""
    codec = voice.codec(stream.payload_type)
    loss, rtt_ms = stream.loss, stream.rtt_ms
    reason, value, found = "", None, None
    if codec is None:
        reason = f"payload type {stream.payload_type} is none of the codecs of the profile"
    elif loss is None:
        reason = (
            "losses beyond the capture are not known: no report of the receiver, and no `--vantage receiver`"
        )
    elif rtt_ms is None:
        reason = "the delay is not known: reports of one end only, and no `--vantage` that says at which"
    else:
        found = rating(codec, rtt_ms / 2 + voice.buffer_ms + codec.delay_ms, loss)
        value = opinion(found)
    return Score(
        profile=profile,
        group=stream.name,
        segment="stream",
        value=value,
        unit="MOS",
        grade="" if found is None else voice.band(found),
        is_at_most=False,
        reason=reason,
        n=stream.sent,
        first_ns=stream.first_ns,
        last_ns=stream.last_ns,
        inputs={
            "rating": found,
            "loss": loss,
            "rtt_ms": rtt_ms,
            "jitter_ms": stream.jitter_ms,
            "payload_type": float(stream.payload_type),
        },
    )
