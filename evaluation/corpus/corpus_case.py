"""A case of the corpus: `tests/data/corpus/NAME.tar.xz`.

The archive holds `about.json` (source, server port, and what kernels, relay or simulator counted),
`truth.tsv` (the class of each packet that is not simply the next) and the captures: `snd.pcap` at the sender,
`mid.pcap` in the middle and `rcv.pcap` at the receiver.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "data" / "corpus"
SUFFIX = ".tar.xz"


@dataclass(frozen=True)
class CorpusCase:
    """A case of the corpus, read from its archive."""

    name: str
    folder: Path = CORPUS

    @cached_property
    def about(self) -> dict[str, Any]:
        """Source, server port and counters."""
        return dict(json.loads(self._read("about.json")))

    @property
    def counters(self) -> dict[str, Any]:
        """What kernels (by host), relay or simulator counted."""
        return dict(self.about["counters"])

    @cached_property
    def truth(self) -> list[dict[str, str]]:
        """The rows of `truth.tsv`."""
        return list(csv.DictReader(io.StringIO(self._read("truth.tsv").decode()), delimiter="\t"))

    @cached_property
    def captures(self) -> list[str]:
        """The names of its captures, sorted."""
        with tarfile.open(self._path) as archive:
            names = archive.getnames()
        return sorted(name.removesuffix(".pcap") for name in names if name.endswith(".pcap"))

    def unpack(self, capture: str, folder: Path) -> Path:
        """Write a capture into the folder."""
        path = folder / f"{self.name}-{capture}.pcap"
        path.write_bytes(self._read(f"{capture}.pcap"))
        return path

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.name}{SUFFIX}"

    def _read(self, member: str) -> bytes:
        with tarfile.open(self._path) as archive:
            file = archive.extractfile(member)
            assert file is not None
            return file.read()


def all_cases() -> list[CorpusCase]:
    """Return every case, sorted by name."""
    return [
        CorpusCase(name)
        for name in sorted(path.name.removesuffix(SUFFIX) for path in CORPUS.glob(f"*{SUFFIX}"))
    ]


def write_case(name: str, scratch: Path, about: Mapping[str, object], corpus: Path = CORPUS) -> None:
    """Write the archive of a case from `truth.tsv` and the captures in `scratch`.

    The same content gives the same bytes: no times, no owners, and always the same order.
    """
    members = {"about.json": (json.dumps(about, indent=1) + "\n").encode()}
    for path in (scratch / "truth.tsv", *sorted(scratch.glob("*.pcap"))):
        members[path.name] = path.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, content in members.items():
            header = tarfile.TarInfo(member)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    compressed = lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (corpus / f"{name}{SUFFIX}").write_bytes(compressed)
