"""The forms in which a study's results are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

StudyFormat = Literal["html", "csv", "parquet", "json", "markdown", "latex", "svg", "pdf", "png", "runs"]

SAVED_RUNS: Final = "runs.json.xz"
"""The file of the form `runs`."""

FORMATS: Final[tuple[StudyFormat, ...]] = get_args(StudyFormat)


def check_formats(names: Sequence[str]) -> list[StudyFormat]:
    """Return the forms that are called `names`. Raises `UsageError` for one that there is not."""
    for name in names:
        if name not in FORMATS:
            raise UsageError(f"there is no form `{name}`", hint=f"there are {', '.join(FORMATS)}")
    return [cast("StudyFormat", name) for name in names]
