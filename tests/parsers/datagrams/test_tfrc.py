"""TFRC's two ends as rebuilt from ns-2's traces agree with what the agents printed of themselves."""

import itertools
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ns2_tfrc_agents import agent_rows

import tfrctrace

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "ns2" / "tfrc"

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A trace with one TFRC flow."""

    name: str
    payload_bytes: int
    stop_s: float
    """When the script stopped the sender, whose late reports mean nothing."""
    time_s: float = 1e-6
    """Resolution of the times that the sender printed."""
    parameters: dict[str, float] = field(default_factory=dict)


CASES = (
    Case("application-limited", 1000, 18),
    Case("heavy-loss", 500, 29),
    Case("outage", 1000, 24),
    Case("parameters", 700, 19, parameters={"df": 0.8, "tcp_tick": 0.02, "ca": 0}),
    Case("ecn", 1000, 14),
    Case("tagged", 1000, 4, time_s=0.01),
    Case("mixed", 500, 16, time_s=0.01),
    Case("wireless", 512, 5, time_s=0.01),
)


def truth(case: Case, end: str) -> list[Row]:
    return list(agent_rows(case.name, end))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def opened(request: pytest.FixtureRequest) -> tuple[Case, tfrctrace.Trace]:
    case: Case = request.param
    trace = tfrctrace.open(DATA / f"{case.name}.tr.xz", tfrc=case.parameters)
    trace.read("flows", "feedback", "loss_events", "loss_intervals")
    return case, trace


def arrived(trace: tfrctrace.Trace) -> pl.DataFrame:
    return trace.feedback.filter(pl.col("received_ns").is_not_null()).sort("received_ns")


def reports(case: Case, trace: tfrctrace.Trace) -> list[tuple[Row, Row]]:
    """Our reports and the sender's, in order of arrival, until it was stopped."""
    pairs = list(zip(arrived(trace).to_dicts(), truth(case, "sender"), strict=True))
    return list(itertools.takewhile(lambda pair: pair[0]["received_ns"] / 1e9 <= case.stop_s, pairs))


def test_every_report_arrives_when_the_sender_took_it(opened: tuple[Case, tfrctrace.Trace]) -> None:
    for ours, printed in reports(*opened):
        assert ours["received_ns"] / 1e9 == pytest.approx(float(printed["time"]), abs=opened[0].time_s)


def test_the_smoothed_rtt_is_the_senders(opened: tuple[Case, tfrctrace.Trace]) -> None:
    for ours, printed in reports(*opened):
        # the sender printed rate * rtt / size with two decimals, and the rate with two
        rate = float(printed["rate_Bps"])
        rounded = 0.0051 * opened[0].payload_bytes / rate + 0.0051 / rate * float(printed["rtt_s"]) + 1e-6
        assert ours["r_ms"] / 1e3 == pytest.approx(float(printed["rtt_s"]), abs=rounded)


def test_the_receive_rate_is_the_senders(opened: tuple[Case, tfrctrace.Trace]) -> None:
    compared = 0
    for ours, printed in reports(*opened):
        limit = float(printed["maxrate_Bps"])
        if limit > 0:
            # twice the receive rate, printed likewise
            rtt = float(printed["rtt_s"])
            rtt_rounded = 0.0051 * opened[0].payload_bytes / float(printed["rate_Bps"]) / rtt
            rounded = 0.0051 * opened[0].payload_bytes / rtt + limit * (rtt_rounded + 1e-4)
            assert ours["x_recv_bps"] / 4 == pytest.approx(limit, abs=rounded)
            compared += 1
    assert compared > 10


def test_the_allowed_rate_is_the_senders_after_slow_start(opened: tuple[Case, tfrctrace.Trace]) -> None:
    rows = reports(*opened)
    after = list(itertools.dropwhile(lambda pair: pair[1]["branch"] == "SLOW_START", rows))
    assert after
    modes = {"OUT_OF_SLOW_START": "leaving_slow_start", "INCREASE": "increase", "DECREASE": "decrease"}
    for ours, printed in after:
        assert ours["x_bps"] / 8 == pytest.approx(float(printed["rate_Bps"]), rel=1e-5, abs=0.01)
        assert ours["mode"] == modes[printed["branch"]]


def test_loss_intervals_are_the_receivers_at_every_report(opened: tuple[Case, tfrctrace.Trace]) -> None:
    case, trace = opened
    intervals = trace.loss_intervals.group_by("packet", maintain_order=True).agg("time_ns", "packets")
    # it printed as often as we have intervals, hundredths of milliseconds
    for (_, times, ours), printed in zip(intervals.iter_rows(), truth(case, "receiver"), strict=True):
        assert times[0] / 1e9 == pytest.approx(float(printed["time"]), abs=6e-6)
        expected = [float(printed[f"interval{index}"]) for index in range(5)]
        assert (ours + [0] * 5)[:5] == expected


def test_the_loss_event_rate_is_the_receivers(opened: tuple[Case, tfrctrace.Trace]) -> None:
    case, trace = opened
    sent = trace.feedback.unique("packet", keep="first", maintain_order=True).sort("time_ns")
    lossy = sent.filter(pl.col("p") > 0)["p"].to_list()
    for ours, printed in zip(lossy, truth(case, "receiver"), strict=True):
        # that of the first loss it does not print
        if printed["loss_event_rate"]:
            assert ours == pytest.approx(float(printed["loss_event_rate"]), abs=5.1e-6)


def test_loss_events_begin_where_intervals_end(opened: tuple[Case, tfrctrace.Trace]) -> None:
    _, trace = opened
    starts = trace.loss_events["start_sequence"].to_list()
    closed = trace.loss_intervals.filter(pl.col("interval") == 1)["packets"].to_list()
    lengths = [length for length, _ in itertools.groupby(closed)]
    # the first of the intervals is made up, and the second counts from a report
    expected = [float(later - earlier) for earlier, later in itertools.pairwise(starts)]
    assert lengths[2:] == [length for length, _ in itertools.groupby(expected)][1:]
    assert trace.loss_events["packets"].gt(0).all()


def test_the_table_of_flows_has_the_last_report(opened: tuple[Case, tfrctrace.Trace]) -> None:
    _, trace = opened
    [row] = trace.flows.filter((pl.col("transport") == "tfrc") & (pl.col("data_packets") > 0)).to_dicts()
    sent = trace.feedback.unique("packet", keep="first", maintain_order=True).sort("time_ns")
    assert row["feedback_packets"] == sent.height
    assert row["loss_events"] == trace.loss_events.height
    last = sent.row(-1, named=True)
    assert (row["loss_event_rate"], row["x_recv_bps"]) == (last["p"], last["x_recv_bps"])
    assert row["srtt_ms"] == arrived(trace)["r_ms"].to_list()[-1]


def test_without_the_flows_beginning_nothing_is_made_up(tmp_path: Path) -> None:
    with lzma.open(DATA / "ecn.tr.xz") as file:
        lines = file.readlines()
    cut = tmp_path / "cut.tr"
    cut.write_bytes(b"".join(lines[400:]))
    trace = tfrctrace.open(cut)
    row = trace.flows.filter(pl.col("data_packets") > 0).row(0, named=True)
    assert [row[name] for name in ("loss_events", "loss_event_rate", "x_recv_bps", "srtt_ms")] == [None] * 4
    assert row["feedback_packets"] > 0
    assert "lacks the beginning of this TFRC flow" in row["notes"]
    assert trace.feedback.is_empty()


def test_the_table_of_packets_holds_all_that_the_trace_did(tmp_path: Path) -> None:
    original = tfrctrace.open(DATA / "ecn.tr.xz")
    pl.concat(original.packets()).write_csv(tmp_path / "packets.csv")
    again = tfrctrace.open(tmp_path / "packets.csv", input_format="packets")
    # packets are lines, of which the table has one more
    assert again.feedback.drop("packet").equals(original.feedback.drop("packet"))
    pl.concat(original.packets()).drop("kind").write_csv(tmp_path / "kindless.csv")
    kindless = tfrctrace.open(tmp_path / "kindless.csv", input_format="packets").flows
    assert kindless["loss_events"].to_list() == [None, None]
    assert all("no report about this TFRC flow" in note for note in kindless["notes"])


@pytest.mark.parametrize("given", [{"dff": 0.9}, {"df": 1.5}, {"ca": 2}, {"tcp_tick": float("nan")}])
def test_parameters_that_ns_2_lacks_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(tfrctrace.UsageError, match="ns-2's TFRC"):
        tfrctrace.open(DATA / "ecn.tr.xz", tfrc=given)


def test_the_command_line_takes_parameters(run: Any, tmp_path: Path) -> None:
    trace = str(DATA / "parameters.tr.xz")
    given = ["--tfrc", "df=0.8", "--tfrc", "tcp_tick=0.02", "--tfrc", "ca=0"]
    assert run("convert", trace, "-w", "feedback", *given, "-o", "feedback.csv").status == 0
    last = pl.read_csv(tmp_path / "feedback.csv").filter(pl.col("received_ns") < 19e9).row(-1, named=True)
    assert last["x_bps"] / 8 == pytest.approx(float(reports_of_parameters()[-1]["rate_Bps"]), rel=1e-5)


def reports_of_parameters() -> list[Row]:
    [case] = [case for case in CASES if case.name == "parameters"]
    return [row for row in truth(case, "sender") if float(row["time"]) < case.stop_s]


@pytest.mark.parametrize("wrong", [["--tfrc", "df"], ["--tfrc", "df=x"], ["-w", "rtt", "--tfrc", "df=0.9"]])
def test_the_command_line_refuses_parameters_without_meaning(run: Any, wrong: list[str]) -> None:
    result = run("convert", str(DATA / "ecn.tr.xz"), "-w", "feedback", "-o", "x.csv", *wrong)
    assert result.status == 2
