"""One flow of a trace, its hosts, and what a prompt shows."""

from pathlib import Path

import pytest

import tfrctrace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trace():
    return tfrctrace.open(ROOT / "sample_traces" / "two-flows.pcapng.gz")


def test_a_flow_has_its_rows_of_every_table(trace):
    flow = trace.flow(2)
    assert flow.rows.equals(trace.flows.filter(flow=2))
    for table in ("rtt", "losses", "rounds", "bins"):
        own = getattr(flow, table)
        assert len(own)
        assert own.equals(getattr(trace, table).filter(flow=2))
    assert flow.packets.height == flow.rows["packets"].sum()
    assert flow.throughput("1s").equals(trace.throughput("1s").filter(flow=2))
    assert flow.table("tcp")["direction"].to_list() == ["fwd", "rev"]
    assert repr(flow) == "<Flow 2: 192.0.2.1:35250 → 192.0.2.2:5201, tcp, reset>"


def test_a_flow_that_is_not_there_is_refused(trace):
    with pytest.raises(tfrctrace.UsageError, match="the trace has no flow 9"):
        trace.flow(9)
    with pytest.raises(tfrctrace.UsageError, match="the table `links` has no flows"):
        trace.flow(2).table("links")


def test_hosts_are_groups_by_host(trace):
    assert trace.hosts.equals(trace.groups("host").rows)
    sent = trace.hosts.filter(direction="sent")
    assert sent["packets"].sum() == trace.flows["packets"].sum()


def test_an_unknown_figure_is_refused_with_those_there_are(trace):
    with pytest.raises(tfrctrace.UsageError, match="there is no figure of kind `rrt`") as caught:
        trace.plot("rrt")
    assert "rtt" in str(caught.value.hint)


def test_the_prompt_shows_what_the_documentation_names(trace):
    assert dir(tfrctrace) == sorted(tfrctrace.__all__)
    page = (ROOT / "docs" / "python.md").read_text()
    shown = [name for name in dir(trace) if not name.startswith("_")]
    assert {"flow", "hosts", "plot", "report"} <= set(shown)
    missing = [name for name in shown if f"| `{name}` |" not in page]
    assert missing == []
