"""Anonymised outputs of every command, searched for what the original has."""

from __future__ import annotations

import gzip
import ipaddress
import json
import re
from typing import TYPE_CHECKING, Any, Final

from case import Case
from program import lay
from traces import KINDS, LIMITS, TABLES, content, drawn_trace

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

    from program import Program

FOLDER: Final = "customer-4711"
FILE: Final = "branch-office-zurich.pcap"
SHORTEST_TEXT: Final = 6
"""Characters of a name that cannot stand there by chance."""
KEPT: Final = re.compile(r"^(0\.0\.0\.0|255\.255\.255\.255|::|127\.|ff0|224\.|239\.)")
"""Addresses that mean the same everywhere."""
SIMULATED: Final = frozenset({"ns2", "ns3"})

COMMANDS: Final = (
    *(("flows", "--format", form) for form in ("table", "json", "csv")),
    ("flows", "--format", "parquet", "-o", "flows.parquet"),
    *(("groups", "--by", by, "--format", "json") for by in ("host", "prefix/16", "conversation", "bssid")),
    *(("convert", "--what", table, "-o", "table.csv") for table in TABLES),
    ("convert", "-o", "table.parquet"),
    ("convert", "-o", "table.arrow"),
    *(("plot", "--kind", kind, "-o", "figure.svg") for kind in KINDS),
    ("report", "-o", "page.html", "--results", "saved", "--csv"),
    ("report", "-o", "page.md", "--limits", "limits.toml"),
    ("report", "--pages", "pages"),
    ("replay", "--format", "json"),
    ("replay", "--loop", "closed"),
    ("batch", "-o", "results", "-j", "1"),
    ("batch", "-o", "results", "-j", "1", "--chains", "names"),
    ("audit", "-o", "audit", "-j", "1", "--profile", "voice"),
    ("audit", "-o", "audit", "-j", "1", "--pages"),
)


class Anonymity:
    """No original address, name or payload stands in an anonymised output."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Share nothing."""

    def draw(self, chance: random.Random) -> Case:
        """Draw a trace, a command, and whether a key is given."""
        command = chance.choice(COMMANDS)
        key = ("--anonymize-key", "key") if chance.random() < 0.5 else ("--anonymize",)
        given = FOLDER if chance.random() < 0.5 else f"{FOLDER}/{FILE}"
        return Case((*command, *key, given), setting={"trace": drawn_trace(chance)})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Look for what the trace has in all that the command writes."""
        lay(folder / FOLDER / FILE, content(str(case.setting["trace"]), 60_000))
        (folder / "key").write_bytes(b"sixteen bytes or more")
        (folder / "limits.toml").write_text(LIMITS)
        plain = program.run(["flows", "--format", "json", f"{FOLDER}/{FILE}"], folder)
        if not plain.out:
            return plain.wrong()
        secrets = list(secrets_of(json.loads(plain.out)))
        before = set(folder.rglob("*"))
        ended = program.run(case.line(), folder)
        outputs = {"standard output": ended.out}
        for path in sorted(set(folder.rglob("*")) - before):
            name = str(path.relative_to(folder))
            outputs[f"the name {name}"] = name.encode()
            if path.is_file():
                outputs[name] = unpacked(path.read_bytes())
        found = {
            f"{where} has `{text}`"
            for where, output in outputs.items()
            for text, pattern in secrets
            if pattern.search(output)
        }
        return ended.wrong() + sorted(found)


def unpacked(written: bytes) -> bytes:
    """Return what was written, decompressed where it is gzip."""
    return gzip.decompress(written) if written[:2] == b"\x1f\x8b" else written


def secrets_of(document: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    """Give every text that may not be found, with an expression that finds it."""
    texts = {FOLDER, FILE.partition(".")[0]}
    if not any(source["format"] in SIMULATED for source in document["sources"]):
        for row in document["flows"]:
            texts |= {row[name] for name in ("src", "dst", "outer_src", "outer_dst") if row.get(name)}
    for row in document["flows"]:
        name = row.get("server_name")
        texts |= {name} if name and len(name) >= SHORTEST_TEXT else set()
    for text in sorted(texts):
        if KEPT.search(text):
            continue
        whole = rb"(?<![\w.:])" + re.escape(text.encode()) + rb"(?![\w:]|\.\d)"
        yield text, re.compile(whole)
        try:
            packed = ipaddress.ip_address(text).packed
        except ValueError:
            continue
        if len(packed) > 4:  # four bytes stand anywhere by chance
            yield f"{text} as bytes", re.compile(re.escape(packed))
