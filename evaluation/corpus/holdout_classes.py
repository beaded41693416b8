"""Judge the classes of retransmissions on connections that no rule was tuned on.

`python evaluation/corpus/holdout_classes.py ns3|linux SEED COUNT [FOLDER]` draws connections by the seed,
simulates or plays them (`linux` as root), and prints how many retransmissions at the sender get their true
class. FOLDER keeps them as cases; `--again FOLDER` classifies kept ones once more. A rule that was changed
after a draw needs another draw.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cases import NO_RACK, NO_SACK, NO_TIMESTAMPS, NO_TLP, Case, Rule, Steps, bulk, harm
from corpus_case import SUFFIX, CorpusCase
from holdout import play
from labels import ORDINARY, labelled
from ns3 import build, make_case
from programs import ask_tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NS3_CONTROLS = (
    "NewReno", "NewReno", "Cubic", "LinuxReno", "Westwood", "Veno", "Bbr", "HighSpeed", "Vegas",
)  # fmt: skip
UNLIMITED = 1 << 30
LINUX_KINDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "plain": ((), ()),
    "paced by the window": ((), (UNLIMITED,)),
    "paced at a rate": ((), (125_000, 400_000, 1_000_000)),
    "no SACK": ((NO_SACK,), ()),
    "no timestamps": ((NO_TIMESTAMPS,), ()),
    "no probes": ((NO_TLP,), ()),
    "no RACK": ((NO_RACK,), ()),
}
"""Settings of the kernel, and the rates for SO_MAX_PACING_RATE, in bytes per second."""


def drawn_ns3(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Draw arguments of the simulation; half of the senders are paced."""
    chance = random.Random(seed)
    for number in range(count):
        arguments = {
            "control": chance.choice(NS3_CONTROLS),
            "queue": chance.choice((4, 6, 10, 15, 30, 100)),
            "rate": chance.choice(("500kbps", "1Mbps", "2Mbps", "5Mbps", "20Mbps")),
            "delay": chance.choice(("2ms", "5ms", "15ms", "40ms", "100ms")),
            "bytes": chance.choice((100_000, 300_000, 600_000)),
            "loss": chance.choice((0, 0, 0.01, 0.03, 0.05, 0.1)),
            "ackLoss": chance.choice((0, 0, 0, 0, 0.05, 0.2)),
            "sack": int(chance.random() > 0.25),
            "timestamps": int(chance.random() > 0.2),
            "pacing": number % 2,
            "seed": 1000 * seed + number,
        }
        yield f"ns3-{seed}-{number}", " ".join(f"--{name}={value}" for name, value in arguments.items())


def drawn_linux(seed: int, count: int) -> Iterator[Case]:
    """Draw paths with random loss, slow links, outages, lost acknowledgements, and reordering."""
    chance = random.Random(seed)
    for number in range(count):
        kind = chance.choice(list(LINUX_KINDS))
        sysctl, rates = LINUX_KINDS[kind]
        pace: Steps = [["pace", chance.choice(rates)]] if rates else []
        control = chance.choice(("cubic", "reno", "bbr"))
        steps = bulk(chance.choice((150, 300, 500)), control, pace)
        loss = 0.005 + 0.06 * chance.random() ** 2
        name = f"linux-{seed}-{number}"
        if number % 3 == 0:
            rate = chance.choice(("2mbit", "5mbit", "20mbit"))
            limit = chance.choice(("10kb", "20kb", "60kb"))
            what = f"{kind}, {control}, {loss:.1%} lost in a router, {rate}, {limit}"
            routed = f"tbf rate {rate} burst 4kb limit {limit}"
            yield Case(name, what, steps, sysctl=sysctl, routed=routed, router_loss=loss)
            continue
        rtt = 0.01 * 20 ** chance.random()
        rate_bytes = chance.choice((0, 0, 100_000, 300_000, 1_000_000))
        rules = tuple(drawn_harm(chance, rtt, 0 if rate_bytes and number % 2 else loss))
        what = f"{kind}, {control}, {rtt * 1e3:.0f} ms, {rate_bytes} bytes/s, {rules}"
        yield Case(name, what, steps, harm=rules, sysctl=sysctl, rtt=rtt, rate=rate_bytes,
                   queue=chance.choice((5, 8, 15, 30)), seed=number + 1000 * seed)  # fmt: skip


def drawn_harm(chance: random.Random, rtt: float, loss: float) -> Iterator[Rule]:
    """Draw what the relay does to a connection."""
    if loss:
        yield harm("drop", share=loss)
    if chance.random() < 0.4:
        yield harm("drop", share=chance.choice((0.05, 0.2, 0.4)), way="back", only="ack")
    if chance.random() < 0.3:
        yield harm("hold", share=0.01, seconds=rtt * (0.2 + 1.5 * chance.random()))
    if chance.random() < 0.35:
        first = chance.randint(40, 140)
        yield harm("drop", (first, first + chance.choice((0, 0, 2, 8))), times=chance.choice((2, 3, 4)))


def make(source: str, seed: int, count: int, folder: Path) -> Iterator[CorpusCase]:
    """Make the connections that a seed draws."""
    drawn: list[tuple[str, str, Callable[[], object]]]
    with tempfile.TemporaryDirectory() as scratch:
        if source == "linux":
            drawn = [(case.name, case.what, partial(play, case, folder)) for case in drawn_linux(seed, count)]
        else:
            program = build(Path(scratch))
            drawn = [
                (name, arguments, partial(make_case, program, name, arguments, folder))
                for name, arguments in drawn_ns3(seed, count)
            ]
        for name, what, make_one in drawn:
            try:
                make_one()
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                print(f"left out: {name}, {what}: {error}", flush=True)
            else:
                yield CorpusCase(name, folder)


def classified(case: CorpusCase) -> Counter[tuple[str, str]]:
    """Count the packets at the sender that are retransmissions or are called so: true class, and ours."""
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        capture = case.unpack("snd", Path(scratch))
        answers = ask_tfrctrace(capture)
        for packet in labelled(case, "snd", capture):
            called = answers[packet.number].name if packet.number in answers else ORDINARY
            if packet.place != "sender" or packet.kind == called == ORDINARY:
                continue
            counts[packet.kind, called] += 1
            if packet.kind != called:
                where = f"{case.name} packet {packet.number}"
                print(f"{where}: {packet.kind}, called {called} ({case.about['what']})", flush=True)
    return counts


def main() -> None:
    """Print each wrong class, and the counts of all."""
    with tempfile.TemporaryDirectory() as scratch:
        if sys.argv[1] == "--again":
            paths = sorted(Path(sys.argv[2]).glob(f"*{SUFFIX}"))
            cases = iter([CorpusCase(path.name.removesuffix(SUFFIX), path.parent) for path in paths])
        else:
            source, seed, count, *kept = sys.argv[1:]
            folder = Path(kept[0] if kept else scratch)
            folder.mkdir(parents=True, exist_ok=True)
            cases = make(source, int(seed), int(count), folder)
        total = sum(map(classified, cases), Counter[tuple[str, str]]())
    for (kind, called), number in sorted(total.items()):
        print(f"{kind:24} {called:28} {number:6}")
    right = sum(number for (kind, called), number in total.items() if kind == called)
    everything = sum(number for (kind, _), number in total.items() if kind != ORDINARY)
    print(f"{right} of {everything} right ({right / max(everything, 1):.2%})")


if __name__ == "__main__":
    main()
