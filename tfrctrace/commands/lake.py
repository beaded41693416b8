"""`tfrctrace lake`: the tables of a batch by date and link, for Polars, DuckDB and Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace.commands.console import DONE, Console
from tfrctrace.commands.options.common import Quiet
from tfrctrace.commands.options.grouped_help import output_option


def lake(
    results: Annotated[
        str, typer.Argument(metavar="RESULTS", help="Folder of `tfrctrace batch`.", show_default=False)
    ],
    *,
    output: Annotated[
        str, output_option("--output", "-o", metavar="DIR", help="Folder of the lake.", show_default=False)
    ],
    quiet: Quiet = False,
) -> int:
    """Write the tables of a batch as Parquet by date and link.

    Rows are in DIR/TABLE/date=2026-01-05/link=NAME, which Polars, DuckDB and Spark read as one table each:
    flows, groups, group_buckets and warnings. Written again, only chains that changed are. It is anonymized
    if the batch was.
    """
    from tfrctrace.batch.write_lake import write_lake
    from tfrctrace.reports.output import check_folder
    from tfrctrace.reports.units import counted

    check_folder(output)
    chains, new = write_lake(results, output)
    Console(quiet=quiet).note(f"{counted(chains, 'chain')}, {new} new; tables in `{output}`")
    return DONE
