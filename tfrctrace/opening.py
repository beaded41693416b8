"""`tfrctrace.open`: what its arguments mean, checked before anything is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from tfrctrace.api import Trace
from tfrctrace.base.signatures import with_keywords_of
from tfrctrace.parsers.reading_settings import ReadingArguments

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from tfrctrace.api import StrPath
    from tfrctrace.parsers.anonymity import Anonymizer


@with_keywords_of(ReadingArguments)
def open(
    paths: StrPath | Iterable[StrPath],
    *,
    bin_width: str | timedelta | None = None,
    anonymize: bool | bytes = False,
    **reading: Unpack[ReadingArguments],
) -> Trace:
    """Return the trace in `paths`: captures, directories of captures, or `-` for standard input.

    Nothing is read before something is asked of the trace, and each file is read again for what was not
    collected yet. Standard input cannot be read twice: its one pass collects everything.

    The keywords after `anonymize` say how the inputs are read; each is explained in
    `tfrctrace.parsers.reading_settings.ReadingArguments`. Several files are separate traces, with flows
    numbered through, unless they are joined or a pair. `bin_width` such as `"10ms"` sets the width of
    `Trace.bins`. With `anonymize` results have other addresses and names (docs/anonymity.md), with a key of
    at least 16 bytes the same ones each time.

    Raises `FilterError` for a wrong filter, and `InputError` (here or at the first question) if none of the
    inputs can be read. If only some can, or with a caveat, a `TfrctraceWarning` says so.
    """
    from tfrctrace.base.durations import parse_duration_ns
    from tfrctrace.parsers.logs import check_logs
    from tfrctrace.parsers.reading_settings import read_settings
    from tfrctrace.parsers.sources import find_inputs

    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    settings = read_settings(reading, _anonymizer(anonymize))
    inputs = find_inputs([os.fspath(path) for path in named], join=settings.join, store=settings.store)
    check_logs(settings.log_of, inputs.names)
    if settings.pair is not None:
        from tfrctrace.parsers.pairing import check_pair

        check_pair(inputs.names, settings.pair)
    return Trace(
        inputs, settings, bin_ns=None if bin_width is None else parse_duration_ns(bin_width, "bin_width")
    )


def _anonymizer(anonymize: bool | bytes) -> Anonymizer | None:
    if anonymize is False:
        return None
    from tfrctrace.parsers.anonymity import Anonymizer

    return Anonymizer(None if anonymize is True else anonymize)
