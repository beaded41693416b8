"""Perform a batch: find chains, analyse those that are not done, write the index."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.batch.capture_files import find_captures, without_equal_files
from tfrctrace.batch.chain_task import ChainTask
from tfrctrace.batch.chains import find_chains
from tfrctrace.batch.growing_chains import files_to_keep
from tfrctrace.batch.results_folder import ResultsFolder
from tfrctrace.runs.engine import measure_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.batch import Chaining
    from tfrctrace.batch.chain_task import BatchPlan
    from tfrctrace.batch.chains import Chain
    from tfrctrace.parsers.remote import StoreAccess
    from tfrctrace.runs.cache import Record
    from tfrctrace.runs.engine import Progress
    from tfrctrace.runs.workers import Workers


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a batch, which machines perform without knowing of each other."""

    number: int
    of: int
    key: bytes | None = None
    """Of anonymised results, which part they are in must not show whether a name was guessed."""

    def has(self, chain: Chain) -> bool:
        """Return whether the chain belongs to this part, by its name."""
        name = chain.name.encode(errors="surrogateescape")
        digest = hmac.digest(self.key, name, "sha256") if self.key else hashlib.sha256(name).digest()
        return int.from_bytes(digest[:8]) % self.of == self.number - 1


def parse_shard(text: str, key: bytes | None = None) -> Shard:
    """Return the shard that a text such as `3/40` names, of results that are anonymised with a key."""
    number, slash, of = text.partition("/")
    is_number = slash and all(part.isascii() and part.isdigit() and len(part) < 7 for part in (number, of))
    if not is_number or not 1 <= int(number) <= int(of):
        raise UsageError(f"`{text}` is no part of a batch", hint="write `3/40` for the third of forty")
    return Shard(int(number), int(of), key)


@dataclass(frozen=True, slots=True)
class FoundChains:
    """The chains of a batch, and problems found on the way."""

    chains: list[Chain]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch has done."""

    records: list[Record]
    done_before: int
    changed: list[Problem]
    """Files that had another content than before."""
    read_again: dict[str, int]
    """Bytes of files that were read before, by the reason."""


def chains_of(
    captures: Sequence[str], chaining: Chaining, shard: Shard | None = None, store: StoreAccess | None = None
) -> FoundChains:
    """Return the chains among the captures, or those of a shard. Raises `InputError` if there is none."""
    found = find_captures(captures, store)
    problems = list(found.problems)
    files = without_equal_files(found.files, problems)
    if not files:
        raise InputError([*problems, input_problem(captures[0], "no_captures", "holds no capture")])
    chains = find_chains(files, chaining, problems)
    return FoundChains([chain for chain in chains if shard is None or shard.has(chain)], problems)


def perform_batch(
    found: FoundChains,
    plan: BatchPlan,
    workers: Workers,
    *,
    shard: Shard | None = None,
    retry_failed: bool = False,
    verify: bool = False,
    progress: Progress | None = None,
) -> BatchResult:
    """Analyse the chains that have no results yet, and write the index of all."""
    folder = ResultsFolder(plan.folder, retry_failed=retry_failed)
    folder.prepare()
    part = (shard.number, shard.of) if shard else (1, 1)
    may_have_grown = any(len(chain.files) > 1 for chain in found.chains)
    tasks = list(_tasks(found.chains, plan, folder.keys_of_first_files(part) if may_have_grown else {}))
    changed = list(_forget_changed(folder, tasks)) if verify else []
    measured = measure_runs(tasks, workers=workers, store=folder, progress=progress)
    records = [
        record if "files" in record else _kept_failure(folder, task, record)
        for task, record in zip(tasks, measured.records, strict=True)
    ]
    problems = [] if plan.anonymity_key is not None else found.problems
    folder.write_index(records, problems, part=part)
    read_again: Counter[str] = Counter()
    for record in records:
        read_again.update(record.get("read_again", {}))
    return BatchResult(records, measured.cached, changed, read_again)


def _tasks(chains: Sequence[Chain], plan: BatchPlan, before: Mapping[str, str]) -> Iterator[ChainTask]:
    """Give the tasks of the chains, of which those that may grow leave a checkpoint: of days the last one."""
    last_of_links = {chain.link or chain.name: chain for chain in chains}
    for chain in chains:
        is_last = last_of_links[chain.link or chain.name] is chain
        # a checkpoint has addresses
        files = files_to_keep(chain) if is_last and plan.anonymity_key is None else 0
        yield ChainTask(chain, plan, before.get(plan.shown("file", chain.files[0].name)), files)


def _forget_changed(folder: ResultsFolder, tasks: Sequence[ChainTask]) -> Iterator[Problem]:
    """Have chains analysed again whose files changed, though not their size and time, or whose tables did."""
    from tfrctrace.parsers._native import file_digest

    for task in tasks:
        facts = folder.get(task.key)
        for name in folder.damaged_tables(facts) if facts else ():
            folder.forget(task.key)
            text = f"its table `{name}.parquet` is missing or damaged"
            yield input_problem(task.chain.name, "changed", text, severity="warning")
        before = task.find_predecessor()
        if before is not None and before.refusal is None:
            key, known_files = before.key, before.files
        else:
            key, known_files = task.key, facts["files"] if facts else ()
        for file, known in zip(task.chain.files, known_files, strict=False):
            if known["xxh64"] is None:
                continue
            if task.plan.shown_value("content", file_digest(file.path)) != known["xxh64"]:
                folder.forget(key)
                text = "has another content than before, though its size and time are the same"
                yield input_problem(file.name, "changed", text, severity="warning")


def _kept_failure(folder: ResultsFolder, task: ChainTask, record: Record) -> Record:
    """Keep the failure of a worker that could not do so itself."""
    whole = task.completed(record)
    folder.put(task.key, whole)
    return whole
