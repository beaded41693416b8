"""`tfrctrace mcp`: answers to programs, such as assistants, about captures."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import DONE
from tfrctrace.commands.options.anonymity_options import AnonymityOptions


def mcp(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER",
            help="Folders with captures and audits; nothing outside of them is read.",
            show_default=False,
        ),
    ],
    *,
    anonymity: AnonymityOptions,
) -> int:
    """Answer questions of assistants about captures.

    An assistant starts the command and asks by the Model Context Protocol, through standard input and output:
    which captures and flows there are, why a flow was slow, what was lost near a time, single packets, how
    two captures differ, and the incidents of an audit. A capture is read at the first question about it and
    kept; an answer has at most 2,000 bytes, unless more are asked for. Anonymized, captures have numbers for
    names, and audits are refused. Needs `pip install 'tfrctrace[mcp]'`.
    """
    from tfrctrace.questions.folders import Folders

    key = anonymity.kept_key("`tfrctrace mcp`")
    allowed = Folders(folders, hides_names=key is not None)
    try:
        from tfrctrace.questions.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"mcp", "pydantic"}:
            raise
        raise UsageError(f"`{error.name}` is not installed", hint="pip install 'tfrctrace[mcp]'") from error
    serve(allowed, key)
    return DONE
