"""Analyse one chain in one pass, and put its tables and facts into the folder of results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import FilterError, InputError, OutputError, input_problem, printable
from tfrctrace.base.interruptible import in_thread
from tfrctrace.base.shortage import HINTS, shortage
from tfrctrace.batch.results_folder import RESULTS_VERSION, ResultsFolder
from tfrctrace.batch.results_shape import FACTS
from tfrctrace.parsers.sources import natural_key
from tfrctrace.runs.cache import RunInput
from tfrctrace.runs.engine import failed_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.batch.capture_files import CaptureFile
    from tfrctrace.batch.chains import Chain
    from tfrctrace.parsers._native import Source
    from tfrctrace.parsers.reading import StackedTable
    from tfrctrace.parsers.reading_settings import ReadingArguments, ReadSettings
    from tfrctrace.runs.cache import Record

TABLES: Final = ("flows", "groups", "group_buckets", "rtp_sources")
"""Tables that are written of each chain."""

_INTERRUPTIONS: Final = frozenset({"read_failed", "cannot_open"})
"""Problems that another time may not have: what was read before them is no result."""

_NO_NUMBERS: Final = frozenset({"join", "endpoint", "anonymous"})
"""Reading options on which no number depends."""


@dataclass(frozen=True)
class BatchPlan:
    """How the chains of a batch are analysed, and where their results go."""

    folder: str
    program: str
    reading: ReadingArguments
    grouping: Grouping
    anonymity_key: bytes | None = None

    @cached_property
    def options(self) -> dict[str, Any]:
        """What changes the numbers of a chain, for its key and its facts."""
        from tfrctrace.parsers.reading_settings import READING_DEFAULTS

        changed = {
            name: value
            for name, value in self.reading.items()
            if name not in _NO_NUMBERS and value != READING_DEFAULTS[name]
        }
        own = {"by": self.grouping.text, "every_ns": self.grouping.every_ns}
        if self.anonymity_key is not None:
            own["anonymized"] = self._keyed("key of a batch")[:32]
        return {**changed, **own}

    @cached_property
    def settings(self) -> ReadSettings:
        """The settings of the pass."""
        from dataclasses import replace

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

    def _keyed(self, text: str) -> str:
        """Return what differs for another text or key, and betrays neither."""
        import hmac

        return hmac.digest(self.anonymity_key or b"", os.fsencode(text), "sha256").hex()


@dataclass(frozen=True)
class ChainTask:
    """One chain, and how it is analysed."""

    chain: Chain
    plan: BatchPlan

    @property
    def source(self) -> RunInput:
        """The files of the chain, and the options that change its results."""
        files = self.chain.files
        states = tuple(file.state for file in files)
        return RunInput(self.chain.name, tuple(file.path for file in files), self.plan.options, states)

    @property
    def shape(self) -> Mapping[str, Any]:
        """The parts of the facts."""
        return FACTS

    @cached_property
    def key(self) -> str:
        """The key of its results."""
        key = self.source.key(self.plan.program)
        assert key is not None, "the files were found"
        return key

    def measure(self) -> Record:
        """Analyse the chain, write its results, and return its facts; those of a failure if it has to be."""
        try:
            return self._kept(*self._analysed())
        except OutputError:
            raise  # other chains could not be written either
        except InputError as error:
            facts = {"failed": True, "problems": error.problems}
        except Exception as error:
            lacking = shortage(error)
            facts = failed_record(
                self.chain.name,
                lacking or f"internal error: {type(error).__name__}: {error}",
                HINTS[lacking] if lacking else None,
            )
        return self._kept(facts, {})

    def _kept(self, facts: Record, tables: Mapping[str, StackedTable]) -> Record:
        record = self.completed(facts)
        ResultsFolder(self.plan.folder).put(self.key, record, tables)
        return record

    def completed(self, facts: Record) -> Record:
        """Return facts with what is known of the chain before it is read."""
        return {
            "results_version": RESULTS_VERSION,
            "key": self.key,
            "program": self.plan.program,
            "name": self.plan.shown("chain", self.chain.name),
            "link": self.plan.shown("chain", self.chain.link or self.chain.name),
            "options": self.plan.options,
            "files": [self._file_facts(file, None) for file in self.chain.files],
            "sources": [],
            "rows": {},
            **facts,
        }

    def _analysed(self) -> tuple[Record, Mapping[str, StackedTable]]:
        """Read the files as one trace, and return facts and tables."""
        from tfrctrace.parsers._native import Progress, analyse
        from tfrctrace.parsers.reading import PassResult
        from tfrctrace.parsers.rotated_names import missing_files
        from tfrctrace.parsers.stretches import with_ends

        settings = self.plan.settings
        files = sorted(self.chain.files, key=lambda file: natural_key(file.name))
        progress = Progress(digests=True)
        collect = frozenset({"flows", "rtp_sources"})
        sources = [_source(file, settings) for file in files]
        try:
            analysis = in_thread(
                lambda: analyse(
                    sources, with_ends(sources, settings, progress), collect=collect, progress=progress
                )
            )
        except FilterError as error:
            text = f"filter `{error.expression}` does not fit its link type: {error.reason}"
            raise InputError([input_problem(files[0].name, "filter", text, hint=error.hint)]) from error
        missing = missing_files([file.name for file in files]) if len(files) > 1 else None
        result = PassResult([analysis], [missing] if missing else [], settings)
        changed = [input_problem(file.name, "changed", why) for file in files if (why := file.change())]
        was_interrupted = any(problem["kind"] in _INTERRUPTIONS for problem in result.problems) or any(
            isinstance(source, tuple) and getattr(source[1], "has_failed", False) for source in sources
        )
        if result.read_nothing or changed or was_interrupted:
            raise InputError(self._publishable([*changed, *result.problems], settings))
        tables = {name: result.table(name) for name in TABLES}
        digests = {file.name: _digest(file, progress.digest(file.path)) for file in files}
        facts = {
            "failed": False,
            "problems": self._publishable(result.problems, settings),
            "files": [self._file_facts(file, digests[file.name]) for file in self.chain.files],
            "sources": list(result.sources),
            "rows": {name: len(table) for name, table in tables.items()},
        }
        return facts, tables

    def _publishable(self, problems: list[Problem], settings: ReadSettings) -> list[Problem]:
        anonymizer = settings.anonymizer
        return problems if anonymizer is None else list(map(anonymizer.problem, problems))

    def _file_facts(self, file: CaptureFile, digest: str | None) -> dict[str, Any]:
        name = self.plan.shown("file", file.name)
        return {"name": name, "bytes": file.size, "version": file.version, "xxh64": digest}


def _source(file: CaptureFile, settings: ReadSettings) -> Source:
    """Return what the core reads, under the name that results have on every machine."""
    if file.is_remote:
        from tfrctrace.parsers.remote import RemoteFile

        return printable(file.name), RemoteFile(file.path, settings.store, etag=str(file.version) or None)
    return printable(file.name), os.fspath(file.path)


def _digest(file: CaptureFile, found: tuple[int, str] | None) -> str | None:
    """Return the digest of a file that was read whole."""
    return found[1] if found is not None and found[0] == file.size else None
