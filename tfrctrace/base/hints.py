"""The words of hints: the core gives codes and knows no option of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfrctrace.base.errors import Problem

HINTS: Final = {
    "cut_short": "the file was probably cut while being written or copied; `--strict` makes this an error",
    "lines_left_out": "the other lines were analysed; `--strict` makes this an error",
    "document_cut": "everything before the error was used",
    "name_format": "if it is one of them, name it with `--input-format`",
    "link_types": "`docs/formats.md` lists the link types that are",
    "capture_filter": "omit `--filter` for this input",
    "decompression_limit": "if you trust this file, allow more bytes with `--max-decompressed`",
    "flow_limit": "raise `--max-flows`, shorten `--idle-timeout`, or select flows with `--filter`",
    "no_spool": "free some space, or name another folder in the environment variable TMPDIR",
    "link_limit": "select stations with `--filter`, such as `wlan host`",
    "group_limit": "choose longer intervals with `--every`, larger groups, or packets with `--filter`",
    "sample_limit": "select flows with `--filter`, or use wider bins",
    "empty_layer": "omit `--layer` to count at the highest layer of the trace",
    "pair_of_simulation": "omit `--pair`: a simulator's trace already shows both ends of a path",
    "packets_changed": "a pair shows the same packets at two places; a NAT or tunnel in between changes them",
    "impossible_offset": "omit `--clock-offset` to have it estimated",
    "read_as_other": "if it is of another format, name that with `--input-format`",
    "capture_drops": "they are missing from all counts, and data that seems lost may have arrived",
    "capture_gap": "the capture lost them, not the network: throughput and goodput are too low by it",
    "clock_back": "the clock was set back or several interfaces were merged; times are used as they are",
    "out_of_order": "so little comes from parallel queues or rounded times; times are used as they are",
    "clock_still": "durations, rates and RTT are unknown; numbers and sizes are not affected",
    "clock_ahead": "the clock was set; durations and rates across the jump mean nothing",
    "undecoded": "they count for the input but for no flow",
    "no_flow": "flows are of TCP, UDP and DCCP, also inside of known tunnels",
    "clock_step": "delays may be wrong; analyse the parts before and after the step separately",
    "clock_drift": "durations are wrong by that part; let NTP or PTP keep the clock of the capture",
    "capture_loss": "a larger buffer (`-B` of tcpdump and dumpcap) or a shorter snap length keeps up",
    "pair_of_copies": "name captures of two places; a capture alone is read without `--pair`",
    "joined_overlap": "`--join` is for the parts of one capture; `--pair` matches captures of two places",
    "joined_gap": "name all files of the capture; what packets the gap hides is unknown",
}
"""What the user can do about a problem, by the code that the core gives it (`Hint` in `error.rs`)."""


def with_hints(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems of the core with the words of their hints."""
    return [
        {**problem, "hint": HINTS[code]} if (code := problem["hint"]) else problem for problem in problems
    ]
