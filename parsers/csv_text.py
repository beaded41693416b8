"""CSV that is safe: a spreadsheet runs a stranger's `=...`, a terminal obeys its control characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


def csv_cell(value: Any, *, raw: bool) -> Any:  # noqa: ANN401  what a row may hold
    """Return a text as a cell that nothing obeys; with `raw`, and what is no text, as it is."""
    from tfrctrace.parsers._native import safe_csv_cell

    return safe_csv_cell(value) if isinstance(value, str) and not raw else value


def frame_csv(frame: pl.DataFrame, *, raw: bool, header: bool = True) -> bytes:
    """Return the lines of `frame`, quoted only if needed, as awk and cut like it."""
    import polars as pl
    import polars.selectors as cs

    if not raw:
        from tfrctrace.parsers._native import safe_csv_cell

        # most columns have nothing to mend: they are not touched
        text = cs.string()
        is_suspect = text.str.contains(r"^[=+@-]|[^ -~]")
        safe = text.map_elements(safe_csv_cell, return_dtype=pl.String)
        frame = frame.with_columns(pl.when(is_suspect).then(safe).otherwise(text))
    return frame.write_csv(include_header=header).encode()
