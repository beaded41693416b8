"""`tfrctrace merge`: the results of several shards or machines as those of one batch."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace.commands.console import DONE, Console
from tfrctrace.commands.options.common import Quiet
from tfrctrace.commands.options.grouped_help import output_option


def merge(
    results: Annotated[
        list[str], typer.Argument(metavar="RESULTS", help="Folders of `tfrctrace batch`.", show_default=False)
    ],
    *,
    output: Annotated[
        str,
        output_option(
            "--output", "-o", metavar="DIR", help="Folder of the merged results.", show_default=False
        ),
    ],
    quiet: Quiet = False,
) -> int:
    """Merge the results of batches, of shards or machines.

    The merged folder is what one batch over all captures would have written, byte for byte.
    """
    from tfrctrace.batch.merge_results import merge_results
    from tfrctrace.reports.output import check_folder
    from tfrctrace.reports.units import counted

    check_folder(output)
    chains = merge_results(results, output)
    Console(quiet=quiet).note(f"{counted(chains, 'chain')} in `{output}`")
    return DONE
