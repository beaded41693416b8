"""Post-hoc trace analysis for TCP and TFRC: traces in, flows, fairness and reports out.

    import tfrctrace

    trace = tfrctrace.open("link.pcapng", filter="tcp port 5201")
    trace.flows                   # one row per flow and direction, a Polars frame
    trace.rtt, trace.losses       # samples, keyed by flow
    trace.throughput("500ms")     # bins of equal width
    trace.report("link.html")

Every column is explained in `tfrctrace.parsers.schema`; times are ns, rates bit/s.
"""

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
from tfrctrace.base.version import VERSION
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


def __dir__() -> list[str]:
    return __all__
