"""Post-hoc trace analysis for TCP and TFRC: traces in, flows, fairness and reports out.

    import tfrctrace

    trace = tfrctrace.open("link.pcapng", filter="tcp port 5201")
    trace.flows                   # one row per flow and direction, a Polars frame
    trace.rtt, trace.losses       # samples, keyed by flow
    trace.throughput("500ms")     # bins of equal width
    trace.report("link.html")

Every column is explained in `tfrctrace.parsers.schema`; times are ns, rates bit/s.
"""

from typing import TYPE_CHECKING

from tfrctrace.base.version import VERSION

if TYPE_CHECKING:
    from tfrctrace.api import Trace
    from tfrctrace.base.datetimes import with_datetimes
    from tfrctrace.base.errors import (
        FilterError,
        InputError,
        NotBuiltError,
        OutputError,
        ReadOnceError,
        TfrctraceError,
        TfrctraceWarning,
        UsageError,
    )
    from tfrctrace.base.pandas_frames import to_pandas
    from tfrctrace.opening import open

__version__ = VERSION

__all__ = [
    "FilterError",
    "InputError",
    "NotBuiltError",
    "OutputError",
    "ReadOnceError",
    "TfrctraceError",
    "TfrctraceWarning",
    "Trace",
    "UsageError",
    "__version__",
    "open",
    "to_pandas",
    "with_datetimes",
]


_MODULES = {
    "Trace": "api",
    "open": "opening",
    "to_pandas": "base.pandas_frames",
    "with_datetimes": "base.datetimes",
}
"""Where names are that are no errors."""


def __getattr__(name: str) -> object:
    """Import a name when it is used first: before the program has begun, Ctrl-C would print a traceback."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'base.errors')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
