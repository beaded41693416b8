"""`tfrctrace plot`: figures alone, of every kind and form, as wide as asked."""

from __future__ import annotations

import json
import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.flow.cumulative_losses import cumulative_losses
from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.figures.kinds import KINDS, PlotKind
from tfrctrace.reports.figures.publication import PaperStyle, figure_file

SAMPLES = Path(__file__).parents[3] / "sample_traces"
NS2 = Path(__file__).parents[2] / "data/ns2"
RADIO = Path(__file__).parents[2] / "data/wifi/ns3-wifi-radiotap-veno-udp-2-1.pcap.gz"
TWO_FLOWS, DUMBBELL = SAMPLES / "two-flows.pcapng.gz", SAMPLES / "dumbbell.tr.xz"
MIXED = SAMPLES / "mixed.pcap.zst"
WIDTHS_IN = {"ieee": (3.5, 7.16), "acm": (3.33, 7.0), "plain": (5.0, 10.0)}

CAPTURE_KINDS = ("throughput", "sequence", "rtt", "cdf", "cwnd", "causes", "losses", "fairness", "burstiness")
SIMULATION_KINDS = ("delay", "delay-spread", "pdr", "tfrc", "tfrc-p", "tfrc-r", "replay", "closed-loop")
CAUSES = Path(__file__).parents[2] / "data/causes/0002-receiver-vegas/sender.pcap.gz"
RADIO_KINDS = ("retries", "phy-rate", "signal")


@pytest.fixture(scope="module")
def traces():
    return {path: tfrctrace.open(path) for path in (TWO_FLOWS, DUMBBELL, RADIO)}


@pytest.mark.parametrize("kind", get_args(PlotKind))
def test_every_kind_is_drawn_from_a_sample(traces, tmp_path, kind):
    assert {*CAPTURE_KINDS, *SIMULATION_KINDS, *RADIO_KINDS} == {*get_args(PlotKind)} == set(KINDS)
    sample = RADIO if kind in RADIO_KINDS else DUMBBELL if kind in SIMULATION_KINDS else TWO_FLOWS
    trace = traces[sample]
    drawing = trace.plot(kind, tmp_path / "a.svg")
    first = drawing.figures[0]
    assert first.curves or first.spans
    document = (tmp_path / "a.svg").read_bytes()
    root = ElementTree.fromstring(document)
    # text is outlines: no font is needed to see it
    assert not list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert root.get("width") == "252pt"
    assert drawing.content("svg") == document


def test_replayed_rates_are_drawn_beside_what_was_sent(traces, run):
    """The payload that ns-2's agent sent is the area below the first curve."""
    figure, *_ = traces[DUMBBELL].plot("replay", flow=1, algorithms=["tfrc", "tfrc-veno"]).figures
    assert [curve.label for curve in figure.curves] == ["sent", "tfrc", "tfrc-veno"]
    steps = traces[DUMBBELL].replay("tfrc", flows=[1])
    assert figure.curves[1].values == tuple(steps["x_bps"])
    sent = figure.curves[0]
    lasted_s = [later - earlier for earlier, later in pairwise((0.0, *sent.x))]
    bits = sum((rate or 0) * length for rate, length in zip(sent.values[1:], lasted_s[1:], strict=True))
    (flow,) = traces[DUMBBELL].flows.filter(flow=1, direction="fwd").rows(named=True)
    assert bits == pytest.approx(8 * flow["payload_bytes"], rel=0.05)
    for arguments, words in [
        (("-k", "rtt", "-a", "tfrc"), "has no algorithms"),
        (("-k", "replay", "-a", "reno2"), "reno2"),
        (("-k", "replay", "--window", "1s"), "has no windows"),
    ]:
        done = run("plot", DUMBBELL, *arguments, "-o", "a.svg")
        assert (done.status, words in done.err) == (2, True)


def test_windows_that_ns_2_logs_are_drawn_beside_those_that_algorithms_decide():
    trace = tfrctrace.open([NS2 / "windows.tr.xz", NS2 / "windows.log.xz"])
    (figure,) = trace.plot("cwnd", flow=1, algorithms=["newreno", "cubic"]).figures
    observed, newreno, cubic = figure.curves
    assert [curve.label for curve in figure.curves[1:]] == ["as newreno predicts", "as cubic predicts"]
    (flow,) = trace.one_steps("newreno", flows=[1]).results.replays
    assert observed.values == tuple(flow.series["observed_bytes"])
    distances = [
        sum(abs(one - other) for one, other in zip(curve.values, observed.values, strict=True))
        for curve in (newreno, cubic)
    ]
    assert distances[0] < distances[1]


def test_closed_loops_are_drawn(run, tmp_path):
    path = NS2 / "dumbbell-newreno.tr.xz"
    done = run(
        "plot", path, "-k", "closed-loop", "-a", "newreno,vegas", "--flow", "1", "-o", tmp_path / "a.svg"
    )
    assert done.status == 0, done.err
    assert "Rate of newreno and vegas in place of flow 1" in done.err
    nothing = run("plot", RADIO, "-k", "closed-loop", "-o", tmp_path / "b.svg")
    assert nothing.status == 2
    assert "a flow whose bottleneck shows" in nothing.err


def test_a_sweep_is_drawn_over_its_values(run, tmp_path):
    path = NS2 / "dumbbell-newreno.tr.xz"
    sweep = ("--sweep", "buffer=10000,20000,40000", "-a", "newreno,vegas")
    done = run("plot", path, "-k", "closed-loop", *sweep, "--flow", "1", "-o", tmp_path / "a.svg")
    assert done.status == 0, done.err
    assert "Rate of newreno and vegas in place of flow 1, by buffer" in done.err
    assert "Round-trip time p95 of newreno and vegas in place of flow 1, by buffer" in done.err
    rate, rtt = (
        tfrctrace.open(path)
        .plot("closed-loop", flow=1, algorithms=["newreno", "vegas"], sweep="buffer=10000,20000,40000")
        .figures
    )
    assert [curve.x for curve in (*rate.curves, *rtt.curves)] == [(10.0, 20.0, 40.0)] * 4
    newreno, vegas = (curve.values for curve in rtt.curves)
    # Reno fills what there is; Vegas drains what its slow start left, whatever more there is
    assert newreno[0] < newreno[1] < newreno[2]
    assert vegas[2] == vegas[1] < newreno[1]
    other = run("plot", path, "-k", "rtt", *sweep[:2], "-o", tmp_path / "b.svg")
    assert (other.status, "a figure of kind `rtt` models no bottleneck" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "key", "option"),
    [
        (("-k", "closed-loop", "-a", "cubic"), (2, "fwd"), ("--loop", "closed")),
        (("-k", "cwnd", "-a", "cubic"), (14, "rev"), ()),
    ],
)
def test_a_flow_that_an_algorithm_has_no_line_of_has_the_reason_that_replay_gives(
    arguments, key, option, run, tmp_path
):
    (flow, direction) = key
    replayed = json.loads(run("replay", MIXED, "--algorithm", "cubic", *option, "--format", "json").out)
    (lacking,) = [one for one in replayed["lacking"] if (one["flow"], one["direction"]) == (flow, direction)]
    some = run("plot", MIXED, *arguments, "-o", tmp_path / "a.svg")
    reason = f"flow {flow} {direction} cannot be replayed: {lacking['what']} ({lacking['hint']})"
    assert (some.status, reason in some.err) == (0, True)
    none = run("plot", MIXED, *arguments, "--flow", flow, "-o", tmp_path / "b.svg")
    assert none.status == 2
    assert f"nothing to draw of kind `{arguments[1]}`; {reason}" in none.err


def test_causes_are_drawn_between_their_names(tmp_path):
    (figure,) = tfrctrace.open(CAUSES).plot("causes", tmp_path / "a.svg", flow=1).figures
    assert figure.levels[-1] == "handshake"
    assert "receiver" in figure.levels


def test_a_page_has_every_packet_of_the_flow_that_is_chosen(run, tmp_path):
    done = run("plot", TWO_FLOWS, "--kind", "sequence", "--flow", "2", "-o", "a.html")
    assert (done.status, done.err) == (0, "figure written to `a.html`: Bytes over time\n")
    page = (tmp_path / "a.html").read_text()
    assert 'data-plot="graph"' in page
    assert "script-src &#x27;sha256-" in page or "script-src 'sha256-" in page
    blocks = re.findall(r'id="(graph-2-fwd-\d-\d+)">([A-Za-z0-9+/=]+)<', page)
    sequence = tfrctrace.open(TWO_FLOWS).flow(2).plot("sequence").figures[0].graph
    assert sorted(content for _, content in blocks) == sorted(tile.tile for tile in sequence.tiles)


def test_a_page_has_all_figures_of_a_kind(run, tmp_path):
    done = run("plot", DUMBBELL, "--kind", "tfrc", "-o", "a.html")
    assert done.status == 0
    assert "other figures" not in done.err
    figures = tfrctrace.open(DUMBBELL).plot("tfrc").figures
    assert (tmp_path / "a.html").read_text().count("<figure ") == len(figures)


def test_the_delay_between_two_captures_is_drawn(run):
    data = Path(__file__).parents[2] / "data"
    pair = (
        data / "captures/linux-relay-loss-snd.pcap.gz",
        data / "pair/linux-relay-loss-rcv.pcap.gz",
    )
    done = run("plot", *pair, "--pair", "--kind", "delay", "-o", "a.svg")
    assert (done.status, done.err) == (0, "figure written to `a.svg`: One-way delay over time\n")


@pytest.mark.parametrize("style", get_args(PaperStyle))
@pytest.mark.parametrize("width", ["single", "double"])
def test_files_are_as_wide_as_the_columns_of_the_style(traces, style, width):
    wide_in = WIDTHS_IN[style][width == "double"]
    drawing = traces[TWO_FLOWS].plot("rtt", style=style, width=width)
    content = drawing.content("png")
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">I", content[16:20])[0] == pytest.approx(wide_in * 300, abs=1)
    document = drawing.content("pdf")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", document)
    assert float(box[1]) == pytest.approx(wide_in * 72, abs=0.1)
    # fonts are embedded as TrueType, and nothing says when it was made
    assert b"/FontFile2" in document
    assert b"/Type3" not in document
    assert b"CreationDate" not in document
    assert drawing.content("pdf") == document


@pytest.fixture
def short(write_capture, conversation):
    return write_capture("short.pcap", conversation())


def test_the_command_takes_style_and_width(run, tmp_path, short):
    arguments = ("plot", short, "--kind", "rtt", "--style", "acm", "--width", "double")
    assert run(*arguments, "-o", "a.pdf").err == "figure written to `a.pdf`: RTT over time\n"
    assert run(*arguments, "-o", "b.pdf", "-q").err == ""
    tfrctrace.open(short).plot("rtt", tmp_path / "c.pdf", style="acm", width="double")
    assert {(tmp_path / name).read_bytes() for name in ("a.pdf", "b.pdf")} == {
        (tmp_path / "c.pdf").read_bytes()
    }


def test_one_flow_is_drawn_alone_even_if_it_is_small(traces, tmp_path):
    (every,) = traces[TWO_FLOWS].plot("throughput", tmp_path / "all.svg").figures
    (alone,) = traces[TWO_FLOWS].plot("throughput", tmp_path / "one.svg", flow=1).figures
    assert {curve.label.split(":")[0] for curve in every.curves} == {
        "2",
        "4",
        "the other 6 directions together",
    }
    assert {curve.label.split(":")[0] for curve in alone.curves} == {"1"}
    (sequence,) = traces[TWO_FLOWS].plot("sequence", tmp_path / "sequence.svg", flow=4).figures
    # the report draws flow 2; of flow 4 iperf3 counted these bytes at its receiver and at its sender
    truth = json.loads((SAMPLES / "two-flows.truth.json").read_text())["iperf3"][1]
    highest = max(value for curve in sequence.curves[:1] for value in curve.values)
    assert 0.99 * truth["bytes_received"] < highest < 1.01 * truth["bytes"]


def test_losses_are_those_that_the_kernel_counted(traces, tmp_path):
    truth = json.loads((SAMPLES / "two-flows.truth.json").read_text())["iperf3"]
    for flow, iperf3 in ((2, truth[0]), (4, truth[1])):
        (figure,) = traces[TWO_FLOWS].plot("losses", flow=flow).figures
        ends = [curve.values[-1] for curve in figure.curves]
        assert sum(ends) == iperf3["retransmits"]
        assert [f"{end:.0f}" for end in ends] == [curve.label.split(": ")[1] for curve in figure.curves]
        for curve in figure.curves:
            assert list(curve.values) == sorted(curve.values)
            assert (curve.x[0], curve.values[0]) == (0, 0)
        words = {curve.label.split(": ")[0] for curve in figure.curves}
        assert words <= {f"{way} retransmission" for way in ("fast", "SACK", "RTO")} | {"tail loss probe"}


@pytest.mark.parametrize("number", [1, 2, 9, 10, 11, 1000])
def test_a_curve_of_very_many_losses_is_thinned_between_its_ends(number):
    losses = pl.DataFrame(
        {
            "flow": pl.Series([3] * number, dtype=pl.UInt32),
            "class": ["fast"] * number,
            "time_ns": list(range(number)),
            "packet": list(range(number)),
        }
    )
    firsts = pl.DataFrame({"flow": [3], "first": [1]}, schema={"flow": pl.UInt32, "first": pl.UInt32})
    course = cumulative_losses(losses, firsts, 6, 10)
    counts = course["count"].to_list()
    assert (counts[0], counts[-1], len(counts)) == (1, number, min(number, 10))
    assert counts == sorted(set(counts)) == [time_ns + 1 for time_ns in course["time_ns"].to_list()]
    assert set(course["flow"]) == {1}


def test_a_window_is_what_each_point_sums_up(traces):
    trace = traces[TWO_FLOWS]
    (figure,) = trace.plot("throughput", flow=2, window="250ms").figures
    leading = figure.curves[0]
    steps = {round(later - sooner, 9) for sooner, later in pairwise(leading.x)}
    assert steps == {0.25}
    wire_bytes = trace.flows.filter(flow=2, direction="fwd")["wire_bytes"][0]
    assert sum(leading.values) * 0.25 / 8 == pytest.approx(wire_bytes)
    assert figure.detail == ()
    (index,) = trace.plot("fairness", window="250ms").figures
    assert {round(later - sooner, 9) for sooner, later in pairwise(index.curves[0].x)} == {0.25}
    assert len(trace.plot("rtt", window="2s").figures[0].curves[0].x) < 13  # of 22.6 s
    assert trace.plot("throughput").figures[0].curves != figure.curves  # the report's own are as they were


def test_others_of_the_kind_are_named(run, short, write_capture, conversation):
    other = write_capture("other.pcap", conversation(port=40_001))
    done = run("plot", short, other, "-k", "throughput", "-o", "a.svg")
    first, second = done.err.splitlines()
    assert first.startswith("figure written to `a.svg`: Throughput over time: ")
    assert second.startswith("other figures of this kind: Throughput over time: ")


def test_what_a_trace_lacks_is_reported_with_what_would_supply_it(run, tmp_path, short):
    trace = tfrctrace.open(short)
    for kind in set(KINDS) - {"throughput", "rtt", "cdf", "cwnd", "causes"}:
        with pytest.raises(UsageError, match=f"nothing to draw of kind `{kind}`") as raised:
            trace.plot(kind, tmp_path / "a.svg")
        assert KINDS[kind].needs in raised.value.hint
    done = run("plot", short, "-k", "tfrc", "-o", "a.svg")
    assert (done.status, done.out) == (2, "")
    assert "hint:  it needs reports of a TFRC receiver" in done.err
    assert not (tmp_path / "a.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("-k", "rtt", "-o", "a.jpg"), 2, "`a.jpg` does not say what image it is"),
        (("-k", "rtt", "-o", "-"), 2, "`-` does not say what image it is"),
        (("-k", "beauty", "-o", "a.svg"), 2, "'beauty' is not one of"),
        (("-k", "rtt", "-o", "none/a.svg"), 2, "no such directory"),
        (("-k", "rtt", "-o", "a.svg", "--flow", "99"), 2, "the trace has no flow 99"),
        (("-k", "fairness", "-o", "a.svg", "--flow", "2"), 2, "shows all flows"),
        (("-k", "rtt"), 2, "missing option"),
        (("-k", "cdf", "-o", "a.svg", "--window", "1s"), 2, "kind `cdf` has no windows"),
        (("-k", "rtt", "-o", "a.svg", "--window", "1ms"), 2, "a figure shows at most 3000"),
        (("-k", "rtt", "-o", "a.svg", "--window", "soon"), 2, "is not a duration"),
    ],
)
def test_what_cannot_be_is_reported(run, arguments, status, error):
    done = run("plot", TWO_FLOWS, *arguments)
    assert (done.status, done.out) == (status, "")
    assert error in done.err


def test_a_trace_that_cannot_be_read_is_no_figure(run, tmp_path):
    (tmp_path / "broken.pcap").write_text("no capture")
    assert run("plot", "broken.pcap", "-k", "rtt", "-o", "a.svg").status == 3


def test_names_from_a_trace_are_text_and_have_an_end():
    label = "$\\frac{1}{0}$ _^%\x1b[2J\u202e" + "x" * 1000
    curves = tuple(Curve(label, style, (0.0, 1.0), (1.0, 2.0)) for style in (0, 1, 4))
    figure = Figure("f", "t", "d", "c", "ms", curves=curves, lasted_s=1.0)
    assert len(figure_file(figure, "svg")) < 200_000


def test_a_kind_without_a_flow_is_refused_in_python_too(traces, tmp_path):
    with pytest.raises(UsageError, match="shows all flows"):
        traces[TWO_FLOWS].plot("burstiness", tmp_path / "a.svg", flow=1)
