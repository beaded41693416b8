"""The folder of a batch: a folder for each chain, whose facts are written last, and an index.

    results/chains/KEY/flows.parquet, groups.parquet, group_buckets.parquet, facts.json, 30.checkpoint
    results/index.json, or shards/3-of-40.json until all are done

The folder of a chain appears whole, by a rename. A chain whose `facts.json` is there is done, so a batch that
was killed goes on where it was, and several may work in one folder: equal keys have equal content.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tfrctrace.base.digests import sha256_of
from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.reports.output import make_folder, open_output, remove_stale_parts, replacing_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.batch.read_chain import NewCheckpoint
    from tfrctrace.parsers.reading import StackedTable
    from tfrctrace.runs.cache import Record

RESULTS_VERSION: Final = 2
"""Changes with the layout of the folder and of its facts."""

_CHECKPOINT: Final = ".checkpoint"
"""Suffix of the state of a pass after so many files of a chain, for the next batch: no result."""

_FACTS: Final = "facts.json"
_INDEX: Final = "index.json"
_SHARDS: Final = "shards"
_MOST_DIGITS: Final = 10
_KEY_LENGTH: Final = 64
_KEY_CHARACTERS: Final = frozenset("0123456789abcdef")


class ResultsFolder:
    """Results of chains, by their keys."""

    is_filled_by_tasks: ClassVar[bool] = True

    def __init__(self, path: str, *, retry_failed: bool = False) -> None:
        """Use the folder `path`; with `retry_failed` chains that failed count as not done."""
        self._path = Path(path)
        self._retry_failed = retry_failed

    def prepare(self) -> None:
        """Make the folder. Raises `UsageError` if it holds something else, or results of another layout."""
        make_folder(str(self._path / "chains"))
        remove_stale_parts(str(self._path))
        self._read(_INDEX)

    def get(self, key: str) -> Record | None:
        """Return the facts of a chain that is done."""
        if not _is_key(key):
            return None  # an index that somebody else wrote may lead out of the folder
        try:
            facts: Record = json.loads((self._place(key) / _FACTS).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        is_it = _has_facts(facts) and facts["key"] == key
        is_to_do = self._retry_failed and is_it and facts["failed"]
        return facts if is_it and not is_to_do else None

    def put(
        self,
        key: str,
        record: Record,
        tables: Mapping[str, StackedTable] | None = None,
        checkpoint: NewCheckpoint | None = None,
    ) -> None:
        """Write the tables and the facts of a chain, in place of what it had.

        A checkpoint is moved there.
        """
        from tfrctrace.parsers._native import empty_table, write_parquet

        with replacing_folder(str(self._place(key)), str(self._path)) as place:
            digests = {}
            for name, table in (tables or {}).items():
                path = os.path.join(place, f"{name}.parquet")
                with open(path, "wb") as file:
                    write_parquet(file.write, empty_table(name), table.parts())
                digests[name] = sha256_of(path)
            if checkpoint is not None:
                os.rename(checkpoint.path, os.path.join(place, f"{checkpoint.files}{_CHECKPOINT}"))
            facts = {"key": key, "results_version": RESULTS_VERSION, "tables": digests, **record}
            with open(os.path.join(place, _FACTS), "w", encoding="utf-8") as file:
                file.write(_json(facts))

    def trim(self) -> None:
        """Keep everything: results of earlier files may be wanted."""

    def checkpoint(self, key: str) -> tuple[str, int] | None:
        """Return where the checkpoint of a chain is, and after how many files; None if it has none."""
        for path in self._place(key).glob(f"*{_CHECKPOINT}"):
            if path.stem.isascii() and path.stem.isdigit() and len(path.stem) < _MOST_DIGITS:
                return str(path), int(path.stem)
        return None

    def keys_of_first_files(self, part: tuple[int, int]) -> dict[str, str]:
        """Return the keys of chains that the batch, or its part, had before, by their first files."""
        entries = self._read(_index_of_part(part)).get("chains", ())
        return {entry["first_file"]: entry["key"] for entry in entries if _is_key(entry["key"])}

    def table_path(self, facts: Record, name: str) -> Path:
        """Return where a table of a chain is. Raises `InputError` if it is not as it was written."""
        if not self._is_whole(facts, name):
            raise self.refused_table(facts, name, "is missing or damaged")
        return self._table(facts, name)

    def damaged_tables(self, facts: Record) -> list[str]:
        """Return the names of the tables of a chain that are not as they were written."""
        return [name for name in facts["tables"] if not self._is_whole(facts, name)]

    def _is_whole(self, facts: Record, name: str) -> bool:
        try:
            return bool(sha256_of(self._table(facts, name)) == facts["tables"].get(name))
        except OSError:
            return False

    def _table(self, facts: Record, name: str) -> Path:
        return self._place(facts["key"]) / f"{name}.parquet"

    def refused_table(self, facts: Record, name: str, why: str) -> InputError:
        """Return the error of a table that cannot be used."""
        text = f"its table `{name}.parquet` {why}"
        hint = f"remove `{self._place(facts['key'])}`, and read the captures again"
        return InputError([input_problem(facts["name"], "results", text, hint=hint)])

    def forget(self, key: str) -> None:
        """Have a chain analysed again."""
        (self._place(key) / _FACTS).unlink(missing_ok=True)

    def write_index(
        self, records: Collection[Record], problems: Iterable[Problem] = (), *, part: tuple[int, int] = (1, 1)
    ) -> None:
        """Write what the batch consists of: the same text whoever performed which chain, and when.

        `part` is the number of a shard, of how many; the last one writes the index.
        """
        of = part[1]
        index = _index_of(map(_entry, records), problems)
        own = _index_of_part(part)
        files = {file["name"] for record in records for file in record["files"]}
        self._remove_superseded(self._read(own), index, files)
        if of == 1:
            self._write(_INDEX, index)
            return
        make_folder(str(self._path / _SHARDS))
        self._write(own, index)
        shards = [self._read(_index_of_part((one, of))) for one in range(1, of + 1)]
        if all(shards):
            self._write(_INDEX, _united(shards))

    def _remove_superseded(
        self, before: Mapping[str, Any], index: Mapping[str, Any], files: Container[str]
    ) -> None:
        """Remove what chains had before they got another file: a scan of all tables would count it twice."""
        keys = {entry["key"] for entry in index["chains"]}
        for entry in before.get("chains", ()):
            key = entry["key"]
            if entry["first_file"] in files and key not in keys and _is_key(key):
                self.forget(key)
                shutil.rmtree(self._place(key), ignore_errors=True)

    def index_entries(self) -> list[dict[str, Any]]:
        """Return the chains of the index; raises `UsageError` if there is none."""
        index = self._whole_index()
        if not index:
            raise UsageError(
                f"`{self._path}` holds no results of a batch", hint="make them with `tfrctrace batch`"
            )
        self.prepare()
        return list(index["chains"])

    def index_problems(self) -> list[Any]:
        """Return what was wrong with the inputs of the batch, beside the chains."""
        return list(self._whole_index().get("problems", ()))

    def records(self) -> Iterator[Record]:
        """Give the facts of the chains of the index."""
        for entry in self.index_entries():
            facts = self.get(entry["key"])
            if facts is None:
                raise UsageError(
                    f"`{self._path}` lacks the results of `{entry['name']}`",
                    hint="start the batch again: it does what is missing",
                )
            yield facts

    def all_records(self) -> list[Record]:
        """Return the facts of every chain that was ever read, also of files that are gone since, by name.

        Of several of one name it is the one with most bytes, and among equals that of the index.
        """
        indexed = {entry["key"] for entry in self.index_entries()}
        found: dict[str, tuple[tuple[int, bool, str], Record]] = {}
        for place in self._path.glob(f"chains/*/{_FACTS}"):
            facts = self.get(place.parent.name)
            if facts is None or facts.get("results_version") != RESULTS_VERSION:
                continue
            rank = (sum(fact["bytes"] for fact in facts["files"]), facts["key"] in indexed, facts["key"])
            found[facts["name"]] = max(found.get(facts["name"], (rank, facts)), (rank, facts), key=_first)
        return [facts for _, (_, facts) in sorted(found.items())]

    def copy_chain(self, key: str, other: ResultsFolder) -> None:
        """Copy the results of a chain from another folder."""
        with replacing_folder(str(self._place(key)), str(self._path)) as place:
            shutil.copytree(
                other._place(key), place, dirs_exist_ok=True, ignore=shutil.ignore_patterns(f"*{_CHECKPOINT}")
            )

    def _whole_index(self) -> dict[str, Any]:
        """Return the index, or that of the shards that are done."""
        shards = sorted((self._path / _SHARDS).glob("*.json"))
        return self._read(_INDEX) or _united([self._read(f"{_SHARDS}/{shard.name}") for shard in shards])

    def _write(self, name: str, index: Mapping[str, Any]) -> None:
        with open_output(str(self._path / name)) as file:
            file.write(_json(index).encode())

    def _read(self, name: str) -> dict[str, Any]:
        """Return an index; an empty one if it is missing or damaged. Refuse that of another layout."""
        from tfrctrace.metrics.results.batch import BatchIndex
        from tfrctrace.metrics.results.records import is_a

        try:
            index = json.loads((self._path / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        version = index.get("results_version") if isinstance(index, dict) else None
        if version not in (None, RESULTS_VERSION):
            raise UsageError(
                f"`{self._path}` holds results of version {version}, this program writes {RESULTS_VERSION}",
                hint="name another folder with `-o`",
            )
        return index if is_a(BatchIndex, index) else {}

    def _place(self, key: str) -> Path:
        return self._path / "chains" / key


def _has_facts(facts: Record) -> bool:
    """Return whether facts of a chain, which anybody may have written, have the form in which they are."""
    from tfrctrace.metrics.results.batch import ChainFacts, GroupingOptions
    from tfrctrace.metrics.results.records import is_a

    return (
        is_a(ChainFacts, facts)
        and is_a(GroupingOptions, facts["options"])
        and bool(facts["files"])
        and all(_has_extent(source) for source in facts["sources"])
    )


def _has_extent(source: Mapping[str, Any]) -> bool:
    """Return whether a source ends after it starts, or has no packet."""
    start_ns, end_ns = source["start_ns"], source["end_ns"]
    if start_ns is None or end_ns is None:
        return start_ns is end_ns
    return bool(start_ns <= end_ns)


def _json(value: Mapping[str, Any]) -> str:
    """Return JSON with a line for each member, and for each element of one: `json` indents slowly."""
    members = []
    for name in sorted(value):
        member = value[name]
        if isinstance(member, list) and member:
            elements = ",\n  ".join(json.dumps(one, sort_keys=True) for one in member)
            members.append(f' "{name}": [\n  {elements}\n ]')
        else:
            members.append(f' "{name}": {json.dumps(member, sort_keys=True)}')
    return "{\n" + ",\n".join(members) + "\n}\n"


def _first(pair: tuple[tuple[int, bool, str], Record]) -> tuple[int, bool, str]:
    return pair[0]


def _index_of_part(part: tuple[int, int]) -> str:
    """Return the name of the index of a whole batch, or of that of a shard."""
    number, of = part
    return _INDEX if of == 1 else f"{_SHARDS}/{number}-of-{of}.json"


def _is_key(name: str) -> bool:
    return len(name) == _KEY_LENGTH and set(name) <= _KEY_CHARACTERS


def _index_of(entries: Iterable[Mapping[str, Any]], problems: Iterable[Problem]) -> dict[str, Any]:
    chains = sorted(entries, key=lambda one: (one["name"], one["key"]))
    once = {json.dumps(problem, sort_keys=True): problem for problem in problems}
    return {
        "results_version": RESULTS_VERSION,
        "chains": chains,
        "problems": [problem for _, problem in sorted(once.items())],
    }


def _united(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    shards = [shard for shard in shards if shard]
    if not shards:
        return {}
    entries = [entry for shard in shards for entry in shard["chains"]]
    return _index_of(entries, [problem for shard in shards for problem in shard["problems"]])


def _entry(record: Record) -> dict[str, Any]:
    """Return the line of the index about a chain."""
    sources = record["sources"]
    starts = [source["start_ns"] for source in sources if source["start_ns"] is not None]
    ends = [source["end_ns"] for source in sources if source["end_ns"] is not None]
    severities = [one["severity"] for one in record["problems"]]
    return {
        "name": record["name"],
        "key": record["key"],
        "failed": record["failed"],
        "files": len(record["files"]),
        "first_file": record["files"][0]["name"],
        "bytes": sum(one["bytes"] for one in record["files"]),
        "start_ns": min(starts, default=None),
        "end_ns": max(ends, default=None),
        "packets": sum(source["packets"] for source in sources),
        "flow_rows": record["rows"].get("flows", 0),
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
    }
