"""Options that replace addresses and names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.options.grouped_help import output_option

if TYPE_CHECKING:
    from tfrctrace.commands.console import Console
    from tfrctrace.parsers.anonymity import Anonymizer

_KEY_VARIABLE: Final = "TFRCTRACE_ANONYMIZE_KEY"

_MOST_KEY_BYTES: Final = 65_536
"""Read at most so much of a key file, which may be an endless device."""

Anonymize = Annotated[
    bool,
    output_option(
        "--anonymize",
        help="Replace addresses and names; prefixes are preserved. The key comes from --anonymize-key, "
        "TFRCTRACE_ANONYMIZE_KEY, or is random.",
    ),
]
AnonymizeKey = Annotated[
    str | None,
    output_option(
        "--anonymize-key",
        metavar="FILE",
        help="Anonymize with the bytes of FILE (at least 16) as key: equal addresses get equal replacements.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymityOptions:
    """Whether and with which key addresses and names are replaced."""

    anonymize: Anonymize = False
    anonymize_key: AnonymizeKey = None

    @property
    def is_enabled(self) -> bool:
        """Whether addresses and names are replaced."""
        return self.anonymize or self.anonymize_key is not None

    def anonymizer(self, console: Console) -> Anonymizer | None:
        """Return an anonymizer with the key from the file, else from the environment, else a random one."""
        if not self.is_enabled:
            return None
        from tfrctrace.parsers.anonymity import Anonymizer

        key = self._given_key()
        if key is None:
            console.note(
                "addresses are replaced with a random key that is not saved; "
                "`--anonymize-key FILE` makes replacements repeatable"
            )
        return Anonymizer(key)

    def kept_key(self, what: str) -> bytes | None:
        """Return the key for results that are made in several steps; None if nothing is replaced."""
        if not self.is_enabled:
            return None
        from tfrctrace.parsers.anonymity import Anonymizer

        key = self._given_key()
        if key is None:
            raise UsageError(
                f"{what} needs a key that is kept: else an address has another replacement each time",
                hint=f"name a file with `--anonymize-key`, or set {_KEY_VARIABLE}",
            )
        Anonymizer(key)  # is it long enough?
        return key

    def _given_key(self) -> bytes | None:
        """Return the key from the file, else from the environment."""
        if self.anonymize_key is not None:
            try:
                with open(self.anonymize_key, "rb") as file:
                    return file.read(_MOST_KEY_BYTES)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(f"the key `{self.anonymize_key}` cannot be read: {reason}") from error
        key = os.environ.get(_KEY_VARIABLE)
        return None if key is None else os.fsencode(key)
