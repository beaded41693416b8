"""Every form that the commands save and read again, with changes, through the commands that read it."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from case import Case, Edit, Words
from edits import changed, drawn_bytes, drawn_place, drawn_values
from program import CHECK_FAILED, DONE, NOT_READ, ROOT, lay
from traces import LIMITS, content

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

STUDY: Final = """
title = "Fast"

[runs]
files = ["fast-*.tr"]
pattern = "{queue}-{run}.tr"
repetition = "run"

[measure]
window = "500ms"
warmup = "100ms"

[labels]
udp = "transport udp"

[[quantity]]
name = "rate"
metric = "rate_bps"

[[quantity]]
name = "delay"
column = "delay_mean_ms"

[[table]]
name = "rates"
title = "Rate and delay"
rows = ["queue", "group"]
columns = ["rate", "delay"]

[[figure]]
name = "rates"
title = "Rate of a flow"
kind = "bars"
x = "queue"
y = "rate"

[[expect]]
claim = "rate[udp] > 0 bit/s"
"""
INVENTORY_TOML: Final = """
[[site]]
name = "branch"
networks = ["10.0.0.0/8", "192.0.2.0/24"]
promised = "10M"
"""
INVENTORY_CSV: Final = "network,name,promised\n10.0.0.0/8,branch,10M\n192.0.2.0/24,office,\n"
LAYOUT: Final = "port = 5001\n[fields]\nsequence = { offset = 0, width = 4 }\n"

CHECK: Final = ("check", "fast-1.tr", "--require", "sum(goodput_bps) > 0", "--cache", "cache")
BATCH: Final = ("-o", "results", "--by", "host", "--every", "1s", "-j", "1")

MADE_BY: Final[tuple[Words, ...]] = (
    ("report", "fast-1.tr", "-o", "page.html", "--results", "saved"),
    (*CHECK, "--write-baseline", "baseline.json"),
    (*CHECK, "--history", "history", "--build", "one"),
    (*CHECK, "--history", "history", "--build", "two"),
    ("experiment", "study.toml", "--cache", "cache", "-j", "1", "-o", "study", "--format", "csv"),
    ("batch", "captures", *BATCH),
    ("lake", "results", "-o", "lake"),
    ("audit", "captures", "-o", "audit", "-j", "1", "--limits", "limits.toml"),
)
"""What writes the saved forms, in this order."""

READ_BY: Final[dict[str, tuple[Words, ...]]] = {
    "saved": (("report", "--from", "saved", "-o", "again.md"),),
    "baseline.json": (
        (*CHECK, "--baseline", "baseline.json"),
        (*CHECK, "--baseline", "baseline.json", "--accept"),
    ),
    "history": ((*CHECK, "--history", "history", "--build", "three"),),
    "cache": (
        ("experiment", "study.toml", "--cache", "cache", "-j", "1", "-o", "study", "--format", "csv"),
        CHECK,
        ("compare", "fast-1.tr", "fast-2.tr", "--cache", "cache"),
    ),
    "study.toml": (
        ("experiment", "study.toml", "--cache", "cache", "-j", "1", "-o", "study", "--format", "csv"),
    ),
    "results": (
        ("batch", "captures", *BATCH),
        ("batch", "captures", *BATCH, "--verify"),
        ("batch", "captures", *BATCH, "--retry", "failed"),
        ("lake", "results", "-o", "made"),
        ("merge", "results", "-o", "made"),
        ("audit", "results", "-o", "made", "--profile", "quality-of-outcome"),
    ),
    "lake": (("lake", "results", "-o", "lake"),),
    "audit": (("audit", "captures", "-o", "audit", "-j", "1", "--limits", "limits.toml"),),
    "limits.toml": (
        (*CHECK, "--limits", "limits.toml"),
        ("groups", "captures", "--by", "host", "--every", "1s", "--limits", "limits.toml"),
        ("audit", "captures", "-o", "made", "-j", "1", "--limits", "limits.toml"),
    ),
    "profile.toml": (("audit", "results", "-o", "made", "--profile", "profile.toml"),),
    "sites.toml": (("groups", "captures", "--by", "site", "--inventory", "sites.toml"),),
    "sites.csv": (("groups", "captures", "--by", "site", "--inventory", "sites.csv"),),
    "layout.toml": (("flows", "captures", "--dissect", "udp:5001=layout.toml"),),
    "cell.toml": (
        ("capacity", "--scenario", "cell.toml"),
        ("replay", "fast-1.tr", "--scenario", "cell.toml"),
    ),
}
"""The commands that read each form."""


class SavedForms:
    """A changed saved form ends in a designed status and a sentence, or is made again."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write every saved form once."""
        self.folder = folder
        for number in (1, 2):
            trace = "tests/data/ns2/probes-mixed.tr.gz"
            lay(folder / f"fast-{number}.tr", content(trace, 60_000 * number))
        for number, name in enumerate(("linux-one-cubic-snd", "linux-udp-vs-tcp-rcv")):
            capture = content(f"tests/data/captures/{name}.pcap.gz", 40_000)
            lay(folder / "captures" / f"link-{number}.pcap", capture)
        profile = (ROOT / "tfrctrace/profiles/quality-of-outcome.toml").read_text("utf-8")
        texts = {
            "study.toml": STUDY,
            "limits.toml": LIMITS,
            "profile.toml": profile,
            "sites.toml": INVENTORY_TOML,
            "sites.csv": INVENTORY_CSV,
            "layout.toml": LAYOUT,
            "cell.toml": (ROOT / "sample_traces/up-and-down.toml").read_text("utf-8"),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        for line in MADE_BY:
            ended = program.run(line, folder)
            if ended.status not in {DONE, CHECK_FAILED, NOT_READ}:
                raise RuntimeError(f"{' '.join(line)}: {ended.err}")

    def draw(self, chance: random.Random) -> Case:
        """Draw a form, one of its files, changes, and a command that reads it."""
        form = chance.choice(sorted(READ_BY))
        place = self.folder / form
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        path = chance.choice(files)
        kind = {".json": "json", ".jsonl": "json", ".toml": "line", ".csv": "line"}.get(path.suffix, "")
        values = partial(drawn_values, kind) if kind and chance.random() < 0.7 else drawn_bytes
        changes = [(drawn_place(chance), *values(chance)) for _ in range(chance.choice((1, 1, 2, 3)))]
        name = str(path.relative_to(self.folder))
        edits = tuple(Edit(name, change, at, removed, put) for at, change, removed, put in changes)
        return Case(chance.choice(READ_BY[form]), edits=edits)

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command on a copy of all forms, of which one is changed."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        for name in {edit.file for edit in case.edits}:
            path = folder / name
            path.write_bytes(changed(path.read_bytes(), case.edits))
        return program.run(case.line(), folder).wrong()
