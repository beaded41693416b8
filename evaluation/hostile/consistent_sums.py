"""The same trace through several commands: bounds of every value, and totals that must agree."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from case import Case, Edit
from edits import changed, drawn_bytes, drawn_place
from program import DONE, lay
from traces import content, drawn_trace, plain_name

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from program import Program

SHARES: Final = re.compile(r"_share$|_ratio$|^pdr$|^plr$|^reported_plr$|^jain|^drop_ratio$")
NO_SHARES: Final = frozenset(
    {"delayed_ack_ratio", "inter_protocol_ratio", "upload_download_ratio", "promised_share", "worst_ratio"}
)
"""Quotients of things of which neither is a part of the other."""
COUNTS: Final = re.compile(r"_(packets|bytes|samples|segments|share|ratio|bps|queries|frames)$|^packets$")
SIGNED: Final = frozenset({"reported_lost_packets"})
"""Less what came twice (RFC 3550, A.3)."""

PARTS: Final = (
    ("data_packets", "packets"),
    ("payload_bytes", "wire_bytes"),
    ("unique_bytes", "payload_bytes"),
    ("retransmitted_packets", "data_packets"),
    ("retransmitted_bytes", "payload_bytes"),
    ("ce_packets", "packets"),
    ("ect_packets", "packets"),
    ("tcp_packets", "packets"),
    ("tcp_data_packets", "tcp_packets"),
    ("path_lost_packets", "path_packets"),
    ("wifi_retry_frames", "wifi_frames"),
    ("connections_established", "connection_attempts"),
)
WHOLES: Final = (("not_ect_share", "ect0_share", "ect1_share", "ce_share"),)
RISING: Final = ("min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")
SUMMED: Final = ("packets", "wire_bytes", "payload_bytes", "data_packets", "retransmitted_packets")
CAPTURES: Final = ("pcap", "pcapng")


class ConsistentSums:
    """No value is negative, no number or above its whole, and commands agree on totals."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Share nothing."""

    def draw(self, chance: random.Random) -> Case:
        """Draw a trace, how it is read, and sometimes changes."""
        trace = drawn_trace(chance)
        options = {
            "--filter": ("tcp", "not port 5201", "greater 100"),
            "--since": ("250ms", "2s"),
            "--until": ("3s", "100ms"),
            "--idle-timeout": ("100ms", "1s"),
            "--vantage": ("sender", "receiver", "middle"),
        }
        names = chance.sample(sorted(options), chance.choice((0, 0, 1, 2)))
        read = tuple((name, chance.choice(options[name])) for name in names)
        edits: tuple[Edit, ...] = ()
        if chance.random() < 0.5:
            places = [(drawn_place(chance), *drawn_bytes(chance)) for _ in range(chance.choice((1, 3)))]
            edits = tuple(Edit(trace, kind, at, removed, put) for at, kind, removed, put in places)
        every = chance.choice(("100ms", "1s", "1min"))
        return Case((plain_name(trace),), read, edits, {"trace": trace, "every": every})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run `flows`, `groups`, `metrics` and `convert`, and hold their answers against each other."""
        trace = str(case.setting["trace"])
        lay(folder / case.command[0], changed(content(trace), case.edits))
        answers: dict[str, dict[str, Any]] = {}
        wrong = []
        lines = {
            "flows": ["flows"],
            "metrics": ["metrics"],
            "by flow": ["groups", "--by", "flow"],
            "by host": ["groups", "--by", "host"],
            "over time": ["groups", "--by", "host", "--every", str(case.setting["every"])],
        }
        for name, line in lines.items():
            ended = program.run([*line, *case.line(), "--format", "json"], folder)
            wrong += ended.wrong()
            if not ended.out:
                return wrong
            answers[name] = parsed(ended.out, wrong)
        packets = program.run(["convert", *case.line(), "-o", "-", "--format", "csv"], folder)
        wrong += packets.wrong()
        for name, answer in answers.items():
            wrong += [f"{name}: {problem}" for problem in bounds(answer)]
        wrong += sums(answers)
        if packets.status == DONE and is_capture(answers["flows"]):
            wrong += rows_of(packets.out, answers["flows"])
        return wrong


def parsed(text: bytes, wrong: list[str]) -> dict[str, Any]:
    """Return a document; a constant that JSON does not have is wrong."""

    def refuse(name: str) -> float:
        wrong.append(f"the JSON has {name}")
        return math.nan

    document: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return document


def objects(document: object) -> Iterator[dict[str, Any]]:
    """Give every object of a document."""
    if isinstance(document, dict):
        yield document
    members: Iterable[object] = ()
    if isinstance(document, dict | list):
        members = document.values() if isinstance(document, dict) else document
    for one in members:
        if isinstance(one, dict | list):
            yield from objects(one)


def bounds(document: dict[str, Any]) -> Iterator[str]:
    """Give what is outside its bounds."""
    for one in objects(document):
        numbers = {
            name: value
            for name, value in one.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        if "value" in numbers and isinstance(one.get("name"), str):
            numbers[one["name"]] = numbers["value"]
        for name, value in numbers.items():
            if SHARES.search(name) and name not in NO_SHARES and not -1e-9 <= value <= 1 + 1e-9:
                yield f"`{name}` is `{value}`"
            if COUNTS.search(name) and name not in SIGNED and value < 0:
                yield f"`{name}` is `{value}`"
        for part, whole in PARTS:
            if part in numbers and whole in numbers and numbers[part] > numbers[whole]:
                yield f"`{part}` is `{numbers[part]}` of `{numbers[whole]}` {whole}"
        for names in WHOLES:
            if all(name in numbers for name in names):
                total = sum(numbers[name] for name in names)
                if not math.isclose(total, 1, abs_tol=1e-6):
                    yield f"{' + '.join(names)} is `{total}`"
        yield from _falling(numbers)
        if numbers.get("start_ns", 0) > numbers.get("end_ns", math.inf):
            yield f"start_ns `{numbers['start_ns']}` is after end_ns `{numbers['end_ns']}`"


def _falling(numbers: dict[str, float]) -> Iterator[str]:
    """Give quantiles that are below a smaller quantile; each is a bucket, which is one part in 64 wide."""
    for stem in sorted({name.removesuffix("p50_ms") for name in numbers if name.endswith("p50_ms")}):
        known = [(end, numbers[stem + end]) for end in RISING if stem + end in numbers]
        for (low, least), (high, most) in pairwise(known):
            if least > most + abs(most) / 32 + 1e-6:
                yield f"{stem}{low} `{least}` is above {stem}{high} `{most}`"


def totals(rows: list[dict[str, Any]], names: tuple[str, ...] = SUMMED) -> dict[str, int]:
    """Return the sum of some columns over rows; null adds nothing."""
    return {name: sum(row.get(name) or 0 for row in rows) for name in names}


def known(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns that flows know: a cut header gives null, where groups sum what is whole."""
    return tuple(
        name
        for name in SUMMED
        if all(row[name] is not None for row in rows if row["transport"] == "tcp" or name == "payload_bytes")
    )


def is_capture(flows: dict[str, Any]) -> bool:
    """Say whether all was read from captures: a simulation counts the same packet at several places."""
    return all(source["format"] in CAPTURES for source in flows["sources"])


def sums(answers: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Give the totals in which commands differ."""
    flows = answers["flows"]["flows"]
    of_flows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in flows:
        of_flows[str(row["flow"]), row["direction"]].append(row)
    for row in answers["by flow"]["groups"]:
        rows = of_flows[row["group"], row["direction"]]
        expected, found = totals(rows, known(rows)), totals([row], known(rows))
        if found != expected:
            yield f"groups by flow has `{found}`, flows `{expected}`"
    hosts = answers["by host"]["groups"]
    for direction in ("sent", "received"):
        rows = [row for row in hosts if row["direction"] == direction]
        found, expected = totals(rows, known(flows)), totals(flows, known(flows))
        if found != expected:
            yield f"groups by host ({direction}) has `{found}`, flows `{expected}`"
    over_time = answers["over time"]["groups"]
    if totals(over_time) != totals(hosts):
        yield f"groups over time has `{totals(over_time)}`, in one interval `{totals(hosts)}`"


def rows_of(packets: bytes, answer: dict[str, Any]) -> Iterator[str]:
    """Give what the table of packets has more or less than the flows and the source."""
    counted: dict[tuple[str, str], int] = defaultdict(int)
    for row in csv.DictReader(io.StringIO(packets.decode(errors="replace"))):
        counted[row["flow"], row["direction"]] += 1
    expected = {(str(row["flow"]), row["direction"]): row["packets"] for row in answer["flows"]}
    found = {key: count for key, count in counted.items() if key[0]}
    known = {key: count for key, count in expected.items() if count}
    # frames that 802.11 repeats, or that stand at two interfaces, have a row each, and count once in a flow
    repeated = sum(source["repeated_packets"] for source in answer["sources"])
    repeated += sum(row["capture_duplicates"] or 0 for row in answer["flows"])
    if found != known and not 0 <= sum(found.values()) - sum(known.values()) <= repeated:
        unlike = {key: (found.get(key), known.get(key)) for key in found.keys() | known.keys()}
        different = {key: pair for key, pair in unlike.items() if pair[0] != pair[1]}
        yield f"the table of packets and flows differ: `{sorted(different.items())[:4]}`"
