"""`tfrctrace report`: where the page goes and what it is about."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.report_data import gather_results as report_data
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.page.html import render

SAMPLES = Path(__file__).parents[3] / "sample_traces"


@pytest.fixture
def capture(write_capture, conversation):
    return write_capture("captures/link.v2.pcap.gz.pcap", conversation())


def test_the_report_of_one_capture_is_named_after_it(run, capture, tmp_path):
    outcome = run("report", capture)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "report written to `link.v2.pcap.gz.html`\n"
    assert "192.0.2.1" in (tmp_path / "link.v2.pcap.gz.html").read_text()


@pytest.mark.parametrize("arguments", [["captures"], ["captures/link.v2.pcap.gz.pcap"] * 2])
@pytest.mark.usefixtures("capture")
def test_the_report_of_more_than_one_capture_is_report_html(run, tmp_path, arguments):
    assert run("report", *arguments).status == 0
    assert (tmp_path / "report.html").is_file()


def test_the_report_of_standard_input_is_report_html(run, capture, tmp_path):
    assert run("report", "-", stdin=capture.read_bytes()).status == 0
    assert "standard input" in (tmp_path / "report.html").read_text()


def test_a_report_can_go_to_standard_output(run, capture, tmp_path):
    outcome = run("report", capture, "-o", "-")
    run("report", capture, "-o", "x.html")
    assert outcome.err == ""
    assert outcome.out == (tmp_path / "x.html").read_text()


def test_the_heading_can_be_chosen_and_is_escaped(run, capture):
    page = run("report", capture, "-o", "-", "--title", "<b>Lab & field</b>").out
    assert "&lt;b&gt;Lab &amp; field&lt;/b&gt;" in page
    assert "<b>Lab" not in page


def test_a_report_says_what_was_wrong_with_a_capture(run, write_capture, conversation):
    write_capture("cut.pcap", conversation(), cut=3)
    outcome = run("report", "cut.pcap", "-o", "-")
    assert outcome.status == 0
    assert "warning: `cut.pcap` packet 12" in outcome.err
    assert "the file ends inside a record" in outcome.out


def test_saved_results_give_the_same_report_without_the_trace(run, capture, tmp_path):
    first = run("report", capture, "-o", "one.html", "--results", "results")
    assert (first.status, first.err) == (0, "report written to `one.html`\n")
    capture.unlink()
    assert run("report", "--from", "results", "-o", "two.html").status == 0
    assert (tmp_path / "two.html").read_bytes() == (tmp_path / "one.html").read_bytes()
    assert (
        "<h1><bdi>Other</bdi></h1>" in run("report", "--from", "results", "-o", "-", "--title", "Other").out
    )


@pytest.mark.parametrize("beside", [["x.pcap"], ["--filter", "tcp"], ["--join"], ["--results", "other"]])
def test_what_saved_results_cannot_heed_is_refused(run, beside):
    outcome = run("report", "--from", "results", *beside)
    assert outcome.status == 2
    assert "cannot be used with `--from`" in outcome.err


def test_a_report_of_nothing_says_what_it_needs(run):
    outcome = run("report")
    assert outcome.status == 2
    assert "no trace is given" in outcome.err


def test_results_that_are_not_there_are_an_error(run, tmp_path):
    outcome = run("report", "--from", "nowhere")
    assert outcome.status == 3
    assert "`nowhere/results.json`: no such file or directory" in outcome.err
    assert not list(tmp_path.glob("*.html"))


def test_no_report_is_written_when_nothing_can_be_read(run, tmp_path):
    assert run("report", "nowhere.pcap").status == 3
    assert not list(tmp_path.iterdir())


EDGES = {
    "time 0": (0, 20, "0.000 s"),
    "year 2100": (4_102_444_810, 20, "2100-01-01 00:00:10"),
    "one packet": (1_700_000_000, 1, "The only packet is at"),
}


@pytest.mark.parametrize("edge", EDGES)
def test_a_trace_at_the_edge_has_a_useful_page(run, write_capture, conversation, edge):
    start_s, packets, shown = EDGES[edge]
    write_capture("edge.pcap", conversation()[:packets], start_s=start_s)
    outcome = run("report", "edge.pcap", "-o", "-")
    assert (outcome.status, outcome.err) == (0, "")
    assert shown in outcome.out.replace("\u00a0", " ")
    assert 'id="flow-1"' in outcome.out


def words_of_page() -> str:
    """The page of a trace of four flows, without its drawings."""
    report = build_report(tfrctrace.open(SAMPLES / "two-flows.pcapng.gz").results(), title="t")
    return render(replace(report, sections=tuple(replace(part, figures=()) for part in report.sections)))


def test_a_page_without_metrics_says_so(monkeypatch):
    monkeypatch.setattr(report_data, "_MOST_MEASURED_FLOWS", 3)
    page = words_of_page()
    assert "fairness and burstiness are not in this report: the trace has 4 flows" in page
    assert 'id="fairness"' not in page
    monkeypatch.undo()
    page = words_of_page()
    assert 'id="fairness"' in page
    assert "not in this report" not in page


def test_a_report_is_built_once_whatever_it_is_called(capture):
    trace = tfrctrace.open(capture)
    one = trace.report_parts(title="one")
    own = trace.report_parts()
    assert (one.title, own.title) == ("one", "link.v2.pcap.gz.pcap")
    assert own.sections is one.sections


@pytest.mark.parametrize("layer", ["phy", "mac"])
def test_a_layer_that_a_trace_lacks_is_a_warning_on_a_page_without_packets(run, tmp_path, layer):
    outcome = run("report", SAMPLES / "dumbbell.tr.xz", "--layer", layer, "-o", "x.html")
    assert outcome.status == 0
    assert f"no packet is seen at the layer `{layer}`" in outcome.err
    assert (tmp_path / "x.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize("kind", ["throughput", "losses", "delay"])
def test_a_figure_of_a_layer_that_a_trace_lacks_is_refused_or_empty(run, kind):
    outcome = run("plot", SAMPLES / "dumbbell.tr.xz", "--layer", "phy", "--kind", kind, "-o", "x.svg")
    assert outcome.status in {0, 2}
    assert "no packet is seen at the layer `phy`" in outcome.err


def test_a_report_does_not_load_what_draws_for_papers(tmp_path):
    program = (
        "import sys\n"
        "from tfrctrace.cli import run\n"
        f"run(['report', {str(SAMPLES / 'two-flows.pcapng.gz')!r}, '-o', {str(tmp_path / 'page.html')!r}])\n"
        "assert not {'matplotlib', 'pandas', 'pyarrow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'id="ledgers"' in (tmp_path / "page.html").read_text()
