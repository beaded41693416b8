"""Exceptions that carry facts, and how the facts become messages.

    TfrctraceError
    ├── InputError          none of the inputs could be read; `problems` has the facts of each
    ├── FilterError         a capture filter that libpcap rejects
    ├── UsageError          an invalid argument or combination of arguments (also a ValueError)
    │   ├── NoArrivalsError what was received is asked of a trace that shows no arrival
    │   └── ReadOnceError   standard input was read without collecting what is needed now
    ├── OutputError         a result could not be written (also an OSError)
    │   └── SpoolError      what does not fit into memory could not be written
    └── NotBuiltError       the Rust core is missing (also an ImportError)

    TfrctraceWarning        an input was read, with a caveat (a UserWarning)

This module imports nothing from the project, so every other module can import it. A defect of an input is a
`Problem` (a dictionary of facts) and not an exception, because the rest is still analysed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Severity = Literal["error", "warning", "note"]
"""`error`: not done; `warning`: done, with a caveat; `note`: for information."""

STANDARD_INPUT: Final = "-"
"""The argument for standard input."""

_FLOWS_NAMED: Final = 5

# Control characters (with the 8-bit ones, which some terminals obey), marks that change the text direction,
# invisible characters, and the surrogates that stand for undecodable bytes in file names.
_UNPRINTABLE: Final = "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"


_URL: Final = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*):(/+)([^\s`]*)")


class Problem(TypedDict):
    """Facts about a defect of one input, worded by `describe`."""

    severity: str
    """`error`: the input, or the rest of it, could not be read; `warning`: read, with this caveat;
    `note`: a file in a directory was skipped because it is not a capture (from `parsers.sources`)."""
    kind: str
    """The rule: `cannot_open`, `empty`, `not_a_capture`, `truncated`, `capture_gap`, `clock_back`, ..."""
    source: str
    flows: list[int]
    """Numbers of the flows it is about, if it is about some only."""
    packet: int | None
    """Number of the packet where it was found, from 1: of several the first."""
    line: int | None
    """Number of the line where it was found, in a text: of several the first."""
    byte: int | None
    """Offset in the (uncompressed) input where it starts."""
    message: str
    """What was found and what was expected; lower case, no full stop."""
    hint: str | None
    packets_before: int
    """Packets of this source that were analysed before the problem."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message for the user: one sentence, what was still analysed, what to do next."""

    severity: Severity
    text: str
    detail: str | None = None
    hint: str | None = None

    def lines(self) -> list[str]:
        """Return the lines to print, without colour."""
        start = f"{self.severity}: "
        lines = [start + self.text]
        if self.detail:
            lines.append(" " * len(start) + self.detail)
        if self.hint:
            lines.append("hint:".ljust(len(start)) + self.hint)
        return list(map(without_secrets, lines))


class TfrctraceError(Exception):
    """Base class of all expected errors."""

    hint: str | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process makes it of: `pickle` would call the constructor with the text."""
        return _restored, (type(self), self.args, self.__dict__)

    def messages(self) -> list[Message]:
        """Return the messages for the user."""
        return [Message("error", str(self), hint=self.hint)]


def _restored(kind: type[TfrctraceError], args: tuple[object, ...], facts: dict[str, object]) -> object:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class InputError(TfrctraceError):
    """None of the inputs could be read."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(describe(problem).text for problem in self.problems))

    def messages(self) -> list[Message]:
        """Return one message per problem."""
        return [describe(problem) for problem in self.problems]


class FilterError(TfrctraceError):
    """A capture filter that libpcap rejects; `reason` is libpcap's message, `proposal` what may be meant."""

    def __init__(self, expression: str, reason: str, proposal: str | None = None) -> None:
        self.expression = expression
        self.reason = reason
        self.proposal = proposal
        self.hint = "the syntax is tcpdump's, see `man pcap-filter`"
        if proposal is not None:
            self.hint = f"this is Wireshark's syntax; tcpdump's is `{proposal}`"
        super().__init__(f"filter `{expression}`: {reason}")


class UsageError(TfrctraceError, ValueError):
    """An invalid argument, or a combination of arguments that is not allowed."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(without_secrets(text))


class NoArrivalsError(UsageError):
    """What was received is asked of a trace that shows no packet at its destination."""


class ReadOnceError(UsageError):
    """Standard input was read without collecting what is needed now."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"standard input can be read only once, and {missing} was not collected",
            hint="save the capture to a file first",
        )


class OutputError(TfrctraceError, OSError):
    """A result could not be written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = without_secrets(path)
        self.reason = reason
        TfrctraceError.__init__(self, str(self))

    def __str__(self) -> str:
        return f"cannot write `{self.path}`: {self.reason}"


class SpoolError(OutputError):
    """What does not fit into memory could not be written to the temporary folder."""

    hint = "free some space, or name another folder in the environment variable TMPDIR"


class NotBuiltError(TfrctraceError, ImportError):
    """The Rust core is missing because the checkout was not built."""

    hint = "run `make setup` in the checkout, or install the package with `pip install .`"

    def __init__(self) -> None:
        super().__init__("the compiled core `tfrctrace.parsers._native` is missing")


class TfrctraceWarning(UserWarning):
    """An input was read, with a caveat; `problem` has the facts."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(" ".join(describe(problem).lines()))


def describe(problem: Problem) -> Message:
    """Return the message for `problem`: what, where, what was still analysed, what to do next."""
    return Message(
        severity=_severity(problem),
        text=f"{_place(problem)}: {wording(problem)}",
        detail=_analysed_before(problem),
        hint=problem["hint"],
    )


def wording(problem: Problem) -> str:
    """Return the message of `problem` with the first of its flows."""
    flows = problem["flows"]
    if not flows:
        return problem["message"]
    shown = ", ".join(map(str, flows[:_FLOWS_NAMED]))
    more = f" and {len(flows) - _FLOWS_NAMED} more" if len(flows) > _FLOWS_NAMED else ""
    return f"{problem['message']} ({'flow' if len(flows) == 1 else 'flows'} {shown}{more})"


def input_problem(
    source: str,
    kind: str,
    message: str,
    *,
    severity: Severity = "error",
    hint: str | None = None,
    flows: Iterable[int] = (),
) -> Problem:
    """Return a problem with a whole input."""
    return {
        "severity": severity,
        "kind": kind,
        "source": without_secrets(source),
        "flows": list(flows),
        "packet": None,
        "line": None,
        "byte": None,
        "message": without_secrets(message),
        "hint": hint,
        "packets_before": 0,
    }


def source_name(source: str) -> str:
    """Return the name of an input for use in a sentence."""
    return "standard input" if source == STANDARD_INPUT else f"`{source}`"


def _severity(problem: Problem) -> Severity:
    severity = problem["severity"]
    return "warning" if severity == "warning" else "note" if severity == "note" else "error"


def _place(problem: Problem) -> str:
    place = source_name(problem["source"])
    if problem["line"] is not None:
        place += f" line {problem['line']}"
    if problem["packet"] is not None:
        place += f" packet {problem['packet']}"
    if problem["byte"] is not None:
        place += f" at byte {problem['byte']}"
    return place


def _analysed_before(problem: Problem) -> str | None:
    before = problem["packets_before"]
    if not before or problem["severity"] == "note":
        return None
    return "1 packet before it was analysed" if before == 1 else f"{before} packets before it were analysed"


def printable(text: str) -> str:
    r"""Return `text` with characters that could disturb a terminal escaped, as `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return re.sub(_UNPRINTABLE, lambda match: match[0].encode("unicode_escape").decode(), text)


def without_secrets(text: str) -> str:
    """Return `text` with URLs that show no user, password, query or fragment, which may be a signature."""
    return _URL.sub(_public_url, text) if ":/" in text else text


def _public_url(found: re.Match[str]) -> str:
    scheme, slashes, rest = found.groups()
    shown = re.split("[?#]", rest, maxsplit=1)[0]
    host = shown.partition("/")[0]
    if "@" in host or re.search(r"^[^\[].*:(?![0-9]*$)", host):
        # a password may have a slash or a question mark that is not quoted
        shown = shown.rpartition("@")[2] if "@" in shown else "..."
    return f"{scheme}:{slashes}{shown}"
