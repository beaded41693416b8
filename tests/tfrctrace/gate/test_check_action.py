"""The step of the GitHub action that checks, as a runner starts it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "data" / "gate" / "runs"


@pytest.fixture
def act(tmp_path):
    """Run the step with some inputs; return it with its outputs and the summary of the job."""

    def run(**inputs):
        given = {"TRACES": "", "LIMITS": "", "BASELINE": "", "OPTIONS": "", "OUTPUT": "found", **inputs}
        written = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in written.values():
            file.touch()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            **given,
            **{name: str(file) for name, file in written.items()},
            "PATH": path,
        }
        done = subprocess.run(
            [ROOT / ".ci" / "check-action"],
            check=False,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        return done, *(file.read_text() for file in written.values())

    return run


def test_what_keeps_the_limits_passes(act, tmp_path):
    (tmp_path / "with blank").symlink_to(RUNS)
    done, output, summary = act(TRACES="with blank/before-[12].tr.xz\n\n", OPTIONS="-r mean(plr)<50%")
    assert (done.returncode, done.stderr, output) == (0, "", "status=0\n")
    assert summary.startswith("### ✅ pass")
    assert len(json.loads((tmp_path / "found" / "check.json").read_text())["runs"]) == 2
    assert not (tmp_path / "found" / "report.html").exists()


def test_what_breaks_a_limit_fails_with_annotation_summary_and_report(act, tmp_path):
    (tmp_path / "limits.toml").write_text('[[limit]]\nrequire = "mean(plr) < 1%"\n')
    done, output, summary = act(TRACES=str(RUNS / "before-1.tr.xz"), LIMITS="limits.toml")
    assert (done.returncode, output) == (1, "status=1\n")
    assert done.stderr.startswith("::error file=limits.toml,line=1,title=")
    assert summary.startswith("### ❌ fail")
    assert {file.name for file in (tmp_path / "found").iterdir()} == {
        "check.json",
        "check.xml",
        "report.html",
        "summary.md",
    }


@pytest.mark.parametrize(
    ("options", "status", "checks"),
    [
        ("-r mean(plr)<50% --warmup 2s", 0, ["mean(plr)<50%"]),
        ("  -r 'mean(plr) < 50%'   --warmup\n2s -r packets>1 ", 0, ["mean(plr) < 50%", "packets>1"]),
        ("--require 'mean(plr) < 0.0001%' --warmup 2s", 1, ["mean(plr) < 0.0001%"]),
        ("-r 'mean(plr) < $(touch here)' *", 2, []),
    ],
)
def test_options_are_words_as_in_a_shell_that_runs_nothing(act, tmp_path, options, status, checks):
    done, *_ = act(TRACES=str(RUNS / "before-[12].tr.xz"), OPTIONS=options)
    assert done.returncode == status, done.stderr
    assert not (tmp_path / "here").exists()
    written = tmp_path / "found" / "check.json"
    made = json.loads(written.read_text())["checks"] if written.exists() else []
    assert sorted(one["check"] for one in made) == checks


def test_options_with_a_quote_that_is_not_closed_are_refused(act):
    done, *_ = act(TRACES=str(RUNS / "before-1.tr.xz"), OPTIONS="-r 'mean(plr)")
    assert done.returncode == 2
    assert "quote" in done.stderr


def test_the_action_installs_the_versions_that_were_tested():
    """So that a check that passed does not fail for a new release of a library."""
    (install,) = re.findall(
        r"- name: Install tfrctrace.*?(?=\n    - )", (ROOT / "action.yml").read_text(), re.S
    )
    for variable in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        assert f"{variable}: ${{{{ github.action_path }}}}/constraints.txt" in install


def test_traces_that_are_not_there_fail(act):
    done, *_ = act(TRACES="nowhere/*.pcap", OPTIONS="-r mean(plr)<1%")
    assert done.returncode == 3
    assert done.stdout == "::error title=tfrctrace check::no file matches nowhere/*.pcap\n"
