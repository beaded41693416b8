"""The campaign over commands: each driver runs a few cases without a finding, and finds a planted defect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="isolates commands by Linux' limits and /proc"),
]

CAMPAIGN = Path(__file__).parents[1] / "evaluation" / "hostile" / "run.py"

# Each changes the program of the forks (`cli`), or names another one for the processes (`Program.command`).
FAILS = "from tfrctrace import cli\ncli.program = lambda *_: 1 / 0\n"
NEGATIVE = """
import json
from program import Program
honest = Program.run
def spoiled(self, line, folder, **more):
    ended = honest(self, line, folder, **more)
    out = ended.out.replace(b'"packets": ', b'"packets": -')
    return ended.__class__(ended.status, out, ended.err, ended.memory_mb, ended.processor_s)
Program.run = spoiled
"""
LEAKS = """
import os, sys
from tfrctrace import cli
honest = cli.run
def leaking(line):
    status = honest(line)
    with open(f"leak-{os.getpid()}", "w") as file:
        file.write(f"{line} customer-4711")
    return status
cli.run = leaking
"""
DIFFERS = """
import os
from tfrctrace import cli
honest = cli.run
def differing(line):
    os.write(1, str(len(os.sched_getaffinity(0))).encode())
    return honest(line)
cli.run = differing
"""
HALVES = """
import os
from tfrctrace import cli
def halves(line):
    text = "whole" if "whole" in os.getcwd() else "ha"
    open("out/x", "w").write(text)
    return 0
cli.run = halves
"""
PROCESS = "from program import Program\nimport sys\nProgram.command = (sys.executable, '-c', {code!r})\n"
SLEEPS = "import subprocess, time; subprocess.Popen(['sleep', '300']); time.sleep(300)"
PRINTS = "print('Traceback', file=__import__('sys').stderr); raise SystemExit(70)"

# after what the cases share is written
LATER = """
from {module} import {driver}
from tfrctrace import cli
prepare = {driver}.prepare
def prepare_and_plant(self, folder, program):
    prepare(self, folder, program)
    cli.program = lambda *_: 1 / 0
{driver}.prepare = prepare_and_plant
"""

PLANTED = {
    "files": FAILS,
    "saved": LATER.format(module="saved_forms", driver="SavedForms"),
    "sums": NEGATIVE,
    "anonymity": LEAKS,
    "clocks": FAILS,
    "threads": DIFFERS,
    "kills": HALVES,
    "orphans": "import orphans\norphans.PATIENCE_S = 1\n" + PROCESS.format(code=SLEEPS),
    "folders": PROCESS.format(code=PRINTS),
    "limits": PROCESS.format(code=PRINTS),
    "interrupts": "import interrupts\ninterrupts.AT_IMPORT = "
    + repr(PRINTS)
    + "\n"
    + PROCESS.format(code=PRINTS),
    "stores": LATER.format(module="lying_stores", driver="LyingStores"),
    "cluster": PROCESS.format(code=PRINTS),
}


def campaign(folder: Path, *words: str, planted: str = "") -> subprocess.CompletedProcess[str]:
    """Run the campaign in a process, after what is planted in it."""
    code = (
        f"import sys; sys.path.insert(0, {str(CAMPAIGN.parent)!r}); import run; run.import_everything()\n"
        f"{planted}\nsys.exit(run.main())"
    )
    line = [sys.executable, "-c", code, *words, "--findings", str(folder / "findings")]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("driver", PLANTED)
def test_a_driver_finds_nothing_in_a_few_cases(tmp_path, driver):
    ended = campaign(tmp_path, driver, "--runs", "2", "--seed", "7")
    if "not run: " in ended.stdout and "it failed" not in ended.stdout:
        pytest.skip(ended.stdout.partition("not run: ")[2].splitlines()[0])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[1].split()[:2] == [driver, "2"]


@pytest.mark.parametrize("driver", PLANTED)
def test_a_driver_finds_a_planted_defect(tmp_path, driver):
    ended = campaign(tmp_path, driver, "--runs", "3", "--seed", "7", planted=PLANTED[driver])
    if "not run: " in ended.stdout and "it failed" not in ended.stdout:
        pytest.skip(ended.stdout.partition("not run: ")[2].splitlines()[0])
    assert ended.returncode == 1, ended.stdout + ended.stderr
    finding = next((tmp_path / "findings").iterdir())
    wrong = (finding / "wrong.txt").read_text()
    assert "the driver failed" not in wrong
    assert f"run.py repeat {finding}" in wrong


def test_a_finding_is_made_smaller_and_repeated(tmp_path):
    ended = campaign(tmp_path, "files", "--runs", "3", "--seed", "7", planted=FAILS)
    finding = next((tmp_path / "findings").iterdir())
    case = (finding / "case.json").read_text()
    assert '"edits": []' in case
    assert '"options": []' in case
    assert campaign(tmp_path, "repeat", str(finding), planted=FAILS).returncode == 1, ended.stderr
    again = campaign(tmp_path, "repeat", str(finding))
    assert (again.returncode, again.stdout) == (0, "nothing is wrong any more\n")
