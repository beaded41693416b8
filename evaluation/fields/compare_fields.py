"""Compare tfrctrace with tcptrace and tshark field by field, on any captures.

`make agreement CAPTURES='FOLDER...'` (or this script with FOLDER...) reads all captures below the folders:
retransmissions, round-trip times, windows, losses and jitter of RTP, times of DNS and server names. A field
is equal if it has the same number to the digits that the peer prints. What differs because the peer defines
it otherwise is counted apart, by reason; of the rest the first are listed. Connections whose ends a second
connection has are left out, because the peers divide them elsewhere. `--write` puts the table into
`docs/validation.md`.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import tfrctrace
from tfrctrace.base.errors import TfrctraceError, TfrctraceWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "links"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "data"))
from agreement import captures_below
from definitions import TCPTRACE, TSHARK, TSHARK_WINDOWS, Definition, Row, tcptrace_value
from measured_tables import show, table_text
from peers import Direction, Ends, Tshark, ask_tcptrace, ask_tshark
from witness import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.api import Trace

LISTED = 3
CLOSE = 2e-4
"""Relative error of tcptrace's sums of times, which have single precision."""
ETHERNET_BYTES = 1460
"""The longest segment in a frame of Ethernet."""

STARTTLS_PORTS = {21, 25, 110, 143, 389, 587, 5222}
"""Of FTP, SMTP, POP3, IMAP, LDAP and XMPP."""


class Compared(NamedTuple):
    """A number of a peer's beside ours."""

    peer: str
    field: str
    column: str
    where: str
    theirs: float | str | None
    ours: float | str | None
    is_equal: bool
    reason: str = ""
    """Why a difference is one of definition."""


@dataclass
class Tally:
    """How a field compares in all captures."""

    compared: int = 0
    equal: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    more: int = 0
    """Differences without a reason in which ours is the larger number."""
    fewer: int = 0
    differing: list[str] = field(default_factory=list)

    def add(self, one: Compared, capture: Path) -> None:
        """Count one comparison."""
        self.compared += 1
        self.equal += one.is_equal
        if one.is_equal:
            return
        if one.reason:
            self.reasons[one.reason] += 1
            return
        numbers = [number if isinstance(number, int | float) else 0 for number in (one.ours, one.theirs)]
        self.more += numbers[0] > numbers[1]
        self.fewer += numbers[0] < numbers[1]
        self.differing.append(f"{one.theirs}, here {one.ours}: {one.where} of {capture}")


def compare(capture: Path) -> list[Compared]:
    """Compare one capture with both peers."""
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrctraceWarning)
        try:
            plain = unpack(capture, Path(scratch))
            trace = tfrctrace.open(plain)
            trace.read("flows", "tcp", "rtt", "rtp_sources")
            said = ask_tshark(plain) or Tshark()
            return [
                *of_tcptrace(plain, said, trace),
                *of_segments(said, trace),
                *of_round_trips(said, trace),
                *of_streams(said, trace),
                *of_dns(said, trace),
                *of_names(said, trace),
            ]
        except (TfrctraceError, ValueError, OSError):
            return []


def connections(said: Tshark, trace: Trace) -> dict[Ends, tuple[Row, Row]]:
    """Return the row of each direction of TCP with that of the other one.

    Directions whose ends a second connection has are left out.
    """
    rows = trace.flows.join(trace.tcp, on=["flow", "direction"], how="left").to_dicts()
    # without flags, all headers were cut
    rows = [row for row in rows if row["transport"] == "tcp" and row["syn_packets"] is not None]
    often = Counter(ends_of(row) for row in rows)
    by_ends = {ends_of(row): row for row in rows}
    for ends, row in by_ends.items():
        numbers = said.directions.get(ends) or Direction()
        row |= {"control_windows": numbers.control_windows, "rfc_duplicate_acks": numbers.duplicate_acks}
        row["peer_keep_alives"] = numbers.counts["keep_alive"]
    return {
        ends: (row, by_ends[ends[2:] + ends[:2]])
        for ends, row in by_ends.items()
        if often[ends] == 1 and ends[2:] + ends[:2] in by_ends
    }


def ends_of(row: Row) -> Ends:
    return row["src"], row["src_port"], row["dst"], row["dst_port"]


def shown(ends: Ends) -> str:
    return f"{ends[0]}:{ends[1]} > {ends[2]}:{ends[3]}"


def of_tcptrace(capture: Path, said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare the fields of each direction that both have."""
    rows = connections(said, trace)
    samples = defaultdict(list)
    for sample in trace.rtt.to_dicts():
        if sample["method"] == "ack":
            samples[sample["flow"], sample["direction"]].append(sample["rtt_ns"] / 1e6)
    asked = ask_tcptrace(capture) or {}
    for ends, reported in asked.items():
        if ends not in rows:
            continue
        ours, other = rows[ends]
        counted = [reported["total_packets"], asked.get(ends[2:] + ends[:2], reported)["total_packets"]]
        has_same_packets = counted == [str(ours["packets"]), str(other["packets"])]
        if not ours["packets"]:
            continue
        for definition in TCPTRACE:
            text = reported[definition.field]
            theirs = None if text in {"", "NA"} else float(text)
            number = tcptrace_value(definition, ours, other, samples[ours["flow"], ours["direction"]])
            bound = max(definition.digits, CLOSE * abs(theirs or 0) if definition.digits else 0)
            is_equal = abs((theirs or 0) - (number or 0)) <= bound
            reason = definition.reason(ours, other, theirs or 0, number)
            if definition.field == "total_packets" and (ours["max_segment_bytes"] or 0) > ETHERNET_BYTES:
                reason = "tcptrace leaves out packets that are longer than a frame of Ethernet"
            elif not has_same_packets and definition.field != "total_packets":
                reason = "other packets belong to the connection for tcptrace"
            where = shown(ends)
            yield Compared(
                "tcptrace", definition.field, definition.column, where, theirs, number, is_equal, reason
            )


def by_tshark(
    definition: Definition, ends: Ends, reported: int, number: float | None, reason: str
) -> Compared:
    """Return how a field of tshark compares."""
    is_equal = reported == number
    return Compared(
        "tshark", definition.field, definition.column, shown(ends), reported, number, is_equal, reason
    )


def of_segments(said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare what tshark's analysis counts in each direction."""
    for ends, (ours, other) in connections(said, trace).items():
        theirs = said.directions.get(ends)
        if theirs is None or len(theirs.streams) != 1 or ours["retransmitted_packets"] is None:
            continue
        sums: dict[str, str] = {}
        for definition in TSHARK:
            reported = sum(theirs.counts[name] for name in definition.field.split(" + "))
            columns = [ours[column] for column in definition.column.split(" + ")]
            number = None if None in columns else sum(columns)
            reason = definition.reason(ours, other, reported, number)
            if definition.field in sums and not reason:
                rest = sums[definition.field]
                reason = f"tshark divides by time what is divided here by bytes and windows{rest}"
            if reported == number or reason:
                rest = "; the sum is equal" if reported == number else ""
                sums |= dict.fromkeys(definition.field.split(" + "), rest)
            yield by_tshark(definition, ends, reported, number, reason)
        if not theirs.windows:
            continue
        for definition, reported in zip(
            TSHARK_WINDOWS, (max(theirs.windows), min(theirs.windows)), strict=True
        ):
            number = ours[definition.column]
            reason = definition.reason(ours, other, reported, number)
            yield by_tshark(definition, ends, reported, number, reason)


def of_round_trips(said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare the time of each acknowledgement from which both take a sample."""
    samples = {row["packet"]: row["rtt_ns"] for row in trace.rtt.to_dicts() if row["method"] == "ack"}
    for number in sorted(samples.keys() & said.ack_rtt_ns):
        ends, theirs = said.ack_rtt_ns[number]
        is_equal = abs(theirs - samples[number]) <= 1
        where = f"packet {number}, {shown(ends)}"
        yield Compared("tshark", "ack_rtt", "rtt.rtt_ns", where, theirs, samples[number], is_equal)


def of_streams(said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare packets, losses and jitter of the sources of RTP that we find."""
    flows = {(row["flow"], row["direction"]): ends_of(row) for row in trace.flows.to_dicts()}
    for source in trace.rtp_sources.to_dicts():
        ends = flows[source["flow"], source["direction"]]
        where = f"{shown(ends)}, source {source['ssrc']:#010x}"
        theirs = said.streams.get((ends, source["ssrc"]))
        yield Compared(
            "tshark", "RTP stream", "rtp_sources.ssrc", where, "yes" if theirs else "no", "yes", bool(theirs)
        )
        if theirs is None:
            continue
        arrivals = source["received_packets"] + source["duplicate_packets"]
        packets = theirs["packets"]
        yield Compared(
            "tshark",
            "RTP packets",
            "received_packets + duplicate_packets",
            where,
            packets,
            arrivals,
            packets == arrivals,
        )
        lost = source["lost_packets"] - source["duplicate_packets"]
        yield Compared("tshark", "RTP lost", "lost_packets - duplicate_packets", where, theirs["lost"], lost,
                       theirs["lost"] == lost)  # fmt: skip
        jitter = source["jitter_ms"]
        if jitter is not None:
            is_within = theirs["jitter_min"] - 0.001 <= jitter <= theirs["jitter_max"] + 0.001
            reason = (
                "tshark does not know the clock of a dynamic payload type" if theirs["jitter_min"] < 0 else ""
            )
            bounds = f"{theirs['jitter_min']} to {theirs['jitter_max']}"
            yield Compared(
                "tshark",
                "RTP jitter (within min and max)",
                "jitter_ms",
                where,
                bounds,
                jitter,
                is_within,
                reason,
            )


def of_dns(said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare number and times of the answers that each client got over UDP."""
    buckets: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in trace.groups("host").buckets.to_dicts():
        if row["measure"] == "dns" and row["direction"] == "sent":
            buckets[row["group"]] += [(row["from_ns"], row["to_ns"])] * row["samples"]
    for client in sorted(buckets.keys() | said.dns_ns.keys()):
        theirs, ours = sorted(said.dns_ns.get(client, [])), sorted(buckets.get(client, []))
        is_equal = len(theirs) == len(ours)
        yield Compared(
            "tshark", "dns.time (answers)", "dns_samples", client, len(theirs), len(ours), is_equal
        )
        if not is_equal:
            continue
        for time_ns, (from_ns, to_ns) in paired(theirs, ours):
            is_within = from_ns <= time_ns <= to_ns
            bounds = f"{from_ns} to {to_ns}"
            reason = (
                "a client that asked again waited since its first question here" if time_ns < from_ns else ""
            )
            yield Compared(
                "tshark",
                "dns.time",
                "group_buckets.from_ns, to_ns",
                client,
                time_ns,
                bounds,
                is_within,
                reason,
            )


def paired(times_ns: list[int], buckets: list[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each time with a bucket of its own that holds it, then the others in order."""
    left, others = list(buckets), []
    for time_ns in times_ns:
        holding = next((bucket for bucket in left if bucket[0] <= time_ns <= bucket[1]), None)
        if holding is None:
            others.append(time_ns)
        else:
            left.remove(holding)
            yield time_ns, holding
    yield from zip(others, left, strict=True)


def of_names(said: Tshark, trace: Trace) -> Iterator[Compared]:
    """Compare the names that clients ask for."""
    rows: dict[Ends, Row] = {}
    for row in trace.flows.filter(direction="fwd").to_dicts():
        rows.setdefault(ends_of(row), row)
    for theirs_field, names in (("extensions_server_name", said.names), ("http.host", said.hosts)):
        is_http = theirs_field == "http.host"
        ours = {
            ends: row["server_name"]
            for ends, row in rows.items()
            if row["server_name"] is not None and (row["server_name_from"] == "http") == is_http
        }
        for ends in sorted(ours.keys() | names.keys()):
            theirs, name = names.get(ends), ours.get(ends)
            reason = why_names_differ(rows.get(ends), theirs)
            yield Compared(
                "tshark", theirs_field, "server_name", shown(ends), theirs, name, theirs == name, reason
            )


def why_names_differ(row: Row | None, theirs: str | None) -> str:
    """Return why tshark, which found `theirs`, may read another name than stands in a row."""
    if theirs is None:
        is_quic = row is not None and row["transport"] == "quic"
        if is_quic:
            return "tshark 4.0 does not put together what QUIC divides"
        is_http = row is not None and row["server_name_from"] == "http"
        return "tshark reads HTTP at its ports only" if is_http else ""
    if row is None:
        return ""
    if row["dst_port"] in STARTTLS_PORTS:
        return "here a name is that of the first message, which is none of TLS with STARTTLS"
    if "no SYN in the capture" in (row["notes"] or ""):
        return "null here if the capture began after the SYN"
    return ""


def tallies(captures: list[Path]) -> dict[tuple[str, str, str], Tally]:
    """Return how each field of each peer compares over all captures."""
    found: dict[tuple[str, str, str], Tally] = defaultdict(Tally)
    with ThreadPoolExecutor(2) as pool:
        for capture, compared in zip(captures, pool.map(compare, captures), strict=True):
            for one in compared:
                found[one.peer, one.field, one.column].add(one, capture)
    return found


def table(found: dict[tuple[str, str, str], Tally]) -> str:
    """Return the table of all fields, and the reasons of differences below it."""
    heads = (
        "peer",
        "field",
        "here",
        "compared",
        "equal",
        "by definition",
        "ours more",
        "ours fewer",
        "other",
    )
    rows = []
    for (peer, name, column), tally in found.items():
        defined, left = tally.reasons.total(), len(tally.differing)
        numbers = (
            tally.compared,
            tally.equal,
            defined,
            tally.more,
            tally.fewer,
            left - tally.more - tally.fewer,
        )
        rows.append((peer, f"`{name}`", f"`{column}`", *(f"{number:,}" for number in numbers)))
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (peer, name, _), tally in found.items():
        for reason, times in tally.reasons.items():
            reasons[reason][f"`{name}` of {peer}"] += times
    lines = [
        f"- {reason}: {', '.join(f'{name} {times:,}' for name, times in names.items())}."
        for reason, names in sorted(reasons.items())
    ]
    return "\n".join([table_text(heads, rows), *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table into docs/validation.md")
    parser.add_argument("--list", action="store_true", help="name every difference, not only the first")
    options = parser.parse_args()
    captures = captures_below(options.folders)
    found = tallies(captures)
    begins = f"{datetime.datetime.now(datetime.UTC).date()}, {len(captures):,} captures:\n\n"
    show(begins + table(found), "fields", write=options.write)
    for (peer, name, _), tally in found.items():
        for difference in tally.differing[: None if options.list else LISTED]:
            print(f"{peer} {name} {difference}", file=sys.stderr)


if __name__ == "__main__":
    main()
