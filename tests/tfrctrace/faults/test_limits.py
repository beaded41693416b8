"""Too few open files, too little memory, no threads: a sentence and a status, or done nevertheless."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import pytest

from tfrctrace import cli
from tfrctrace.base.shortage import HINTS, shortage

NO_RESOURCES = 71
MEBIBYTE = 1 << 20


@pytest.mark.parametrize("more", [[], ["--join"]], ids=["flows", "joined"])
def test_more_captures_than_files_may_be_open_are_all_read(
    run, write_capture, conversation, most_new_files, more
):
    for number in range(1100):
        write_capture(f"many/{number}.pcap", conversation(10_000 + number)[:2], start_s=number)
    with most_new_files(40):
        outcome = run("flows", "many", "--format", "csv", *more)
    assert (outcome.status, outcome.err) == (0, "")
    assert len(outcome.out.splitlines()) == 1 + 2 * 1100


def limited(which, most, folder, *arguments, loaded="sys"):
    """Run the program in a process that limits itself once it has loaded some modules."""
    code = (
        f"import resource, {loaded}; most = {most}; resource.setrlimit(resource.{which}, (most, most));"
        "from tfrctrace.__main__ import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        # whose environment asks for backtraces waited for ever for that of a failed allocation
        env={**os.environ, "RUST_BACKTRACE": "1"},
    )


def test_a_study_whose_processes_need_more_files_names_the_limit(small_study, tmp_path):
    words = ["experiment", small_study, "-o", "out", "--cache", "none", "--jobs"]
    ended = limited("RLIMIT_NOFILE", 12, tmp_path, *words, "2")
    assert ended.returncode == NO_RESOURCES
    assert ended.stderr.startswith(
        "error: too many open files\nhint:  raise the limit of open files (`ulimit -n`)"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
def test_a_table_for_which_there_is_no_memory_is_not_begun(tmp_path, two_flows):
    modules = "tfrctrace.commands.convert, tfrctrace.parsers._native"
    messages = ""
    # at some of these limits it may be a thread that cannot be started, as threads take turns
    for mebibytes in (16, 18, 20, 22, 24):
        used = "int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()"
        most = f"{used} + {mebibytes * MEBIBYTE}"
        ended = limited(
            "RLIMIT_AS", most, tmp_path, "convert", two_flows, "-o", "packets.parquet", loaded=modules
        )
        assert ended.returncode == NO_RESOURCES
        messages += ended.stderr
        # a process that is aborted leaves its hidden part behind, never a table
        assert not (tmp_path / "packets.parquet").exists()
    # the allocator prints first
    assert re.search(r"^error: out of memory.*\nhint:  raise the memory limit", messages, re.MULTILINE)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
def test_flows_need_little_memory(run, tmp_path, two_flows):
    ended = limited("RLIMIT_AS", 150 * MEBIBYTE, tmp_path, "flows", two_flows, "--format", "csv")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == run("flows", two_flows, "--format", "csv").out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
@pytest.mark.parametrize("mebibytes", [60, 200, 400, 700, 1000])
@pytest.mark.parametrize("command", [["replay"], ["metrics"], ["convert", "-o", "packets.parquet"]], ids=str)
def test_every_limit_of_memory_ends_with_a_sentence_or_a_result(tmp_path, two_flows, command, mebibytes):
    # Polars, BLAS and their allocators abort, crash or exit, each at other limits
    ended = limited("RLIMIT_AS", mebibytes * MEBIBYTE, tmp_path, command[0], two_flows, *command[1:])
    assert ended.returncode in {0, NO_RESOURCES}
    if ended.returncode:
        assert "\nhint:  raise the " in f"\n{ended.stderr}"
        assert "error: out of memory" in ended.stderr or "error: no more threads" in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
@pytest.mark.parametrize(
    ("ends", "status", "words"),
    [
        ("os.abort()", NO_RESOURCES, "out of memory: SIGABRT ended the process"),
        ("os.write(2, b'failed') and os.abort()", NO_RESOURCES, "failed\nerror: out of memory: SIGABRT"),
        ("os._exit(1)", NO_RESOURCES, "out of memory: a library ended the process"),
        ("sys.exit(5)", 5, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_below_a_limit_the_end_of_the_process_is_reported(tmp_path, ends, status, words):
    script = (
        "import os, sys\n"
        "from tfrctrace.base.memory_limit import run_in_child\n"
        "from tfrctrace.commands.console import report_crash\n"
        f"sys.exit(run_in_child(lambda: {ends}, report_crash))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert words in ended.stderr


def wrapped(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads or processes"),
        (RuntimeError("can't start new thread"), "no more threads or processes"),
        (ImportError("libarrow.so: failed to map segment from shared object"), "out of memory"),
        (wrapped(ImportError("numpy is broken"), ImportError("x: cannot allocate memory")), "out of memory"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_the_machine_refused_is_no_bug_of_the_program(monkeypatch, capsys, error, words):
    def refuse(_):
        raise error

    monkeypatch.setattr(cli, "program", refuse)
    assert cli.run(["flows", "a.pcap"]) == NO_RESOURCES
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {words}")
    assert "\nhint:  raise the " in printed
    assert shortage(error) in HINTS


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        SystemError("<built-in function compile> returned NULL without setting an exception"),
        SyntaxError("expected ':'"),  # in a module of Polars, seen at a limit of 62.5 MiB
    ],
)
def test_an_interpreter_that_fails_below_a_limit_lacks_memory(monkeypatch, error, limited):
    monkeypatch.setattr("tfrctrace.base.shortage.is_memory_limited", lambda: limited)
    assert shortage(error) == ("out of memory" if limited else None)


@pytest.mark.parametrize(
    "error", [RuntimeError("set changed size"), ImportError("no x"), OSError(errno.EPIPE, "")]
)
def test_a_bug_is_no_shortage(error):
    assert shortage(error) is None


def test_a_run_without_memory_takes_none_of_the_others_with_it(run, small_study, monkeypatch):
    from tfrctrace.study import run_record

    measure = run_record.record_run

    def record_run(path, *more):
        if "n2-1" in path:
            raise MemoryError
        return measure(path, *more)

    monkeypatch.setattr(run_record, "record_run", record_run)
    outcome = run("experiment", small_study, "-o", "out", "--cache", "none", "--jobs", "1", "--format", "csv")
    assert outcome.status == 3
    assert "error: `runs/red-n2-1.tr.xz`: out of memory\nhint: " in outcome.err
