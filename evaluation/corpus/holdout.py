"""Judge how needless retransmissions are found, on connections that nothing was tuned on.

`python evaluation/corpus/holdout.py SEED` (root on Linux) draws twenty connections by the seed, plays them,
and prints what our program says of each retransmission at the sender. The same seed gives the same paths, not
the same packets, which depend on time, too. Captures are not kept: who changes a rule should draw others.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cases import NO_SACK, NO_TIMESTAMPS, SERVER_PORT, Case, bulk, harm
from corpus_case import CorpusCase, write_case
from frames import packets
from kernel import name_repetitions
from labels import labelled
from make import run
from programs import ask_tfrctrace
from truth import Namer, write_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 20
SEGMENTS = 400
KINDS = ("bulk", "bulk", "no SACK", "no timestamps")


def drawn(seed: int) -> Iterator[Case]:
    """Draw paths: 10 to 200 ms, 0.5 to 3 % lost, some overtaken, some doubled, some acknowledgements lost."""
    chance = random.Random(seed)
    for number in range(CONNECTIONS):
        rtt = 0.01 * 20 ** chance.random()
        loss = 0.005 + 0.025 * chance.random()
        late = rtt * (0.2 + 1.5 * chance.random())
        behind = 0.0003 * 15 ** chance.random()
        kind = KINDS[number % len(KINDS)]
        yield Case(
            f"holdout-{number}",
            f"{kind}; {rtt * 1e3:.0f} ms, {loss:.1%} lost, late by {late * 1e3:.0f} ms, "
            f"doubled {behind * 1e3:.1f} ms behind",
            bulk(SEGMENTS, chance.choice(("cubic", "reno", "bbr"))),
            harm=(
                harm("drop", share=loss),
                harm("hold", share=0.01, seconds=late),
                harm("copy", share=0.25, seconds=behind),
                harm("drop", share=0.05, way="back", only="ack"),
            ),
            sysctl={"no SACK": (NO_SACK,), "no timestamps": (NO_TIMESTAMPS,)}.get(kind, ()),
            rtt=rtt,
            seed=number + 1000 * seed,
        )


def play(case: Case, corpus: Path) -> CorpusCase:
    """Play a connection, and write it as a case."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        kernel_counters, traced = run(case, folder)
        sports = {header.sport for _, _, header in packets(folder / "snd.pcap")}
        namers: dict[int, Namer] = {
            sport: partial(name_repetitions, [event for event in traced if event.sport == sport])
            for sport in sorted(sports)
        }
        kernel_counters["lost"] = write_truth(folder, namers, SERVER_PORT, "network_duplicate")
        about = {"what": case.what, "server_port": SERVER_PORT, "counters": kernel_counters}
        write_case(case.name, folder, about, corpus)
    return CorpusCase(case.name, corpus)


def measured(case: Case) -> Counter[tuple[bool, bool, bool]]:
    """Play a connection; count retransmissions: needless, with a sign of that, and called spurious."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = play(case, folder)
        capture = made.unpack("snd", folder)
        answers = ask_tfrctrace(capture)
        counts: Counter[tuple[bool, bool, bool]] = Counter()
        for packet in labelled(made, "snd", capture):
            if packet.place == "sender" and packet.kind.endswith(("retransmission", "probe")):
                called = packet.number in answers and answers[packet.number].spurious
                counts[packet.spurious, packet.shows_spurious, called] += 1
    return counts


def main() -> None:
    """Print a row for each connection, and their sum."""
    total: Counter[tuple[bool, bool, bool]] = Counter()
    print("| connection | needed | of these called spurious | not needed | with a sign | found |")
    print("|---|--:|--:|--:|--:|--:|")
    for case in drawn(int(sys.argv[1])):
        counts = measured(case)
        total += counts
        print(row(case.what, counts), flush=True)
    print(row("all", total))


def row(name: str, counts: Counter[tuple[bool, bool, bool]]) -> str:
    """Return a row of the table."""

    def count(**wanted: bool) -> int:
        names = ("needless", "shown", "called")
        return sum(
            number
            for key, number in counts.items()
            if all(dict(zip(names, key, strict=True))[name] == value for name, value in wanted.items())
        )

    cells = (
        count(needless=False),
        count(needless=False, called=True),
        count(needless=True),
        count(shown=True),
        count(needless=True, called=True),
    )
    return f"| {name} | {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
