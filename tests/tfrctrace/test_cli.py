"""The program as a user meets it: exit status, messages, what goes where."""

import ast
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import typer
from patience import PATIENCE_S

from tfrctrace import __version__, cli

DONE, WRONG_USAGE, NOT_READ, INTERNAL_ERROR, INTERRUPTED = 0, 2, 3, 70, 130
COMMANDS = sorted(cli.COMMANDS)
TWO_FLOWS = Path(__file__).parents[2] / "sample_traces/two-flows.pcapng.gz"
MIXED = TWO_FLOWS.with_name("mixed.pcap.zst")
SMALL = Path(__file__).parents[1] / "data/captures/linux-small-flows-snd.pcap.gz"


def test_the_version_is_shown(run):
    outcome = run("--version")
    assert (outcome.status, outcome.out) == (DONE, f"tfrctrace {__version__}\n")


def test_without_arguments_the_help_is_shown(run):
    assert run().out == run("--help").out
    assert "Usage: tfrctrace" in run().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_ends_with_an_example(run, command):
    outcome = run(command, "-h")
    assert outcome.status == DONE
    assert re.search(rf"Example: tfrctrace {command} .*\n\Z", outcome.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_into_80_columns_and_shows_repeatable_arguments_with_dots(run, command):
    lines = run(command, "--help").out.splitlines()  # on 80 columns
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"Usage: tfrctrace {command} [OPTIONS]")
    assert lines[0].endswith("TRACE...") == (
        command in {"plot", "flows", "why", "groups", "convert", "metrics", "check", "replay"}
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(command):
    (parameters,) = [
        group.params
        for name, group in typer.main.get_command(cli.program()).commands.items()
        if name == command
    ]
    assert all(parameter.help for parameter in parameters)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_shells(run, shell):
    outcome = run(environment={"_TFRCTRACE_COMPLETE": f"source_{shell}"})
    assert outcome.status == DONE
    assert "tfrctrace" in outcome.out


def test_commands_are_completed(run):
    environment = {"_TFRCTRACE_COMPLETE": "complete_bash", "COMP_WORDS": "tfrctrace fl", "COMP_CWORD": "1"}
    assert run(environment=environment).out.strip() == "flows"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["metrics", "-m", "jain_with"], {"jain_without_sparse"}),
        (["metrics", "--by", "host", "-m", "rtt_p9"], {"rtt_p95_ms", "rtt_p99_ms"}),
        (["groups", "--by", "pre"], {"prefix"}),
        (["check", "--require", "p95(rtt_p9"], {"p95(rtt_p95_ms)", "p95(rtt_p99_ms)"}),
        (["check", "--warn", "medi"], {"median("}),
        (["metrics", "--label", "a=transport t"], {"a=transport tcp", "a=transport tfrc"}),
        (["metrics", "--label", "a=po"], {"a=port "}),
        (["metrics", "--label", "mine=port 80", "--weight", "mi"], {"mine="}),
        (["metrics", "--label", "mine"], set()),
    ],
)
def test_values_of_options_are_completed(run, monkeypatch, words, found):
    monkeypatch.setenv("_TFRCTRACE_COMPLETE", "complete_bash")
    # the last word is being written, its quote still open
    monkeypatch.setenv("COMP_WORDS", f"{shlex.join(['tfrctrace', *words[:-1]])} '{words[-1]}")
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert set(run().out.split("\n")) - {""} == found


def test_a_read_capture_is_status_0_with_nothing_on_stderr(run, write_capture, conversation):
    write_capture("a.pcap", conversation())
    outcome = run("flows", "a.pcap")
    assert (outcome.status, outcome.err) == (DONE, "")
    assert "192.0.2.1:40000 → 198.51.100.7:80" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["flows"], "missing argument"),
        (["flows", "--nonsense", "a.pcap"], "no such option: --nonsense"),
        (["flows", "--format", "xml", "a.pcap"], "invalid value for '--format'"),
        (["flows", "--max-flows", "0", "a.pcap"], "invalid value for '--max-flows'"),
        (
            ["flows", "--rows", "3", "--format", "json", "a.pcap"],
            "`--sort` and `--rows` apply to the text table only",
        ),
        (["flows", "--sort", "rtt", "-o", "x.csv", "a.pcap"], "but the format is csv"),
        (["flows", "--filter", "tcp prt 80", "a.pcap"], "filter `tcp prt 80`: can't parse filter expression"),
        (["flows", "-", "a.pcap"], "cannot be read together with other inputs"),
        (["flows", "-o", "no/such/folder/x.json", "a.pcap"], "cannot write `no/such/folder/x.json`"),
        (["convert", "a.pcap", "-o", "x.xls"], "is not a known format"),
        (
            ["convert", "a.pcap", "-o", "x.csv", "--bin-width", "1s"],
            "`--bin-width` applies to `--what bins` only",
        ),
        (
            ["convert", "a.pcap", "-o", "x.csv", "-w", "bins", "--bin-width", "1 lightyear"],
            "is not a duration",
        ),
        (
            ["convert", "a.pcap", "-o", "x.csv", "-w", "flows", "--max-samples", "5"],
            "`--max-samples` applies to",
        ),
        (["convert", "a.pcap"], "missing option '--output'"),
        (["report", "a.pcap", "-o", "no/such/folder/x.html"], "cannot write `no/such/folder/x.html`"),
        (
            ["convert", "./a.pcap", "-o", "a.pcap", "--format", "csv"],
            "`a.pcap` is an input and cannot be overwritten",
        ),
        (["groups", "--by", "host", "--by", "port", "a.pcap"], "`--by` is given twice"),
        (["nonsense"], "no such command 'nonsense'"),
        (["plot", "a.pcap"], "missing option '--kind' / '-k'. Choose from: throughput, sequence, rtt,"),
        (["report", "a.pcap", "--results", "a.pcap"], "cannot write `a.pcap`: is not a directory"),
        (["check", "a.pcap", "--limits", "a.pcap"], "`a.pcap`: not TOML: invalid UTF-8 at byte 0"),
    ],
)
def test_wrong_usage_is_status_2_with_one_message(run, write_capture, conversation, arguments, words):
    write_capture("a.pcap", conversation())
    outcome = run(*arguments)
    assert (outcome.status, outcome.out) == (WRONG_USAGE, "")
    first, *rest = outcome.err.splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert all(line.startswith("hint:  ") for line in rest)


def test_a_bad_filter_is_refused_before_anything_is_read(run):
    outcome = run("flows", "--filter", "tcp prt 80", "nowhere.pcap")
    assert outcome.status == WRONG_USAGE
    assert "nowhere" not in outcome.err


def test_a_filter_for_another_link_type_names_the_capture_it_does_not_fit(run, write_capture, conversation):
    write_capture("a.pcap", conversation())
    outcome = run("flows", "--filter", "inbound", "a.pcap")
    assert outcome.status == NOT_READ
    assert "`a.pcap`: filter `inbound` does not fit its link type: inbound/outbound not supp" in outcome.err


@pytest.mark.parametrize(
    "command", ["flows", "metrics", "replay", "report -o a.html", "convert -o a.csv", "check --warn jain>0"]
)
def test_a_capture_that_was_cut_at_its_start_is_no_bug(run, tmp_path, command):
    (tmp_path / "a.pcap").write_bytes(bytes.fromhex("d4c3b2a1"))
    name, *more = command.split()
    outcome = run(name, "a.pcap", *more)
    assert outcome.status == DONE
    assert outcome.err.startswith("warning: `a.pcap` at byte 0: the file ends inside a file header")


def test_one_unreadable_input_is_status_3_and_the_others_are_shown(run, write_capture, conversation):
    write_capture("a.pcap", conversation())
    outcome = run("flows", "a.pcap", "nowhere.pcap")
    assert outcome.status == NOT_READ
    assert outcome.err.startswith("error: `nowhere.pcap`: ")
    assert "192.0.2.1:40000" in outcome.out


def test_when_nothing_can_be_read_there_is_no_output(run):
    outcome = run("flows", "--format", "json", "nowhere.pcap")
    assert (outcome.status, outcome.out) == (NOT_READ, "")


def test_a_capture_cut_at_its_end_is_a_warning(run, write_capture, conversation):
    write_capture("a.pcap", conversation(), cut=3)
    outcome = run("flows", "a.pcap")
    assert outcome.status == DONE
    assert outcome.err.startswith("warning: `a.pcap` packet 12 at byte ")
    assert "         11 packets before it were analysed\n" in outcome.err


def test_strict_makes_an_error_of_a_warning(run, write_capture, conversation):
    write_capture("a.pcap", conversation(), cut=3)
    outcome = run("flows", "--strict", "a.pcap")
    assert outcome.status == NOT_READ
    assert outcome.err.startswith("error: `a.pcap` packet 12 at byte ")
    assert "192.0.2.1:40000" in outcome.out


def test_quiet_says_nothing_but_errors(run, write_capture, conversation):
    write_capture("a.pcap", conversation(), cut=3)
    assert run("flows", "--quiet", "a.pcap").err == ""
    assert run("report", "--quiet", "a.pcap").err == ""
    assert run("flows", "--quiet", "--strict", "a.pcap").err.startswith("error: ")


def test_standard_input_is_read(run, write_capture, conversation):
    content = write_capture("a.pcap", conversation()).read_bytes()
    outcome = run("flows", "-", stdin=content)
    assert outcome.status == DONE
    assert outcome.out.startswith("standard input: pcap, Ethernet, 12 packets")


def test_an_internal_error_is_one_message_and_a_traceback_only_if_asked_for(run, write_capture, conversation):
    write_capture("a.pcap", conversation())
    lacking = "import tfrctrace.reports.printers.flows as t; del t.write_flows"
    broken = f"{lacking}; from tfrctrace.__main__ import main; main()"
    command = [sys.executable, "-c", broken, "flows", "a.pcap"]
    plain = run_in(write_capture, command)
    assert plain.returncode == INTERNAL_ERROR
    assert plain.stderr.startswith("error: internal error: ImportError: ")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in run_in(write_capture, command, TFRCTRACE_DEBUG="1").stderr


def run_in(write_capture, command, **environment):
    folder = write_capture("empty.pcap", []).parent
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["flows", "--format", "json"],
        ["flows", "--format", "csv"],
        ["flows", "--rows", "0"],
        ["convert", "-w", "packets", "-o", "-", "--format", "csv"],
        ["convert", "-w", "packets", "-o", "-", "--format", "parquet"],
    ],
)
def test_a_reader_that_has_seen_enough_ends_the_program_quietly(write_capture, conversation, arguments):
    # the client's port is at byte 34 of the way there and at byte 36 of the way back
    there, back, *_ = conversation()
    frames = []
    for port in range(1000, 3000):
        number = port.to_bytes(2, "big")
        frames += [there[:34] + number + there[36:], back[:36] + number + back[38:]]
    path = write_capture("many.pcap", frames)
    command = [sys.executable, "-m", "tfrctrace", *arguments, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert (process.wait(timeout=PATIENCE_S), errors) == (DONE, "")


def in_a_terminal(arguments, *, until=None, then=None, environment=None, stdin=subprocess.DEVNULL):
    """Run the program with stderr and stdout on a terminal; return status and what was shown."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tfrctrace", *arguments],
        stdin=stdin,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **(environment or {})},
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    piece = os.read(leader, 65_536)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                shown += piece
            if until and until in shown:
                then(process)
                until = None
        return process.wait(timeout=PATIENCE_S), shown.decode()
    finally:
        process.kill()
        os.close(leader)


def test_on_a_terminal_messages_have_colour(write_capture, conversation):
    _, shown = in_a_terminal(["flows", "nowhere.pcap"], environment={"NO_COLOR": ""})
    assert "\x1b[1;31merror:\x1b[0m `nowhere.pcap`" in shown


def test_no_color_is_obeyed(write_capture, conversation):
    path = write_capture("a.pcap", conversation(), cut=3)
    _, shown = in_a_terminal(["flows", str(path)], environment={"NO_COLOR": "1"})
    assert "192.0.2.1:40000" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown)


def test_the_table_fits_a_terminal_and_leaves_nothing_out(write_capture, conversation):
    path = write_capture("a.pcap", conversation())
    _, shown = in_a_terminal(["flows", str(path)], environment={"NO_COLOR": "1"})
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    table = plain[plain.index("flow ") :].splitlines()
    assert max(map(len, table)) <= 80
    assert "192.0.2.1:40000" in plain
    assert "198.51.100.7:80" in plain


def test_an_interrupt_ends_the_program_with_130_and_without_a_traceback():
    reader, writer = os.pipe()
    try:
        status, shown = in_a_terminal(
            ["flows", "-"],
            until=b"packets/s",
            then=lambda process: process.send_signal(signal.SIGINT),
            stdin=reader,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert status == INTERRUPTED
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "slow.pcapng.gz", TWO_FLOWS, "-r", "count(flow) > 0", "--jobs", "2"],
        ["convert", "slow.pcapng.gz", "--what", "packets", "-o", "packets.csv"],
    ],
    ids=["check", "convert"],
)
def test_an_interrupt_is_obeyed_while_an_input_has_nothing_to_give(tmp_path, arguments):
    os.mkfifo(tmp_path / "slow.pcapng.gz")
    # loaded first, polars has its handler of SIGINT in place, after which system calls go on by themselves
    command = [sys.executable, "-c", "import polars; from tfrctrace.__main__ import main; main()", *arguments]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as running,
        (tmp_path / "slow.pcapng.gz").open("wb", buffering=0) as writer,  # opens when it is read
    ):
        writer.write(TWO_FLOWS.read_bytes()[:4096])
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == INTERRUPTED
        writer.close()
        assert running.communicate() == (b"", b"interrupted\n")


AT_IMPORT = """
import os, signal, sys
from itertools import count
imports, moment = count(), int(sys.argv.pop(1))
def watch(event, arguments):
    if event == "import" and next(imports) == moment:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(watch)
from tfrctrace.__main__ import main
main()
"""


# before the twelfth the interpreter imports what it needs to catch an interrupt
@pytest.mark.parametrize("moment", [12, 20, 40, 60, 80, 100])
@pytest.mark.parametrize(
    "arguments", [["flows"], ["check", "--require", "packets > 0"]], ids=lambda words: words[0]
)
def test_an_interrupt_while_modules_are_imported_is_one_line(moment, arguments):
    line = [sys.executable, "-c", AT_IMPORT, str(moment), *arguments, str(TWO_FLOWS)]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (INTERRUPTED, "interrupted\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.4])
def test_an_interrupt_by_a_terminal_while_workers_start_is_one_line(tmp_path, after_s):
    shutil.copy(TWO_FLOWS, tmp_path / "other.pcapng.gz")
    line = [sys.executable, "-m", "tfrctrace", "report", str(TWO_FLOWS), "other.pcapng.gz", "-j", "2"]
    with subprocess.Popen(
        [*line, "--pages", "pages"], stderr=subprocess.PIPE, cwd=tmp_path, start_new_session=True
    ) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        # the first one tracks resources of `multiprocessing`
        while running.poll() is None and len(children.read_text().split()) < 2:
            time.sleep(0.001)
        time.sleep(after_s)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(PATIENCE_S) == INTERRUPTED
        assert running.stderr.read() == b"interrupted\n"


@pytest.fixture
def stalled_conversion(tmp_path):
    """Give a function that converts a capture which stalls, does something to the process, and returns it."""

    def convert(then):
        os.mkfifo(tmp_path / "slow.pcapng.gz")
        command = [sys.executable, "-m", "tfrctrace", "convert", "slow.pcapng.gz", "-o", "packets.csv"]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path) as running,
            (tmp_path / "slow.pcapng.gz").open("wb", buffering=0) as writer,
        ):
            writer.write(TWO_FLOWS.read_bytes()[:4096])
            deadline = time.monotonic() + PATIENCE_S
            while not parts(tmp_path) and time.monotonic() < deadline:
                time.sleep(0.01)  # until the output is begun
            assert parts(tmp_path)
            then(running)
            return running.wait(PATIENCE_S)

    # below nohup, processes would ignore the signal
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield convert
    signal.signal(signal.SIGHUP, before)


def parts(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_a_signal_ends_leaves_no_part_of_a_file(tmp_path, stalled_conversion, number):
    assert stalled_conversion(lambda running: running.send_signal(number)) == 128 + number
    assert not parts(tmp_path)


def test_the_part_file_of_a_killed_run_is_removed_by_the_next_and_that_of_a_live_one_never(
    tmp_path, stalled_conversion, run
):
    def convert_beside(running):
        # the same output, while the other run is at it
        outcome = run("convert", TWO_FLOWS, "-o", tmp_path / "packets.csv")
        assert outcome.status == DONE
        assert len(parts(tmp_path)) == 1
        running.kill()

    assert stalled_conversion(convert_beside) == -signal.SIGKILL
    assert len(parts(tmp_path)) == 1
    assert run("convert", TWO_FLOWS, "-o", tmp_path / "packets.csv").status == DONE
    assert not parts(tmp_path)


def test_an_interrupt_that_a_thread_was_given_ends_the_other_runs(tmp_path, monkeypatch):
    # polars raises KeyboardInterrupt in whichever thread it works for
    def measured(trace, *_):
        if trace.flows["source"][0] == str(TWO_FLOWS):
            raise KeyboardInterrupt
        was_ended.append(is_over.wait(PATIENCE_S))

    is_over, was_ended = threading.Event(), []
    monkeypatch.setattr("tfrctrace.gate.values.take_quantities", measured)
    shutil.copy(MIXED, tmp_path / "first.pcap.zst")
    command = ["check", str(tmp_path / "first.pcap.zst"), str(TWO_FLOWS), "-r", "count(flow) > 0", "-j", "2"]
    assert cli.run(command) == INTERRUPTED
    assert not was_ended
    is_over.set()


def modules_after(code, cwd=None):
    """Return the modules that are loaded once an interpreter has run `code`."""
    code += "\nimport sys; print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd)
    return set(ast.literal_eval(done.stderr.splitlines()[-1]))


def modules_loaded_by(*arguments, cwd):
    code = f"from tfrctrace.cli import run; run({list(map(str, arguments))!r})"
    return {name.split(".")[0] for name in modules_after(code, cwd)}


HEAVY = {"polars", "pandas", "numpy", "pyarrow", "matplotlib", "libpcap", "msgspec"}


def test_help_loads_nothing_heavy(tmp_path):
    assert not modules_loaded_by("--help", cwd=tmp_path) & (HEAVY | {"rich"})


@pytest.mark.parametrize("form", ["table", "json"])
def test_flows_as_text_or_json_load_no_data_frame(write_capture, conversation, form):
    path = write_capture("a.pcap", conversation())
    loaded = modules_loaded_by("flows", "--filter", "tcp", "--format", form, path, cwd=path.parent)
    assert not loaded & HEAVY


def test_flows_load_no_metrics(write_capture, conversation):
    path = write_capture("a.pcap", conversation())
    loaded = modules_after(f"from tfrctrace.cli import run; run(['flows', {str(path)!r}])", path.parent)
    # the defaults of options are all that flows know of metrics
    of_metrics = {name for name in loaded if name.startswith("tfrctrace.metrics.")}
    assert of_metrics == {"tfrctrace.metrics.thresholds"}


def test_help_loads_at_most_as_many_modules_as_typer_does_again():
    of_typer = modules_after("import typer")
    loaded = modules_after("from tfrctrace.cli import run; run(['--help'])")
    assert len(loaded) <= 2 * len(of_typer)
    assert {name.split(".")[0] for name in loaded - of_typer} <= {
        "tfrctrace",
        "typer",
        *sys.stdlib_module_names,
    }


def test_the_help_of_a_command_loads_no_other_command():
    loaded = modules_after("from tfrctrace.cli import run; run(['flows', '--help'])")
    assert {name for name in COMMANDS if f"tfrctrace.commands.{name}" in loaded} == {"flows"}


def test_every_module_of_a_command_is_registered():
    folder = Path(sys.modules["tfrctrace.cli"].__file__).parent / "commands"
    modules = {path.stem for path in folder.glob("*.py")}
    # of the package, of `report`, of `convert`, of `check`, of studies, and of all
    parts = {"__init__", "pages", "capture_output", "checked_runs", "run_progress", "console"}
    assert modules - parts == set(COMMANDS)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["flows", "--help"],
        ["flows", str(TWO_FLOWS)],
        ["flows", "--format", "json", str(TWO_FLOWS)],
        ["flows", "--format", "parquet", str(TWO_FLOWS)],
        ["metrics", str(TWO_FLOWS)],
        ["convert", str(TWO_FLOWS), "-o", "-", "--format", "csv"],
        ["replay", str(TWO_FLOWS)],
        ["report", str(TWO_FLOWS), "-o", "-"],
        ["capacity", "--station", "2x11"],
        ["check", str(TWO_FLOWS), "--require", "packets > 0"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-2:]),
)
def test_a_full_standard_output_is_an_error_with_a_sentence(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "tfrctrace", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert "error: cannot write `standard output`: no space left on device" in ended.stderr
    assert "internal" not in ended.stderr


CHECK = ["check", str(SMALL), "--require", "packets > 0"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--version"], 0),
        (["flows", str(SMALL)], 0),
        (CHECK, 0),
        ([*CHECK[:-1], "packets < 0"], 1),
        (["report", str(SMALL), "-o", "page.html"], 0),
        (["batch", str(SMALL), "-o", "results"], 0),
        (["flows", "missing.pcap"], 3),
        (["flows", "--no-such-option"], 2),
    ],
    ids=lambda one: " ".join(one[:1] + one[2:4]) if isinstance(one, list) else one,
)
def test_closed_standard_streams_change_neither_status_nor_results(tmp_path, closed, arguments, status):
    line = shlex.join([sys.executable, "-m", "tfrctrace", *arguments])
    ended = subprocess.run(
        ["sh", "-c", f"exec {line} {closed}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    if arguments[0] == "report":
        # not with what was meant for the stream whose number it might have got
        assert (tmp_path / "page.html").read_bytes().endswith(b"</html>\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", str(TWO_FLOWS), "-o", "x.html"],
        ["batch", str(TWO_FLOWS), "-o", "x"],
        ["lake", "x", "-o", "y"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_was_removed_is_named_as_the_reason(tmp_path, arguments):
    gone = tmp_path / "gone"
    gone.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from tfrctrace.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == WRONG_USAGE
    assert ended.stderr.startswith("error: the folder that it was started in was removed\n")


@pytest.mark.parametrize(
    "text",
    [".".join(["a"] * 1_500) + " = 1", f"[{'.'.join(['a'] * 1_500)}]", f"a = {'[' * 1_500}{']' * 1_500}"],
    ids=["key", "table", "list"],
)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["experiment", "x.toml"], NOT_READ), (["check", str(TWO_FLOWS), "--limits", "x.toml"], WRONG_USAGE)],
    ids=["experiment", "check"],
)
def test_a_file_of_settings_that_is_nested_too_deep_is_refused(run, tmp_path, text, arguments, status):
    (tmp_path / "x.toml").write_text(text)
    outcome = run(*arguments)
    assert outcome.status == status
    first = outcome.err.splitlines()[0]
    assert first.startswith("error: `x.toml`: ")
    assert first.endswith("tables and lists are nested deeper than 100")


BEYOND_64_BITS = str(10**23)


@pytest.mark.parametrize("number", [BEYOND_64_BITS, str(2**32)])
@pytest.mark.parametrize(
    "arguments",
    [
        ["flows", "--rows"],
        ["flows", "--max-flows"],
        ["groups", "--rows"],
        ["metrics", "--least-packets"],
        ["plot", "-k", "rtt", "-o", "x.svg", "--flow"],
        ["replay", "--flow"],
        ["compare", str(TWO_FLOWS), "--jobs"],
    ],
    ids=" ".join,
)
def test_a_whole_number_that_no_count_reaches_is_refused(run, arguments, number):
    outcome = run(*arguments, number, TWO_FLOWS)
    assert outcome.status == WRONG_USAGE
    assert outcome.err == f"error: `{arguments[-1]}` is at most 4294967295, not {number}\n"


@pytest.mark.parametrize("arguments", [["flows", "--rows"], ["flows", "--max-flows"], ["replay", "--flow"]])
def test_the_largest_whole_number_is_taken(run, arguments):
    assert run(*arguments, str(2**32 - 1), TWO_FLOWS).status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "-o", "x.pdf"], "a report is a page or Markdown, and not written as `.pdf`"),
        (["flows", "-o", "x.xlsx"], "no result is written as `.xlsx`"),
        (["flows", "-o", "x.json", "--format", "csv"], "`x.json` is named as json, but `--format` is csv"),
        (["metrics", "-o", "x.CSV", "--format", "table"], "`x.CSV` is named as csv, but `--format` is table"),
        (["convert", "-w", "rtt", "-o", "x.csv", "--format", "parquet"], "`x.csv` is named as csv, but"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_name_that_promises_another_format_is_refused(run, tmp_path, arguments, words):
    outcome = run(*arguments, TWO_FLOWS)
    assert outcome.status == WRONG_USAGE
    assert words in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_file_without_a_command_is_told_what_to_do_with_it(run):
    outcome = run(TWO_FLOWS)
    assert outcome.status == WRONG_USAGE
    assert "hint:  `tfrctrace flows FILE` lists its flows" in outcome.err


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_a_shell_that_completion_would_not_heed_is_refused(run, option):
    outcome = run(option, "zsh")
    assert (outcome.status, outcome.out) == (2, "")
    assert f"`{option}` takes no value" in outcome.err


def test_an_interrupt_finds_the_program_before_it_imports_what_takes_long():
    # what is imported before `main` cannot be interrupted without a traceback
    code = "import sys, tfrctrace.__main__; print(*(name for name in sys.modules if 'tfrctrace.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"tfrctrace.__main__", "tfrctrace.base", "tfrctrace.base.version"}
