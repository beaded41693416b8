"""Unite the folders of several shards, or of several machines, to what one batch would have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import UsageError
from tfrctrace.batch.results_folder import ResultsFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.runs.cache import Record


def merge_results(folders: Sequence[str], output: str) -> int:
    """Copy the chains of `folders` to `output`, and return how many it has.

    Raises `UsageError` if they were made by another program or with other options, or differ in a chain.
    """
    merged = ResultsFolder(output)
    merged.prepare()
    records: dict[str, Record] = {}
    problems: dict[str, Any] = {}
    made_by: tuple[str, Record] | None = None
    for folder in folders:
        part = ResultsFolder(folder)
        problems |= {str(problem): problem for problem in part.index_problems()}
        for record in part.records():
            if made_by is None:
                made_by = folder, record
            _check_alike(*made_by, folder, record)
            known = records.setdefault(record["name"], record)
            if known["key"] != record["key"]:
                raise UsageError(
                    f"`{record['name']}` in `{folder}` was made of other files than in another folder",
                    hint="make both again from the same captures",
                )
            # what one machine failed at another may have done
            if known["failed"] and not record["failed"]:
                records[record["name"]] = record
            if records[record["name"]] is record:
                merged.copy_chain(record["key"], part)
    if not records:
        raise UsageError("there is no chain in these folders")
    merged.write_index(records.values(), problems.values())
    return len(records)


def _check_alike(first_folder: str, first: Record, folder: str, record: Record) -> None:
    if record["program"] != first["program"]:
        raise UsageError(
            f"`{folder}` was made by another version of this program than `{first_folder}`",
            hint="have the same version on all machines, and start the batches again",
        )
    if record["options"] != first["options"]:
        raise UsageError(f"`{folder}` was made with other options than `{first_folder}`")
