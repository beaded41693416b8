"""Proposals for a name that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_ALSO_CALLED: Final = {
    "delays": "transits",
    "delay": "transits",
    "goodput": "bins",
    "loss": "losses",
    "rate": "bins",
    "retransmissions": "losses",
    "throughput": "bins",
}
"""What people call tables, with the table that has it."""


def proposal(name: str, known: Collection[str]) -> str:
    """Return a question such as `did you mean ...?` if a known name is near, else nothing."""
    import difflib

    near = difflib.get_close_matches(name.lower(), known, n=1) or [_ALSO_CALLED.get(name.lower(), "")]
    return f"did you mean `{near[0]}`?" if near[0] in known else ""


def proposal_or_all(name: str, known: Collection[str], words: str = "there are") -> str:
    """Return the hint for a name that is not one of `known`: the nearest first, then all after `words`."""
    return f"{proposal(name, known)} {words} {', '.join(known)}".strip()
