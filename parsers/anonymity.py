"""Addresses and names that nobody can be found by, and that still show who shares a network.

What is told of packets goes through here when a trace is opened with a key: the tables, the facts about
inputs and what is said of them. `docs/anonymity.md` says what is replaced by what, and what stays.
"""

from __future__ import annotations

import ipaddress
import os
import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

from tfrctrace.base.errors import STANDARD_INPUT, UsageError, input_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl
    import pyarrow as pa

    from tfrctrace.base.errors import Problem
    from tfrctrace.parsers._native import SourceSummary

LEAST_KEY_BYTES: Final = 16
"""Shorter keys can be tried out: all addresses of a network are soon told by heart."""

_KEPT_NAMES: Final = 65_536
"""Replacements that are remembered: the packets of a capture are between few hosts."""

_MAC: Final = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_NODE: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+){0,2}")
"""A node of a simulation, or its hierarchical address in ns-2: nobody's."""

_BROADCAST: Final = b"\xff" * 6
_GROUP_AND_LOCAL: Final = 0b11
"""The last two bits of the first byte of a MAC: group or one station, named by a user or a vendor."""

_IPV4: Final = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_ADDRESS_IN_TEXT: Final = re.compile(
    # a MAC or IPv6, then IPv4; what is none of them after all is left alone
    rf"(?<![\w:])[0-9a-fA-F]{{0,4}}(?::[0-9a-fA-F]{{0,4}}){{2,7}}(?::?{_IPV4})?(?![\w:]|\.\d)"
    rf"|(?<![\d.]){_IPV4}(?!\d)"
)
_QUOTED: Final = re.compile(r"`(?!-)[^`]*`")
"""What an input said, in a message. Options stand in such quotes too."""


class Anonymizer:
    """What replaces addresses and names; the same key replaces one by the same always.

    Of two addresses of a kind, the replacements have exactly as many leading bits in common as they have
    (J. Fan, J. Xu, M. Ammar, S. Moon: Prefix-preserving IP address anonymization, 2004, theorem 1), so no two
    become one. Inputs are numbered in the order in which they are met.
    """

    def __init__(self, key: bytes | None = None) -> None:
        """Take a secret key of at least 16 bytes, or a random one."""
        if key is not None and len(key) < LEAST_KEY_BYTES:
            raise UsageError(
                f"the key has {len(key)} bytes, and fewer than {LEAST_KEY_BYTES} could be guessed",
                hint="create one with `head -c 32 /dev/urandom > FILE`",
            )
        self._key = blake2b(os.urandom(32) if key is None else key, digest_size=32).digest()
        self._sources: dict[str, str] = {}
        self.host: Callable[[str], str] = lru_cache(_KEPT_NAMES)(self._host)
        # the first bytes of addresses are those of few networks
        self._byte: Callable[[bytes, int, int], int] = lru_cache(_KEPT_NAMES)(self._byte_behind)
        self._columns: Mapping[str, Callable[[str], str]] = {
            **dict.fromkeys(("src", "dst", "transmitter", "receiver", "bssid"), self.host),
            "source": self.source,
            "node": self.place,
            **dict.fromkeys(("notes", "drop_reasons", "drop_reason", "decode_stop"), self.text),
        }

    def _host(self, name: str) -> str:
        """Return what stands for an IP address, a MAC or the name of a host; nodes keep their numbers."""
        if _NODE.fullmatch(name):
            return name
        if _MAC.fullmatch(name):
            return self._mac(bytes.fromhex(name.replace(":", ""))).hex(":")
        try:
            # a zone names an interface of the host that captured
            address = ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            return self._called("host", name)
        return str(ipaddress.ip_address(self._with_prefix_kept(address.packed, b"ip")))

    def _mac(self, address: bytes) -> bytes:
        """Return what stands for a MAC; the broadcast stays, and so does who may give addresses."""
        if address == _BROADCAST:
            return address
        replaced = self._with_prefix_kept(address, b"mac", kept_bits=_GROUP_AND_LOCAL)
        # a group that would become the broadcast takes the place that the broadcast has left
        return replaced if replaced != _BROADCAST else self._mac_of_broadcast()

    def _mac_of_broadcast(self) -> bytes:
        return self._with_prefix_kept(_BROADCAST, b"mac", kept_bits=_GROUP_AND_LOCAL)

    def _with_prefix_kept(self, address: bytes, kind: bytes, *, kept_bits: int = 0) -> bytes:
        """Return `address` with each bit turned over or not, as the key and all bits before it say.

        `kept_bits` of the first byte stay.
        """
        return bytes(
            self._byte(kind + bytes((len(address), place)) + address[:place], byte, 0 if place else kept_bits)
            for place, byte in enumerate(address)
        )

    def _byte_behind(self, prefix: bytes, byte: int, kept_bits: int) -> int:
        """Return what stands for a byte behind others.

        One hash decides for it: below its prefix there are 255 possible ways to one of its bits, and the hash
        has a bit for each.
        """
        turns = int.from_bytes(blake2b(prefix, key=self._key, digest_size=32).digest(), "big")
        way, bits = 1, 0
        for shift in range(7, -1, -1):
            bit = byte >> shift & 1
            turned = turns >> way & 1 if not kept_bits >> shift & 1 else 0
            way, bits = way << 1 | bit, bits << 1 | (bit ^ turned)
        return bits

    def _called(self, what: str, name: str) -> str:
        """Return a name such as `host-1f2e3d4c5b6a7980`, which is always that of `name`."""
        digest = blake2b(f"{what} {name}".encode(errors="surrogateescape"), key=self._key, digest_size=8)
        return f"{what}-{digest.hexdigest()}"

    def source(self, name: str) -> str:
        """Return what stands for the name of an input: its number."""
        if name == STANDARD_INPUT:
            return name
        return self._sources.setdefault(name, f"trace-{len(self._sources) + 1}")

    def place(self, name: str) -> str:
        """Return what stands for an interface of a capture; a node of a simulation keeps its number."""
        return name if _NODE.fullmatch(name) else self._called("interface", name)

    def text(self, words: str) -> str:
        """Return words of ours with every address in them replaced."""
        return _ADDRESS_IN_TEXT.sub(lambda found: self._if_address(found[0]), words)

    def _if_address(self, found: str) -> str:
        replaced = self.host(found)
        return found if replaced.startswith("host-") else replaced

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table of `tfrctrace.parsers.schema` with other addresses and names."""
        import polars as pl

        replaced = []
        for name in frame.columns:
            if treat := self._columns.get(name):
                known = frame[name].drop_nulls().unique(maintain_order=True).to_list()
                others = pl.Series([treat(value) for value in known], dtype=pl.String)
                replaced.append(pl.col(name).replace_strict(pl.Series(known, dtype=pl.String), others))
        return frame.with_columns(replaced)

    def batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Give the rows of a record batch with other addresses and names."""
        import polars as pl

        yield from self.frame(pl.DataFrame(batch)).to_arrow().to_batches()

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of a table with other addresses and names."""
        treated = self._columns.keys() & row.keys()
        return row | {name: self._columns[name](row[name]) for name in treated if row[name] is not None}

    def summary(self, source: SourceSummary) -> SourceSummary:
        """Return what an input held, without its name and those of its interfaces."""
        interfaces = [
            {**interface, "name": None if interface["name"] is None else self.place(interface["name"])}
            for interface in source["interfaces"]
        ]
        return cast(
            "SourceSummary", {**source, "source": self.source(source["source"]), "interfaces": interfaces}
        )

    def problem(self, problem: Problem) -> Problem:
        """Return what was wrong with an input, without its name and without what stood in it."""
        hint = problem["hint"]
        return {
            **problem,
            "source": self.source(problem["source"]),
            "message": self.text(_QUOTED.sub("`...`", problem["message"])),
            "hint": None if hint is None else self.text(_QUOTED.sub("`...`", hint)),
        }


def anonymised_note() -> Problem:
    """Return what a result says of itself if its addresses are none."""
    return input_problem(
        "addresses",
        "anonymised",
        "replaced by others, which have as many leading bits in common as the real ones; "
        "names of hosts, inputs and interfaces too",
        severity="note",
    )
