"""An inventory: names of sites and hosts by network, the rates promised to them, and names of links."""

from __future__ import annotations

import csv
import ipaddress
import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.bitrates import parse_capacity_bps
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import read_toml, refuse_unknown, table_of, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OTHER: Final = "other"
"""The group of addresses that no entry names."""

_MOST_ENTRIES: Final = 1_000_000
_MOST_BYTES: Final = 64_000_000
_COLUMNS: Final = ("network", "name", "promised")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Inventory:
    """Names by network."""

    names: dict[Network, str]
    promised_bps: dict[str, float]
    """By name, of those that were promised a rate."""
    links: dict[str, str] = field(default_factory=dict)
    """Names of links, by patterns of what they are called without."""

    def link_name(self, link: str) -> str:
        """Return the name of the first pattern that a link has, else what it is called."""
        return next((name for pattern, name in self.links.items() if fnmatchcase(link, pattern)), link)

    @cached_property
    def _lengths(self) -> dict[int, list[int]]:
        """Lengths of prefixes by version of IP, the longest first."""
        return {
            version: sorted({net.prefixlen for net in self.names if net.version == version}, reverse=True)
            for version in (4, 6)
        }

    def name_of(self, address: str | None) -> str:
        """Return the name of the smallest network that has an address."""
        try:
            host = ipaddress.ip_address(address or "")
        except ValueError:
            return OTHER
        for length in self._lengths[host.version]:
            network = ipaddress.ip_network((host, length), strict=False)
            if network in self.names:
                return self.names[network]
        return OTHER


def read_inventory(path: str) -> Inventory:
    """Return the inventory in a file: TOML with a table for each name, or CSV, a line for each network."""
    is_csv = path.lower().endswith(".csv")
    try:
        tables = {} if is_csv else _tables(path)
        entries = list(_of_csv(path) if is_csv else _of_toml(path, tables))
    except OSError as error:
        raise UsageError(f"`{path}`: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"`{path}` is no text in UTF-8") from error
    links = {
        pattern: name for name, table in tables.items() for pattern in texts(table.get("links", []), "links")
    }
    if not entries and not links:
        raise UsageError(f"`{path}` names no network and no link", hint="see docs/groups.md#inventory")
    names: dict[Network, str] = {}
    promised: dict[str, float] = {}
    for place, network, name, rate in entries:
        if names.setdefault(network, name) != name:
            raise UsageError(f"{place}: {network} is `{names[network]}` already")
        if rate is not None and promised.setdefault(name, rate) != rate:
            raise UsageError(f"{place}: `{name}` has two promised rates")
    return Inventory(names, promised, links)


Entry = tuple[str, Network, str, float | None]


def _tables(path: str) -> dict[str, dict[str, Any]]:
    try:
        tables = read_toml(path, _MOST_BYTES)
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}", hint=error.hint) from error
    return {name: table_of(value, f"`{path}`: `{name}`") for name, value in tables.items()}


def _of_toml(path: str, tables: dict[str, dict[str, Any]]) -> Iterator[Entry]:
    for name, table in tables.items():
        place = f"`{path}`: `{name}`"
        refuse_unknown(table, {"networks", "promised", "links"}, place)
        rate = _rate(text(table["promised"], "promised"), place) if "promised" in table else None
        networks = texts(table.get("networks", []), "networks")
        yield from ((place, _network(network, place), name, rate) for network in networks)


def _of_csv(path: str) -> Iterator[Entry]:
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        heads = tuple(cell.strip() for cell in next(lines, ()))
        if heads not in {_COLUMNS, _COLUMNS[:2]}:
            raise UsageError(
                f"`{path}` has the columns {', '.join(heads) or 'of no line'}",
                hint=f"its first line must be `{','.join(_COLUMNS)}`",
            )
        yield from _rows(path, lines, len(heads))


def _rows(path: str, lines: Iterable[list[str]], columns: int) -> Iterator[Entry]:
    for number, cells in enumerate(lines, start=2):
        if not any(map(str.strip, cells)):
            continue
        place = f"`{os.path.basename(path)}`, line {number}"
        if len(cells) != columns or not cells[1].strip():
            raise UsageError(f"{place} has {len(cells)} cells", hint="each line has a network and a name")
        if number > _MOST_ENTRIES:
            raise UsageError(f"`{path}` has more than {_MOST_ENTRIES:,} lines")
        rate = cells[2].strip() if columns > 2 else ""
        yield (
            place,
            _network(cells[0].strip(), place),
            cells[1].strip(),
            _rate(rate, place) if rate else None,
        )


def _network(given: str, place: str) -> Network:
    try:
        return ipaddress.ip_network(given, strict=True)
    except ValueError as error:
        raise UsageError(f"{place}: {error}", hint="write such as `10.1.0.0/16` or `10.1.0.7`") from error


def _rate(given: str, place: str) -> float:
    try:
        return parse_capacity_bps(given)
    except UsageError as error:
        raise UsageError(f"{place}: {error}", hint=error.hint) from error
