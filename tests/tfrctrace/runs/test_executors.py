"""Runs that an executor of the user measures: what a worker gets crosses a pickle."""

from __future__ import annotations

from pathlib import Path

import pytest

TWO_FLOWS = str(Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz")

EXECUTOR = """
import pickle
from concurrent.futures import ThreadPoolExecutor

class Remote(ThreadPoolExecutor):
    def submit(self, work, *arguments):
        return super().submit(pickle.loads(pickle.dumps(work)), *arguments)
"""

COMMANDS = {
    "check": ("check", "first.pcap", TWO_FLOWS, "-r", "count(flow) > 0", "--format", "json"),
    "compare": ("compare", "first.pcap", TWO_FLOWS, "--cache", "none", "--format", "json"),
    "audit": ("audit", "first.pcap", TWO_FLOWS, "-o", "PAGES", "--title", "same"),
    "pages": ("report", "first.pcap", TWO_FLOWS, "--pages", "PAGES"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_executor_measures_what_processes_here_do(run, write_capture, conversation, tmp_path, command):
    write_capture("first.pcap", conversation())
    (tmp_path / "remote_workers.py").write_text(EXECUTOR)

    def result(folder, *more):
        outcome = run(*[word.replace("PAGES", folder) for word in COMMANDS[command]], "-j", "1", *more)
        pages = {path.name: path.read_bytes() for path in (tmp_path / folder).glob("*.html")}
        return outcome.status, outcome.out, pages

    own = result("own")
    assert own[0] == 0
    assert result("other", "--executor", "remote_workers:Remote") == own


def test_an_executor_that_cannot_be_used_is_refused(run):
    outcome = run(
        "check", "-", "-r", "count(flow) > 0", "--executor", "concurrent.futures:ThreadPoolExecutor"
    )
    assert "an executor cannot read standard input" in outcome.err
    assert "`--executor` needs `--pages`" in run("report", TWO_FLOWS, "--executor", "a:b").err
