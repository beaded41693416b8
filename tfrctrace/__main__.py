"""The program: `tfrctrace` and `python -m tfrctrace`."""

import atexit
import contextlib
import gc
import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and leave with its exit status."""
    # of a life of seconds, to look for cycles as often as in a long one takes a tenth
    gc.set_threshold(50_000, 10, 10)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # a handler that the caller has set to "ignore", as nohup does, stays
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        from tfrctrace.cli import run

        status = run(sys.argv[1:])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        status = 130  # as shells say it of a program that SIGINT has ended
    _leave(status)


def _end(number: int, _frame: object) -> NoReturn:
    """End by way of all `finally`: no unfinished file is left."""
    raise SystemExit(128 + number)  # as shells say it of a program that the signal has ended


def _leave(status: int) -> NoReturn:
    """End the process without taking the interpreter and its modules apart.

    That took a fifth of a short run, and with many flows their state was freed piece by piece as well.
    What others want done at the end is done.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # who has closed it was told so before, or does not want to know
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
