"""A case of a driver: command lines, changes of files and numbers, drawn from a seed, and smaller cases."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from program import Program

Words = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Edit:
    """One change of a file."""

    file: str
    kind: str
    """`bytes`, or what else `edits.CHANGES` has."""
    at: int
    removed: int = 0
    put: str = ""
    """What stands there instead; a byte is the character of its number."""


@dataclasses.dataclass(frozen=True)
class Case:
    """What one case does. Options and edits can be left out, `command` and `setting` cannot."""

    command: Words
    options: tuple[Words, ...] = ()
    edits: tuple[Edit, ...] = ()
    setting: Mapping[str, int | str] = dataclasses.field(default_factory=dict)

    def line(self) -> list[str]:
        """Return the command line."""
        return [*self.command, *(word for option in self.options for word in option)]

    def smaller(self) -> Iterator[Case]:
        """Give the cases with one edit or option less."""
        for index in range(len(self.edits)):
            yield dataclasses.replace(self, edits=self.edits[:index] + self.edits[index + 1 :])
        for index in range(len(self.options)):
            yield dataclasses.replace(self, options=self.options[:index] + self.options[index + 1 :])

    def as_json(self) -> str:
        """Return a text that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Return the case of a text."""
        document: dict[str, Any] = json.loads(text)
        options = tuple(tuple(option) for option in document["options"])
        edits = tuple(Edit(**edit) for edit in document["edits"])
        return cls(tuple(document["command"]), options, edits, document["setting"])


class Driver(Protocol):
    """One way to attack the commands. Its docstring tells which; the campaign prints the first line."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write into the folder what all cases share. Raises `NotHereError` where a case cannot run."""
        ...

    def draw(self, chance: random.Random) -> Case:
        """Return a case."""
        ...

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the case in an empty folder and return what is wrong, a sentence each."""
        ...


class NotHereError(Exception):
    """A driver needs what this machine does not have."""


def smallest(case: Case, is_wrong: Callable[[Case], bool], most_tries: int = 60) -> Case:
    """Leave out edits and options for as long as the case stays wrong."""
    tries = 0
    while True:
        for one in case.smaller():
            tries += 1
            if tries > most_tries:
                return case
            if is_wrong(one):
                case = one
                break
        else:
            return case
