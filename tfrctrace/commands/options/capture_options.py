"""Options of captures that are written: which packets, and what is said of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.parsers.copying import CAPTURE_FORMS, COMPRESSION_OF_SUFFIX

if TYPE_CHECKING:
    from tfrctrace.trace.chosen_packets import PacketChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Which packets a capture has that is written, and whether they get comments."""

    flow: Annotated[
        list[int] | None,
        output_option("--flow", metavar="N", help="Write a capture of this flow only; may be repeated."),
    ] = None
    loss_class: Annotated[
        str | None,
        output_option(
            "--class",
            metavar="NAME",
            help="Write a capture of the packets of this class only, e.g. rto_retransmission (docs/tcp.md).",
        ),
    ] = None
    cause: Annotated[
        str | None,
        output_option(
            "--cause",
            metavar="NAME",
            help="Write a capture of the packets of the times in which this cause held their flow back, e.g. "
            "policer (docs/why-is-it-slow.md).",
        ),
    ] = None
    comments: Annotated[
        bool,
        output_option(
            "--comments",
            help="Say in a comment what is known of each packet: flow, class, RTT sample, cause. Rules of "
            "Wireshark that colour them are written beside the pcapng file.",
        ),
    ] = False

    def refuse(self) -> None:
        """Raise `UsageError` if any of them is given, because a table is written."""
        if self.flow or self.loss_class or self.cause or self.comments:
            raise UsageError(
                "`--flow`, `--class`, `--cause` and `--comments` apply to captures only",
                hint="name a file that ends in `.pcapng` with `-o`",
            )

    @property
    def choice(self) -> PacketChoice:
        """The packets that are wanted; raises `UsageError` for names that there are not."""
        from tfrctrace.trace.chosen_packets import PacketChoice

        choice = PacketChoice(
            flows=tuple(self.flow or ()),
            loss_class=self.loss_class,
            cause=self.cause,
            has_comments=self.comments,
        )
        choice.check()
        return choice


def capture_form(output: str, given: str | None) -> tuple[str, str] | None:
    """Return the form of a capture and its compression by the name of the file; None for a table."""
    name, ending = os.path.splitext(output.lower())
    compression = COMPRESSION_OF_SUFFIX.get(ending, "")
    suffix = (os.path.splitext(name)[1] if compression else ending).removeprefix(".")
    if given is not None and given not in CAPTURE_FORMS:
        return None
    if suffix in CAPTURE_FORMS:
        if given not in {None, suffix}:
            raise UsageError(
                f"`{output}` is named as {suffix}, but `--format` is {given}", hint="leave out one of the two"
            )
        return suffix, compression
    return None if given is None else (given, compression)
