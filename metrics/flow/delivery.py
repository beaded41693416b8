"""Delivery and loss as shares, of columns of the table of flows; the results have no unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def drop_ratio(dropped: pl.Expr, transmitted: pl.Expr) -> pl.Expr:
    """Return dropped/TX, from 0 to 1 (Lillis et al., tables 1 to 3, in percent); TX includes retransmissions.

    Null if nothing was transmitted.
    """
    return _share(dropped, transmitted)


def goodput_share(unique_bytes: pl.Expr, wire_bytes: pl.Expr) -> pl.Expr:
    """Return goodput over throughput: the share of the bytes on the wire that is payload not seen before.

    Null if there were no bytes.
    """
    return _share(unique_bytes, wire_bytes)


def retransmission_ratio(retransmitted: pl.Expr, data: pl.Expr) -> pl.Expr:
    """Return the share of `data` segments of TCP that were retransmissions, both as captured.

    Null if there were none.
    """
    return _share(retransmitted, data)


def timeout_share(rto_ms: pl.Expr, duration_s: pl.Expr) -> pl.Expr:
    """Return the share of a flow's `duration_s` that episodes after retransmission timeouts took.

    Null if the flow lasted no time.
    """
    return _share(rto_ms, 1000 * duration_s)


def _share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    import polars as pl

    return pl.when(whole != 0).then(part / whole)
