"""Simulate algorithms and background traffic at one bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.replay.closed_loop.queue import Queue
from tfrctrace.replay.closed_loop.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.replay.closed_loop.path import Path
    from tfrctrace.replay.closed_loop.sender import Round
    from tfrctrace.replay.controller import Controller

MAX_ROUNDS: Final = 500_000
"""Rounds of all senders, and changes of the background, after which a run ends early. Ten minutes with a base
round-trip time of 1.2 ms have as many."""


class Other(NamedTuple):
    """A flow beside the senders, which begins and ends at times of its own."""

    controller: Controller
    path: Path
    """With its base round-trip time."""
    begins_s: float
    ends_s: float


def simulate(
    path: Path,
    controllers: Sequence[Controller],
    *,
    segment_bytes: float,
    duration_s: float,
    others: Iterable[Other] = (),
) -> list[list[Round]]:
    """Return the rounds of each controller's sender, all of which begin at 0 s with an initial window.

    `segment_bytes` is the payload of a packet. The last round of each ends at `duration_s`, or where
    `MAX_ROUNDS` are over.
    """
    queue = Queue(path)
    waiting = sorted(others, key=lambda one: -one.begins_s)
    senders = [Sender(controller, path, segment_bytes) for controller in controllers]
    rounds: list[list[Round]] = [[] for _ in senders]
    ends = [duration_s] * len(senders)
    for _ in range(MAX_ROUNDS // max(len(senders) + len(waiting), 1)):
        begins_s = queue.time_s
        while waiting and waiting[-1].begins_s <= begins_s:
            other = waiting.pop()
            senders.append(Sender(other.controller, other.path, segment_bytes, begins_s=begins_s))
            rounds.append([])
            ends.append(other.ends_s)
        for sender, end_s in zip(senders, ends, strict=True):
            if end_s <= begins_s < duration_s:
                sender.stop()
        next_s = min(_next_s(senders, path, begins_s, duration_s), queue.next_s)
        ends_s = max(begins_s, min([next_s, *(one.begins_s for one in waiting[-1:])]))
        sent = sum(sender.rate for sender in senders)
        dropped = (
            queue.lose_all(ends_s, sent)
            if path.is_down(begins_s)
            else queue.advance(ends_s, sent, path.background.at(begins_s), segment_bytes=segment_bytes)
        )
        for sender, own_rounds in zip(senders, rounds, strict=True):
            sender.send(begins_s, ends_s, dropped)
            if sender.next_s <= ends_s or ends_s >= duration_s:
                own_rounds.append(sender.decide(ends_s, queue.queued_bytes))
        if ends_s >= duration_s:
            break
    return rounds[: len(controllers)]


def _next_s(senders: Sequence[Sender], path: Path, now_s: float, duration_s: float) -> float:
    """Return when something happens next: a decision, a change of background or path, or the end."""
    return min(duration_s, path.changes_after(now_s), *(sender.next_s for sender in senders))
