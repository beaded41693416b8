"""The campaign over commands: each driver runs a few cases without a finding, and finds a planted defect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

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


# Importing everything takes longer than a short campaign: each is a fork of one process that has done so.
FORKS = """
import json, os, sys
sys.path.insert(0, {folder!r})
import run
run.import_everything()
for line in sys.stdin:
    place, words, planted = json.loads(line)
    if not (child := os.fork()):
        os.chdir(place)
        for number, name in enumerate((os.devnull, "stdout", "stderr")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.argv[1:] = words
        exec(planted)
        sys.exit(run.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Campaigns:
    """Runs campaigns one after another."""

    def __init__(self, forks: subprocess.Popen[str]) -> None:
        self._forks = forks

    def run(self, folder: Path, *words: str, planted: str = "") -> subprocess.CompletedProcess[str]:
        """Run the campaign in a folder, after what is planted in it."""
        line = [*words, "--findings", str(folder / "findings")]
        print(json.dumps([str(folder), line, planted]), file=self._forks.stdin, flush=True)
        status = int(self._forks.stdout.readline())
        return subprocess.CompletedProcess(
            line, status, (folder / "stdout").read_text(), (folder / "stderr").read_text()
        )


@pytest.fixture(scope="module")
def campaigns() -> Iterator[Campaigns]:
    line = [sys.executable, "-c", FORKS.format(folder=str(CAMPAIGN.parent))]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forks:
        yield Campaigns(forks)


@pytest.mark.parametrize("driver", PLANTED)
def test_a_driver_finds_nothing_in_a_few_cases(campaigns, tmp_path, driver):
    ended = campaigns.run(tmp_path, driver, "--runs", "2", "--seed", "7")
    if "not run: " in ended.stdout and "it failed" not in ended.stdout:
        pytest.skip(ended.stdout.partition("not run: ")[2].splitlines()[0])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[1].split()[:2] == [driver, "2"]


@pytest.mark.parametrize("driver", PLANTED)
def test_a_driver_finds_a_planted_defect(campaigns, tmp_path, driver):
    # what is planted shows in answers that are whole, and many of the drawn traces are damaged
    runs = "8" if driver == "sums" else "3"
    ended = campaigns.run(tmp_path, driver, "--runs", runs, "--seed", "7", planted=PLANTED[driver])
    if "not run: " in ended.stdout and "it failed" not in ended.stdout:
        pytest.skip(ended.stdout.partition("not run: ")[2].splitlines()[0])
    assert ended.returncode == 1, ended.stdout + ended.stderr
    finding = next((tmp_path / "findings").iterdir())
    wrong = (finding / "wrong.txt").read_text()
    assert "the driver failed" not in wrong
    assert f"run.py repeat {finding}" in wrong


def test_a_finding_is_made_smaller_and_repeated(campaigns, tmp_path):
    ended = campaigns.run(tmp_path, "files", "--runs", "3", "--seed", "7", planted=FAILS)
    finding = next((tmp_path / "findings").iterdir())
    case = (finding / "case.json").read_text()
    assert '"edits": []' in case
    assert '"options": []' in case
    assert campaigns.run(tmp_path, "repeat", str(finding), planted=FAILS).returncode == 1, ended.stderr
    again = campaigns.run(tmp_path, "repeat", str(finding))
    assert (again.returncode, again.stdout) == (0, "nothing is wrong any more\n")
