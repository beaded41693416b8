"""The program: `tfrctrace` and `python -m tfrctrace`."""

import atexit
import contextlib
import gc
import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    _open_closed_streams()
    # in a process that lives for seconds, the default cycle collection takes a tenth of the time
    gc.set_threshold(50_000, 10, 10)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup makes the program ignore SIGHUP: that stays
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end_by_signal)
    # numpy's BLAS is never called, and where memory is short its threads end the process as if interrupted
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from tfrctrace.base.memory_limit import is_memory_limited

        status = _run_limited() if is_memory_limited() else _run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        status = 130  # the shells' status of a program ended by SIGINT
        print("interrupted", file=sys.stderr)
    _exit(status)


def _open_closed_streams() -> None:
    """Give a standard stream that is closed, as daemons and cron may have it, the null device.

    Otherwise the next file that is opened would get its number, and messages would be written into a result.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # the lowest number that is free is that of the stream
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)  # for workers too
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _run() -> int:
    from tfrctrace.cli import run
    from tfrctrace.commands.console import INTERRUPTED

    status = run(sys.argv[1:])
    if status == INTERRUPTED:
        raise KeyboardInterrupt  # reported as one that comes before
    return status


def _run_limited() -> int:
    from tfrctrace.base.memory_limit import run_in_child
    from tfrctrace.commands.console import report_crash

    return run_in_child(_run, report_crash)


def _end_by_signal(number: int, _frame: object) -> NoReturn:
    """Unwind the stack, so that no unfinished file is left."""
    raise SystemExit(128 + number)  # the shells' status of a program ended by the signal


def _exit(status: int) -> NoReturn:
    """End the process without tearing down the interpreter, but with the functions of `atexit`.

    The teardown takes a fifth of a short run, and with many flows their state would be freed one by one.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # a closed stream was reported before, or its reader has left
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
