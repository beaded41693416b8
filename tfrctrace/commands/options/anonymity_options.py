"""Whether a command tells real addresses and names: the options of those that would."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from tfrctrace.commands.console import Console
    from tfrctrace.parsers.anonymity import Anonymizer

_KEY_VARIABLE: Final = "TFRCTRACE_ANONYMIZE_KEY"

_MOST_KEY_BYTES: Final = 65_536
"""Of a file with a key that are read: it may be a device that has no end."""

Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize",
        help="Tell other addresses and names than the real ones; networks stay together. The key is that of "
        "--anonymize-key or in TFRCTRACE_ANONYMIZE_KEY, else a new one.",
    ),
]
AnonymizeKey = Annotated[
    str | None,
    typer.Option(
        "--anonymize-key",
        metavar="FILE",
        help="Anonymize with the bytes of FILE, 16 at least, as key: the same addresses become the same.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymityOptions:
    """Whether, and with which key, addresses and names are replaced."""

    anonymize: Anonymize = False
    anonymize_key: AnonymizeKey = None

    @property
    def is_wanted(self) -> bool:
        """Whether real addresses and names are kept to ourselves."""
        return self.anonymize or self.anonymize_key is not None

    def anonymizer(self, console: Console) -> Anonymizer | None:
        """Return what anonymises with the key of a file, else of the environment, else a new one."""
        if not self.is_wanted:
            return None
        from tfrctrace.parsers.anonymity import Anonymizer

        if self.anonymize_key is not None:
            try:
                with open(self.anonymize_key, "rb") as file:
                    return Anonymizer(file.read(_MOST_KEY_BYTES))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(f"the key `{self.anonymize_key}` cannot be read: {reason}") from error
        given = os.environ.get(_KEY_VARIABLE)
        if given is None:
            console.note(
                "addresses are replaced with a key that is not kept; "
                "`--anonymize-key FILE` replaces them by the same each time"
            )
        return Anonymizer(None if given is None else os.fsencode(given))
