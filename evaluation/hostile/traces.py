"""Real traces of the repository, decompressed and cut, and random options to read them with."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import tarfile
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from program import ROOT

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from case import Words

LENT: Final = ("sample_traces", "tests/data")
TRACE: Final = re.compile(
    r"\.(pcap|pcapng|cap|tr|txt|csv|log|mon|json|qlog|xml)(\.(gz|xz|zst|bz2))?$|\.tar\.xz$"
)
NO_TRACES: Final = frozenset({"studies", "gate", "expected", "vectors", "study"})
TRUTHS: Final = ("truth.json", "expected.json", "tshark.json", "tshark.csv.gz", "metrics.csv", "README.md")
LONGEST: Final = 250_000
"""Bytes of a trace that a case reads: a longer one finds little more, and takes seconds."""

UNPACK: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    ".gz": lambda packed, most: zlib.decompressobj(31).decompress(packed, most),
    ".xz": lambda packed, most: lzma.LZMADecompressor().decompress(packed, most),
    ".bz2": lambda packed, most: bz2.BZ2Decompressor().decompress(packed, most),
}


@cache
def traces() -> tuple[str, ...]:
    """Return the traces, as paths below the root; a case of the corpus is an archive of several."""
    found = (path for folder in LENT for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    return tuple(str(path.relative_to(ROOT)) for path in found if is_trace(path))


def is_trace(path: Path) -> bool:
    """Say whether a file is a trace, or an archive of captures."""
    folders = set(path.relative_to(ROOT).parts[:-1])
    is_truth = path.name.endswith(TRUTHS) or path.parent.name == "data"
    return bool(TRACE.search(path.name)) and not is_truth and not NO_TRACES & folders


@cache
def content(trace: str, longest: int = LONGEST) -> bytes:
    """Return the first bytes of a trace, decompressed."""
    path = ROOT / trace
    if trace.endswith(".tar.xz"):
        with tarfile.open(path) as archive:
            captures = [one for one in archive if ".pcap" in one.name]
            file = archive.extractfile(captures[len(trace) % len(captures)]) if captures else None
            found = file.read() if file else b""
        return gzip.decompress(found)[:longest] if found[:2] == b"\x1f\x8b" else found[:longest]
    if path.suffix == ".zst":
        done = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True)
        return done.stdout[:longest]
    packed = path.read_bytes()
    return UNPACK[path.suffix](packed, longest) if path.suffix in UNPACK else packed[:longest]


def plain_name(trace: str) -> str:
    """Return the name of a trace that is decompressed."""
    name = Path(trace).name
    if name.endswith(".tar.xz"):
        return name.removesuffix(".tar.xz") + ".pcap"
    return re.sub(r"\.(gz|xz|zst|bz2)$", "", name)


TIMES: Final = ("1ms", "250ms", "1s", "7s", "5min", "1d", "1h", "0s", "-1s", "1e9s", "10000d")
COUNTS: Final = ("0", "1", "2", "7", "100", "65535", "9223372036854775807", "-1", "x")
RATES: Final = ("1M", "10k", "1", "0", "1e300", "10G", "-1M")
KINDS: Final = (
    *("throughput", "sequence", "rtt", "cdf", "cwnd", "losses", "fairness", "burstiness", "delay"),
    *("delay-spread", "pdr", "retries", "phy-rate", "signal", "tfrc", "tfrc-p", "tfrc-r"),
)
TABLES: Final = (
    *("packets", "flows", "tcp", "bins", "rtt", "rtt_buckets", "losses", "rounds", "variables", "feedback"),
    *("loss_events", "loss_intervals", "findings", "rtp_sources", "rtp_intervals", "links", "link_samples"),
    *("transits", "hops"),
)
ALGORITHMS: Final = (
    *("tfrc", "tfrc-sp", "ccid4", "tfrc-veno", "mtfrc", "newreno", "sack", "vegas", "veno"),
    *("modified-veno", "westwood", "cubic"),
)
GROUPS: Final = (
    *("host", "prefix/16", "prefix/64", "port", "conversation", "interface", "vlan", "mpls", "vni", "teid"),
    *("tunnel", "dscp", "label", "flow", "bssid", "channel", "protocol"),
)
FILTERS: Final = (
    *("tcp", "udp", "not tcp", "host 192.0.2.1", "net 10.0.0.0/8", "port 5201", "greater 100", "ip6"),
    *("tcp[13] & 2 != 0", "vlan", "(tcp or udp) and not port 22", "", "(", "host x", "less 0"),
)

READING: Final[dict[str, tuple[str, ...]]] = {
    "--filter": FILTERS,
    "--input-format": ("pcap", "ns2", "ns3", "tcpdump", "x"),
    "--layer": ("agent", "routing", "ip", "queue", "mac", "phy", "link"),
    "--vantage": ("auto", "sender", "receiver", "middle"),
    "--since": TIMES,
    "--until": TIMES,
    "--last": TIMES,
    "--idle-timeout": TIMES,
    "--max-flows": COUNTS,
    "--max-decompressed": COUNTS,
    "--tunnel-port": ("vxlan=5201", "geneve=53", "x=1", "vxlan=70000"),
    "--tfrc": ("profile=rfc5348", "n=8", "profile=ns2", "s=1000", "x=1"),
    "--dissect": ("udp:5001=iperf2", "udp:5004=rtp", "udp:9=x"),
    "--join": ("",),
    "--pair": ("",),
    "--clock-offset": TIMES,
    "--strict": ("",),
}
MEASURING: Final[dict[str, tuple[str, ...]]] = {
    "--window": TIMES,
    "--warmup": TIMES,
    "--label": ("web=port 80", "a=tcp", "b=port 5201", "x=", "a=label a", "s=direction sent"),
    "--only-labelled": ("",),
    "--basis": ("goodput", "throughput", "received"),
    "--least-packets": COUNTS,
    "--capacity": RATES,
    "--weight": ("a=2", "tcp=0.5", "tcp=0", "tcp=-1", "x=nan"),
    "--step": TIMES,
    "--sparse-share": ("0", "0.1", "1", "2", "-1", "nan"),
}
TABLE_FORMAT: Final = {"--format": ("table", "json", "csv"), "--raw": ("",)}
ZONE: Final = {"--timezone": ("UTC", "local", "Europe/Berlin", "Asia/Kathmandu", "x")}
HIDING: Final = {"--anonymize": ("",)}
SHOWING: Final = {**TABLE_FORMAT, **ZONE, "--limit": COUNTS}

LIMITS: Final = """
[[limit]]
require = "p95(rtt_ms) < 100"
level = "warn"

[[objective]]
name = "delay"
require = "p95(rtt_ms) < 90 ms"
severe = "p95(rtt_ms) < 200 ms"
by = "host"
every = "1s"
least = 5
target = "95 %"

[[objective]]
name = "losses"
require = "sum(retransmitted_packets) / sum(tcp_data_packets) < 2 %"
by = "host"
every = "1s"
target = "80 %"
"""


def options_of() -> dict[str, tuple[Words, dict[str, tuple[str, ...]]]]:
    """Return each command that reads a trace: what stands before the trace, and options with their values."""
    by = {"--by": GROUPS, "--every": TIMES}
    return {
        "flows": (("flows",), {**READING, **SHOWING, **HIDING, "--sort": ("flow", "bytes", "rtt")}),
        "metrics": (("metrics",), {**READING, **MEASURING, **by, **TABLE_FORMAT}),
        "groups": (
            ("groups",),
            {
                **READING,
                **by,
                **SHOWING,
                **HIDING,
                "--under-load": ("",),
                "--capacity": RATES,
                "--limits": ("limits.toml",),
                "--buckets": ("",),
                "--sort": ("group", "bytes", "rtt", "loss", "x"),
            },
        ),
        "check": (
            ("check", "--require", "p95(rtt_ms) < 80"),
            {
                **READING,
                **MEASURING,
                "--limits": ("limits.toml",),
                "--require": ("sum(goodput_bps) > 0", "jain > 0.5", "max(retransmitted_packets) < 1%", "x"),
                "--warn": ("packets > 3", "p5(rtt_p95_ms) < 1 s"),
                "--format": ("table", "json"),
                "--write-baseline": ("baseline.json",),
                "--history": ("history",),
                "--build": ("one", "two"),
                "--unknown": ("fail", "warn", "pass"),
                "--junit": ("junit.xml",),
                "--summary": ("summary.md",),
            },
        ),
        "compare": (
            ("compare", "trace.same", "--cache", "none", "-j", "1"),
            {**MEASURING, "--format": ("table", "json", "csv", "markdown", "html"), "--holm": ("",)},
        ),
        "convert": (
            ("convert", "-o", "table.csv"),
            {**READING, **HIDING, "--what": TABLES, "--bin-width": TIMES, "--max-samples": COUNTS},
        ),
        "report": (
            ("report", "-o", "page.md"),
            {**READING, **HIDING, **ZONE, "--limits": ("limits.toml",), "--results": ("saved",)},
        ),
        "plot": (
            ("plot", "-o", "figure.svg"),
            {
                **READING,
                **ZONE,
                "--kind": KINDS,
                "--flow": COUNTS,
                "--window": TIMES,
                "--style": ("acm", "plain"),
            },
        ),
        "replay": (
            ("replay",),
            {
                **READING,
                **TABLE_FORMAT,
                "--algorithm": ALGORITHMS,
                "--loop": ("open", "closed"),
                "--profile": ("rfc5348", "rfc3448", "ns2", "linux"),
                "--rtt": TIMES,
                "--segment-size": COUNTS,
                "--sensitivity": ("",),
                "--simulate": ("",),
                "--flow": COUNTS,
                "--bottleneck": ("capacity=3M", "capacity=0", "delay=1s", "queue=5", "x=1"),
                "--together": ("",),
                "--station": ("11", "4x5.5", "x"),
                "--stations-seen": ("",),
                "--least-packets": COUNTS,
            },
        ),
        "batch": (
            ("batch", "-o", "results", "-j", "1"),
            {**READING, **HIDING, **by, **ZONE, "--chains": ("auto", "days", "names", "none")},
        ),
        "audit": (
            ("audit", "-o", "audit", "-j", "1"),
            {
                **READING,
                **HIDING,
                **ZONE,
                "--limits": ("limits.toml",),
                "--raise": COUNTS,
                "--clear": COUNTS,
                "--profile": ("quality-of-outcome", "voice", "delay-under-load"),
            },
        ),
    }


WEIGHTS: Final = {"flows": 6, "metrics": 3, "groups": 4, "convert": 6, "check": 2, "replay": 2, "plot": 1}
"""How much more often a command is drawn than the slow ones."""


def drawn_trace(chance: random.Random) -> str:
    """Return a trace, of each folder as often: some have many that are alike."""
    folders: dict[str, list[str]] = {}
    for trace in traces():
        folders.setdefault(str(Path(trace).parent), []).append(trace)
    return chance.choice(folders[chance.choice(sorted(folders))])


def drawn_command(chance: random.Random) -> tuple[Words, tuple[Words, ...]]:
    """Return a command without its trace, and some options."""
    known = options_of()
    names = sorted(known)
    name = chance.choices(names, [WEIGHTS.get(one, 1) for one in names])[0]
    words, options = known[name]
    if name == "plot":
        words = (*words, "--kind", chance.choice(KINDS))
    return words, drawn_options(options, chance)


def drawn_options(options: dict[str, tuple[str, ...]], chance: random.Random) -> tuple[Words, ...]:
    """Return a few options, each once; the last values of each are absurd, and drawn less often."""
    names = chance.sample(sorted(options), min(len(options), chance.choice((0, 0, 1, 1, 2, 3, 4))))
    drawn = []
    for name in names:
        values = options[name]
        value = values[min(int(chance.expovariate(3 / len(values))), len(values) - 1)]
        drawn.append((name, value) if value or values != ("",) else (name,))
    return tuple(drawn)
