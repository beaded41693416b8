"""Replace addresses and names so that prefixes are preserved.

If a trace is opened with a key, its tables, the facts about inputs and the messages about them are anonymized
here. `docs/anonymity.md` says what is replaced and what is kept.
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
    from collections.abc import Callable, Mapping

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.parsers._native import SourceSummary

LEAST_KEY_BYTES: Final = 16
"""Shorter keys could be found by brute force."""

_KEPT_NAMES: Final = 65_536
"""Size of the cache of replacements; the packets of a capture are between few hosts."""

_MAC: Final = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
LOGGED_END: Final = re.compile("(?P<role>client|server) of (?P<id>[0-9a-f]+)")
"""An end of QUIC whose log names no addresses."""
_NODE: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+){0,2}")
"""A node of a simulation, or its hierarchical address in ns-2: nobody's."""

_MAC_BYTES: Final = 6
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
"""Quoted content of an input in a message. Options are quoted the same way."""


class Anonymizer:
    """Replaces addresses and names; with the same key, equal ones get equal replacements.

    Of two addresses of a kind, the replacements have exactly as many leading bits in common as they have
    (J. Fan, J. Xu, M. Ammar, S. Moon: Prefix-preserving IP address anonymization, 2004, theorem 1), so no two
    become one. Inputs are numbered in the order in which they are met.
    """

    def __init__(self, key: bytes | None = None) -> None:
        """Use a secret key of at least 16 bytes, or a random one."""
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
            **dict.fromkeys(
                ("src", "dst", "outer_src", "outer_dst", "transmitter", "receiver", "bssid"), self.host
            ),
            "server_name": self.server_name,
            "quic_connection_id": self.connection,
            **dict.fromkeys(("source", "from", "to"), self.source),
            **dict.fromkeys(("node", "interface"), self.place),
            "group": self.group,
            **dict.fromkeys(("notes", "drop_reasons", "drop_reason", "decode_stop"), self.text),
        }

    def __reduce__(self) -> tuple[Callable[..., Anonymizer], tuple[bytes, dict[str, str]]]:
        """Return what another process makes the same replacements from."""
        return _restored, (self._key, self._sources)

    def _host(self, name: str) -> str:
        """Return the replacement of an IP address, a MAC or a host name; node numbers are kept."""
        if _NODE.fullmatch(name):
            return name
        if logged := LOGGED_END.fullmatch(name):
            return f"{logged['role']} of {self.connection(logged['id'])}"
        if _MAC.fullmatch(name):
            return self.packed(bytes.fromhex(name.replace(":", ""))).hex(":")
        try:
            # a zone names an interface of the host that captured
            address = ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            return self._called("host", name)
        return str(ipaddress.ip_address(self.packed(address.packed)))

    def server_name(self, name: str) -> str:
        """Return the replacement of a name that a client sent, whatever it looks like."""
        # digits and dots may be an address (RFC 3986 section 7.4), and are no node
        return self._called("host", name) if _NODE.fullmatch(name) else self.host(name.lower())

    def packed(self, address: bytes) -> bytes:
        """Return the replacement of an address of 4 or 16 bytes (IP), or of 6 (a MAC)."""
        if len(address) == _MAC_BYTES:
            return self._mac(address)
        return self._with_prefix_kept(address, b"ip")

    def _mac(self, address: bytes) -> bytes:
        """Return the replacement of a MAC; broadcast and the group and local bits are kept."""
        if address == _BROADCAST:
            return address
        replaced = self._with_prefix_kept(address, b"mac", kept_bits=_GROUP_AND_LOCAL)
        # a group that would become the broadcast takes the place that the broadcast has left
        return replaced if replaced != _BROADCAST else self._mac_of_broadcast()

    def _mac_of_broadcast(self) -> bytes:
        return self._with_prefix_kept(_BROADCAST, b"mac", kept_bits=_GROUP_AND_LOCAL)

    def _with_prefix_kept(self, address: bytes, kind: bytes, *, kept_bits: int = 0) -> bytes:
        """Return `address` with each bit flipped or not, depending on the key and all bits before it.

        `kept_bits` of the first byte stay.
        """
        return bytes(
            self._byte(kind + bytes((len(address), place)) + address[:place], byte, 0 if place else kept_bits)
            for place, byte in enumerate(address)
        )

    def _byte_behind(self, prefix: bytes, byte: int, kept_bits: int) -> int:
        """Return what stands for a byte after others.

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

    def connection(self, identifier: str) -> str:
        """Return the replacement of an identifier of QUIC in hexadecimal digits, of such digits too."""
        digest = blake2b(f"connection {identifier}".encode(), key=self._key, digest_size=8)
        return digest.hexdigest()

    def source(self, name: str) -> str:
        """Return the replacement of an input's name: its number."""
        if name == STANDARD_INPUT:
            return name
        return self._sources.setdefault(name, f"trace-{len(self._sources) + 1}")

    def place(self, name: str) -> str:
        """Return the replacement of an interface of a capture; simulated nodes keep their numbers."""
        return name if _NODE.fullmatch(name) else self._called("interface", name)

    def group(self, name: str) -> str:
        """Return the replacement of a group: an input, a network or a host. Numbers are kept."""
        if name in self._sources:
            return self._sources[name]
        address, slash, length = name.rpartition("/")
        if not slash:
            return self.host(name)
        try:
            ipaddress.ip_network(name, strict=False)
        except ValueError:
            return self.host(name)
        return str(ipaddress.ip_network(f"{self.host(address)}/{length}", strict=False))

    def text(self, words: str) -> str:
        """Return a text with every address in it replaced."""
        return _ADDRESS_IN_TEXT.sub(lambda found: self._if_address(found[0]), words)

    def _if_address(self, found: str) -> str:
        replaced = self.host(found)
        return found if replaced.startswith("host-") else replaced

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return an anonymized table of `tfrctrace.parsers.schema`."""
        import polars as pl

        replaced = []
        for name in frame.columns:
            if treat := self._columns.get(name):
                known = frame[name].drop_nulls().unique(maintain_order=True).to_list()
                others = pl.Series([treat(value) for value in known], dtype=pl.String)
                replaced.append(pl.col(name).replace_strict(pl.Series(known, dtype=pl.String), others))
        return frame.with_columns(replaced)

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return an anonymized row of a table."""
        treated = self._columns.keys() & row.keys()
        return row | {name: self._columns[name](row[name]) for name in treated if row[name] is not None}

    def summary(self, source: SourceSummary) -> SourceSummary:
        """Return the facts about an input without its name and those of its interfaces."""
        interfaces = [
            {**interface, "name": None if interface["name"] is None else self.place(interface["name"])}
            for interface in source["interfaces"]
        ]
        return cast(
            "SourceSummary", {**source, "source": self.source(source["source"]), "interfaces": interfaces}
        )

    def problem(self, problem: Problem) -> Problem:
        """Return a problem without the name of the input and without its content."""
        hint = problem["hint"]
        return {
            **problem,
            "source": self.source(problem["source"]),
            "message": self.text(_QUOTED.sub("`...`", problem["message"])),
            "hint": None if hint is None else self.text(_QUOTED.sub("`...`", hint)),
        }


def _restored(key: bytes, sources: dict[str, str]) -> Anonymizer:
    anonymizer = Anonymizer()
    anonymizer._key, anonymizer._sources = key, dict(sources)
    return anonymizer


def anonymised_note() -> Problem:
    """Return what a result says of itself if its addresses are none."""
    return input_problem(
        "addresses",
        "anonymised",
        "replaced by others, which have as many leading bits in common as the real ones; "
        "names of hosts, inputs and interfaces too",
        severity="note",
    )
