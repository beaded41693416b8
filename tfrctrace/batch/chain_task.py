"""Analyse one chain in one pass, and put its tables and facts into the folder of results."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import InputError, OutputError, UsageError, input_problem, printable
from tfrctrace.base.shortage import HINTS, shortage
from tfrctrace.batch.growing_chains import predecessor
from tfrctrace.batch.read_chain import NewCheckpoint, read_chain
from tfrctrace.batch.results_folder import RESULTS_VERSION, ResultsFolder
from tfrctrace.parsers.sources import natural_key
from tfrctrace.reports.output import temporary_file
from tfrctrace.runs.cache import RunInput
from tfrctrace.runs.engine import failed_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.batch.capture_files import CaptureFile
    from tfrctrace.batch.chains import Chain
    from tfrctrace.batch.growing_chains import Predecessor
    from tfrctrace.batch.read_chain import ChainReading
    from tfrctrace.parsers.reading import StackedTable
    from tfrctrace.parsers.reading_settings import ReadingArguments, ReadSettings
    from tfrctrace.runs.cache import Record

TABLES: Final = ("flows", "groups", "group_buckets", "rtp_sources")
"""Tables that are written of each chain."""

_INTERRUPTIONS: Final = frozenset({"read_failed", "cannot_open"})
"""Problems that another time may not have: what was read before them is no result."""


@dataclass(frozen=True)
class BatchPlan:
    """How the chains of a batch are analysed, and where their results go."""

    folder: str
    program: str
    reading: ReadingArguments
    grouping: Grouping
    anonymity_key: bytes | None = None
    causes: bool = False
    """Whether groups have times by cause."""

    @cached_property
    def options(self) -> dict[str, Any]:
        """What changes the numbers of a chain, for its key and its facts."""
        from tfrctrace.parsers.reading_settings import READING_DEFAULTS, WITHOUT_EFFECT

        changed = {
            name: value
            for name, value in self.reading.items()
            if name not in {"join", *WITHOUT_EFFECT} and value != READING_DEFAULTS[name]
        }
        own: dict[str, Any] = {"by": self.grouping.text, "every_ns": self.grouping.every_ns}
        if self.causes:
            own["causes"] = True
        if self.anonymity_key is not None:
            own["anonymized"] = self._keyed("key of a batch")[:32]
        return {**changed, **own}

    @cached_property
    def shown_options(self) -> dict[str, Any]:
        """The options in the facts of a chain, which betray no host and no file."""
        from tfrctrace.parsers.reading_settings import NAMING

        return {
            name: self.shown_value(name, repr(value))
            if value and name in NAMING and self.is_anonymous
            else value
            for name, value in self.options.items()
        }

    @property
    def is_anonymous(self) -> bool:
        """Whether results have other addresses and names."""
        return self.anonymity_key is not None

    @cached_property
    def settings(self) -> ReadSettings:
        """The settings of the pass."""
        from tfrctrace.parsers.reading_settings import read_settings

        anonymizer = None
        if self.anonymity_key is not None:
            from tfrctrace.parsers.anonymity import Anonymizer

            anonymizer = Anonymizer(self.anonymity_key)
        settings = read_settings({**self.reading, "join": True}, anonymizer)
        return replace(settings, grouping=self.grouping.for_core)

    def shown(self, kind: str, name: str) -> str:
        """Return the name of a file or chain, or one that does not betray it."""
        if self.anonymity_key is None:
            return printable(name)
        return f"{kind} {self._keyed(f'{kind} {name}')[:12]}"

    def shown_value(self, kind: str, value: str) -> str:
        """Return a value, or a digest that nobody without the key can compare with that of a guess."""
        return self._keyed(f"{kind} {value}")[:16] if self.is_anonymous else value

    def _keyed(self, text: str) -> str:
        """Return what differs for another text or key, and betrays neither."""
        import hmac

        return hmac.digest(self.anonymity_key or b"", os.fsencode(text), "sha256").hex()


@dataclass(frozen=True)
class ChainTask:
    """One chain, and how it is analysed."""

    chain: Chain
    plan: BatchPlan
    key_before: str | None = None
    """The key of the results that a chain with the same first file has."""
    checkpoint_behind: int = 0
    """How many of its files a checkpoint covers; 0 for none."""

    @property
    def source(self) -> RunInput:
        """The files of the chain, and the options that change its results."""
        files = self.chain.files
        states = tuple(file.state for file in files)
        paths = tuple(file.path for file in files)
        return RunInput(self.chain.name, paths, self.plan.options, states, self.plan.anonymity_key)

    def makes(self, record: Record) -> bool:
        """Return whether a record has the facts of a chain."""
        from tfrctrace.metrics.results.batch import ChainFacts
        from tfrctrace.metrics.results.records import is_a

        return is_a(ChainFacts, record)

    @cached_property
    def key(self) -> str:
        """The key of its results."""
        key = self.source.key(self.plan.program)
        assert key is not None, "the files were found"
        return key

    @property
    def _folder(self) -> ResultsFolder:
        return ResultsFolder(self.plan.folder)

    def measure(self) -> Record:
        """Analyse the chain, write its results, and return its facts; those of a failure if it has to be."""
        try:
            # what held senders back follows from whole flows: no checkpoint has half of one
            is_saved = self.checkpoint_behind and not self.plan.causes
            with temporary_file(self.plan.folder) if is_saved else nullcontext() as path:
                checkpoint = NewCheckpoint(path, self.key, self.checkpoint_behind) if path else None
                reading = read_chain(
                    self.chain.files,
                    self.plan.settings,
                    self.find_predecessor(),
                    checkpoint,
                    causes=self.plan.causes,
                )
                facts, tables, is_kept = self._results(reading)
                record = self.completed(facts)
                self._folder.put(self.key, record, tables, checkpoint if is_kept else None)
                return {**record, "read_again": reading.again, "goes_on": reading.goes_on}
        except (OutputError, UsageError):
            raise  # it would be the same with other chains
        except InputError as error:
            facts = {"failed": True, "problems": error.problems}
        except Exception as error:
            lacking = shortage(error)
            words = "" if self.plan.is_anonymous else f": {error}"
            facts = failed_record(
                self.chain.name,
                lacking or f"internal error: {type(error).__name__}{words}",
                HINTS[lacking] if lacking else None,
            )
        record = self.completed(facts)
        self._folder.put(self.key, record)
        return record

    def find_predecessor(self) -> Predecessor | None:
        """Return the results that the chain had before it got its last files, if there are any."""
        if self.key_before is None or self.key_before == self.key:
            return None
        files = [self._file_facts(file, None) for file in self.chain.files]
        facts, checkpoint = self._folder.get(self.key_before), self._folder.checkpoint(self.key_before)
        return predecessor(facts, checkpoint, self.plan.program, self.plan.shown_options, files)

    def completed(self, facts: Record) -> Record:
        """Return facts with what is known of the chain before it is read."""
        return {
            "results_version": RESULTS_VERSION,
            "key": self.key,
            "program": self.plan.program,
            "name": self.plan.shown("chain", self.chain.name),
            "link": self.plan.shown("chain", self.chain.link or self.chain.name),
            "options": self.plan.shown_options,
            "files": [self._file_facts(file, None) for file in self.chain.files],
            "sources": [],
            "rows": {},
            **facts,
            "problems": self._shown_problems(facts["problems"]),
        }

    def _results(self, reading: ChainReading) -> tuple[Record, Mapping[str, StackedTable], bool]:
        """Return facts, tables, and whether the new checkpoint is kept: also if only later files changed."""
        from tfrctrace.parsers.reading import PassResult
        from tfrctrace.parsers.rotated_names import missing_files

        settings, files = self.plan.settings, self.chain.files
        names = sorted((file.name for file in files), key=natural_key)
        missing = missing_files(names) if len(names) > 1 else None
        result = PassResult([reading.analysis], [missing] if missing else [], settings)
        changes = [file.change() for file in files]
        changed = [
            input_problem(file.name, "changed", why) for file, why in zip(files, changes, strict=True) if why
        ]
        problems = [*changed, *result.problems]
        was_interrupted = any(problem["kind"] in _INTERRUPTIONS for problem in result.problems)
        if result.read_nothing or was_interrupted or reading.was_lost:
            raise InputError(problems)
        covered = self.checkpoint_behind if reading.is_saved else 0
        if any(changes[:covered]) or (changed and not covered):
            raise InputError(problems)
        digests = reading.digests if not changed else [*reading.digests[:covered], *[None] * len(files)]
        facts = {
            "failed": bool(changed),
            "problems": problems,
            "files": [self._file_facts(*pair) for pair in zip(files, digests, strict=False)],
        }
        if changed:
            return facts, {}, True
        tables = {name: result.table(name) for name in TABLES}
        rows = {name: len(table) for name, table in tables.items()}
        return {**facts, "sources": list(result.sources), "rows": rows}, tables, reading.is_saved

    def _shown_problems(self, problems: list[Problem]) -> list[Problem]:
        anonymizer = self.plan.settings.anonymizer
        return problems if anonymizer is None else list(map(anonymizer.problem, problems))

    def _file_facts(self, file: CaptureFile, digest: str | None) -> dict[str, Any]:
        plan = self.plan
        return {
            "name": plan.shown("file", file.name),
            "bytes": file.size,
            "version": plan.shown_value("version", str(file.version)) if plan.is_anonymous else file.version,
            "xxh64": None if digest is None else plan.shown_value("content", digest),
        }
