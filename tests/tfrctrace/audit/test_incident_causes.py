"""Why flows were held back during an incident, against what the sending kernel counted."""

import json
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[2] / "data" / "causes"
RECEIVER = RUNS / "0002-receiver-vegas"
LIMITS = """
[[objective]]
name = "delay"
require = "median(rtt_ms) < 10 ms"
by = "link"
every = "5s"
least = 1
raise = 1
clear = 1
"""


@pytest.fixture
def audit(run, tmp_path):
    (tmp_path / "limits.toml").write_text(LIMITS)

    def audit(*arguments):
        done = run("audit", *map(str, arguments), "-o", "audit", "--limits", "limits.toml")
        assert done.status == 0, done.err
        (incident,) = json.loads((tmp_path / "audit" / "audit.json").read_text())["incidents"]
        return incident, (tmp_path / "audit" / "summary.md").read_text()

    return audit


def test_an_incident_has_the_time_by_cause_that_the_kernel_counted(audit, truth):
    _, known = truth.read(RECEIVER)
    incident, summary = audit(RECEIVER / "sender.pcap.gz", "--causes")
    assert incident["no_causes"] is None
    causes_s = {cause: ns / 1e9 for cause, ns in incident["causes_ns"].items()}
    assert next(iter(causes_s)) == "receiver"
    assert causes_s["receiver"] == pytest.approx(known.receiver_s, abs=0.05 * known.life_s)
    assert sum(causes_s.values()) == pytest.approx(known.life_s, abs=0.05 * known.life_s)
    assert "TCP flows were held back by: receiver 94.9 %" in summary


def test_without_causes_an_incident_says_how_to_get_them(audit, tmp_path):
    incident, summary = audit(RECEIVER / "sender.pcap.gz")
    assert incident["causes_ns"] is None
    assert incident["no_causes"] == "the captures were read without `--causes`"
    assert "held back" not in summary
    page = (tmp_path / "audit" / "index.html").read_text()
    assert "the captures were read without" in page


def test_causes_of_results_are_those_of_their_batch(audit, run, tmp_path):
    done = run("batch", RECEIVER / "sender.pcap.gz", "-o", "results", "--every", "5s", "--causes")
    assert done.status == 0, done.err
    incident, _ = audit("results")
    assert next(iter(incident["causes_ns"])) == "receiver"
    refused = run("audit", "results", "-o", "other", "--limits", "limits.toml", "--causes")
    assert "options that say how captures are read" in refused.err
