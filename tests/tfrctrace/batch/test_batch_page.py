"""The page on batches: its commands print what it shows, and its Python runs on their results."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "batch.md").read_text()


@pytest.fixture
def captures(tmp_path):
    """Draw the captures that the page speaks of: a link of hours with losses, and one with a file missing."""
    for seed, fault, place in ((7, "loss", "north"), (8, "none", "south")):
        line = [sys.executable, "make.py", "--seed", str(seed), "--days", "0.3", "--fault", fault]
        folder = tmp_path / "captures" / place
        subprocess.run(
            [*line, "-o", folder], cwd=ROOT / "evaluation" / "links", check=True, capture_output=True
        )
        (folder / "truth.json").unlink()
    (folder / "link-202601050300.pcap").unlink()
    north = (tmp_path / "captures/north/link-202601050100.pcap").read_bytes()
    (tmp_path / "captures" / "broken.pcap").write_bytes(north[:100_000])


def one_night_later(run, tmp_path):
    """Have the link in the north read, and another file come."""
    assert run("batch", "captures/north", "-o", "north").status == 0
    line = [sys.executable, "make.py", "--seed", "7", "--days", "0.4", "--fault", "none"]
    subprocess.run(
        [*line, "-o", tmp_path / "later"], cwd=ROOT / "evaluation" / "links", check=True, capture_output=True
    )
    shutil.copy(tmp_path / "later" / "link-202601050700.pcap", tmp_path / "captures" / "north")


@pytest.mark.usefixtures("captures")
def test_the_page_shows_what_a_batch_prints(run, tmp_path, monkeypatch):
    blocks = re.findall(r"```console\n\$ (tfrctrace .*?)\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 4
    for line, shown in blocks:
        if line.endswith("-o north"):
            one_night_later(run, tmp_path)
        outcome = run(*shlex.split(line)[1:])
        assert (outcome.status, outcome.out + outcome.err) == (0, shown)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "batch.md", "exec"), {})
