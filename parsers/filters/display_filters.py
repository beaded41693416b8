"""Wireshark's display filters in the syntax of tcpdump, where that can say the same."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = {
    "&&": "and",
    "and": "and",
    "||": "or",
    "or": "or",
    "!": "not",
    "not": "not",
    "(": "(",
    ")": ")",
}
_PROTOCOLS: Final = {
    "arp": "arp",
    "icmp": "icmp",
    "icmpv6": "icmp6",
    "ip": "ip",
    "ipv6": "ip6",
    "sctp": "sctp",
    "tcp": "tcp",
    "udp": "udp",
}
_FIELDS: Final = {
    "eth.addr": "ether host",
    "eth.dst": "ether dst",
    "eth.src": "ether src",
    "ip.addr": "ip host",
    "ip.dst": "ip dst host",
    "ip.src": "ip src host",
    "ipv6.addr": "ip6 host",
    "ipv6.dst": "ip6 dst host",
    "ipv6.src": "ip6 src host",
    "tcp.dstport": "tcp dst port",
    "tcp.port": "tcp port",
    "tcp.srcport": "tcp src port",
    "udp.dstport": "udp dst port",
    "udp.port": "udp port",
    "udp.srcport": "udp src port",
    "vlan.id": "vlan",
}
_EQUAL: Final = {"==", "eq", "==="}
_UNEQUAL: Final = {"!=", "ne"}
_TOKEN: Final = re.compile(r"\s*(&&|\|\||===|==|!=|[!()]|[\w.:/-]+)")


def as_capture_filter(display_filter: str) -> str | None:
    """Return `tcp port 80` for `tcp.port == 80`; None for what is no display filter or has no such form."""
    tokens = _tokens(display_filter)
    if not any(token in _FIELDS for token in tokens):
        return None
    words: list[str] = []
    while tokens:
        token = tokens.pop(0)
        if token in _FIELDS:
            if len(tokens) < 2 or tokens[0] not in _EQUAL | _UNEQUAL:
                return None
            relation, value = tokens.pop(0), tokens.pop(0)
            words.append(_comparison(token, value, is_equal=relation in _EQUAL))
        elif token in _WORDS or token in _PROTOCOLS:
            words.append(_WORDS.get(token) or _PROTOCOLS[token])
        else:
            return None
    if {"and", "or"} <= set(words):
        words = _with_and_first(words)
    return " ".join(words).replace("( ", "(").replace(" )", ")")


def _with_and_first(words: list[str]) -> list[str]:
    """Return words in parentheses that make `and` bind tighter than `or`, which it does not in tcpdump."""
    tighter = {"(": ["(", "("], ")": [")", ")"], "or": [")", "or", "("]}
    return ["(", *(part for word in words for part in tighter.get(word, [word])), ")"]


def _tokens(text: str) -> list[str]:
    """Return the words and signs of a filter; none if there is anything else."""
    tokens, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return []
        tokens.append(match[1])
        position = match.end()
    return tokens


def _comparison(field: str, value: str, *, is_equal: bool) -> str:
    """Return the primitive for a field and its value; a prefix is a net.

    Another value is one that packets without the field do not have.
    """
    primitive = f"{_FIELDS[field].replace('host', 'net') if '/' in value else _FIELDS[field]} {value}"
    if is_equal:
        return primitive
    has_field = f"{protocol} and " if (protocol := _PROTOCOLS.get(field.split(".", maxsplit=1)[0])) else ""
    return f"({has_field}not {primitive})"
