"""The metrics of a trace against what a simulator's sinks counted, and against their definitions."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from itertools import groupby
from pathlib import Path

import polars as pl
import pytest
from study_truth import truth_of

import tfrctrace
from tfrctrace.metrics.assumptions import NO_ASSUMPTIONS, Assumptions
from tfrctrace.metrics.catalogue import BY_NAME, CATALOGUE
from tfrctrace.metrics.evaluation import evaluate
from tfrctrace.metrics.flow.arrivals import arrival_bins
from tfrctrace.metrics.flow_metrics import each_metric
from tfrctrace.metrics.sets.competing import CompetingSet
from tfrctrace.metrics.sets.up_down import up_down_groups
from tfrctrace.metrics.windows import Windows
from tfrctrace.parsers.schema import FLOWS

NS2 = Path(__file__).parents[1] / "data" / "ns2"
TRUTH = json.loads((NS2 / "truth.json").read_text())
S = 1_000_000_000
EVERYTHING_GIVEN = Assumptions(capacity_bps=1e6, weights={"tcp": 2.0}, step_ns=6 * S)
RTTS = [f"rtt_{name}_ms" for name in ("min", "mean", "p50", "p95", "max", "std")]


def sinks():
    """Give for each trace what the sinks of ns-2 counted in a common window, and the indices of that."""
    with (NS2 / "metrics.csv").open() as file:
        for name, rows in groupby(csv.DictReader(file), key=lambda row: row["scenario"]):
            yield name, list(rows)


@pytest.mark.parametrize(("name", "rows"), list(sinks()), ids=lambda part: str(part)[:15])
def test_rates_and_indices_of_what_arrived_are_those_of_the_sinks(name, rows):
    trace = tfrctrace.open(NS2 / name)
    start_ns, end_ns = (round(float(rows[0][f"window_{end}_s"]) * S) for end in ("start", "end"))
    flows = (
        trace.flows.filter((pl.col("direction") == "fwd") & pl.col("transport").is_in(["tcp", "tfrc"]))
        .with_columns(pl.col("transport").alias("group"))
        .sort("flow_id")
    )
    bins = arrival_bins(trace.packets(), S // 2).filter(pl.col("direction") == "fwd")
    windows = Windows(start_ns, S // 2, (end_ns - start_ns) // (S // 2))
    one = CompetingSet(1, name, tuple(flows["flow"]), windows, start_ns)
    found = list(each_metric(evaluate(flows, bins, [one], column="received_bytes", window_ns=S // 2).rows))

    def value(metric, group=None):
        (evaluated,) = [m for m in found if m.name == metric and group in {None, m.group}]
        return evaluated.value

    rates = {metric.flows[0]: metric.value for metric in found if metric.name == "rate_bps"}
    by_id = {str(flow_id): rates[flow] for flow, flow_id in flows.select("flow", "flow_id").iter_rows()}
    assert {row["flow"]: round(by_id[row["flow"]]) for row in rows} == {
        row["flow"]: int(row["throughput_bps"]) for row in rows
    }
    assert round(value("jain"), 4) == float(rows[0]["jain_all_tfrc_tcp"])
    assert round(value("mean_rate_bps", "tfrc")) == int(rows[0]["mean_tfrc_bps"])
    assert round(value("mean_rate_bps", "tcp")) == int(rows[0]["mean_tcp_bps"])
    assert round(value("inter_protocol_normalized", "tfrc"), 4) == float(rows[0]["inter_ratio_tfrc"])


def frames(*flows, width_ns=S):
    """Return the frames of flows with these (group, bytes per bin), from time 0 on."""
    rows = [
        (number, place * width_ns, width_ns, size, size + 40)
        for number, (_, sizes) in enumerate(flows, start=1)
        for place, size in enumerate(sizes)
        if size
    ]
    sizes = {"unique_bytes": pl.UInt64, "wire_bytes": pl.UInt64}
    schema = {"flow": pl.UInt32, "time_ns": pl.Int64, "width_ns": pl.Int64, **sizes}
    known = {"pdr": 0.9, "plr": 0.1, "sent_packets": 10, "received_packets": 9, "dropped_packets": 1}
    known |= {"data_segments": 10, "retransmitted_segments": 1, "loss_event_rate": 0.1}
    known |= {"packets": 10, "unique_bytes": 900, "wire_bytes": 1000, "rtt_samples": 0}
    known |= {"source": "a", "vantage": "sender", "handshake_rtt_ms": 1.0}
    known |= {"rto_ms": 500.0, "rto_episodes": 2, "duration_s": 10.0, "begin_ns": 0}
    unknown = dict.fromkeys(("delay_mean_ms", "delay_p95_ms", "jitter_ms", "delay_variation_ms", *RTTS))
    table = pl.DataFrame(
        [
            {
                "flow": number,
                "group": group,
                "start_ns": 0,
                "end_ns": len(sizes) * width_ns,
                **known,
                **unknown,
            }
            for number, (group, sizes) in enumerate(flows, start=1)
        ],
        schema_overrides={"flow": pl.UInt32, **dict.fromkeys(unknown, pl.Float64)},
    )
    return table, pl.DataFrame(rows, schema=schema, orient="row")


def evaluated(*flows, window_ns=S, width_ns=S, given=NO_ASSUMPTIONS):
    table, bins = frames(*flows, width_ns=width_ns)
    count = min(len(sizes) for _, sizes in flows) * width_ns // window_ns
    one = CompetingSet(1, "a", tuple(table["flow"]), Windows(0, window_ns, count), 0)
    found = evaluate(table, bins, [one], column="unique_bytes", window_ns=window_ns, assumptions=given)
    return list(each_metric(found.rows))


def test_every_metric_of_the_catalogue_is_reported_and_no_other():
    found = evaluated(("tcp", [1, 2] * 60), ("tfrc", [3] * 120), width_ns=S // 10, given=EVERYTHING_GIVEN)
    assert {metric.name for metric in found} == set(BY_NAME)
    assert len(BY_NAME) == len(CATALOGUE)


def test_each_metric_says_of_what_it_is_made():
    flows = ("tcp", [1, 2] * 60), ("tfrc", [3] * 120)
    for metric in evaluated(*flows, width_ns=S // 10, window_ns=S, given=EVERYTHING_GIVEN):
        assert metric.unit == BY_NAME[metric.name].unit
        assert metric.flows or metric.name == "sparse_flows"
        assert (metric.value is None) == (metric.reason is not None)
        of_own_windows = {"cov", "loss_synchronisation"}
        assert metric.name in of_own_windows or metric.window_s in {1.0, None}
        assert (metric.competing_set is None) == (BY_NAME[metric.name].subject == "life")
        if metric.value is not None:
            assert metric.n > 0, metric.name


@pytest.mark.parametrize(
    ("again", "before", "expected"),
    [
        (0, 0, (None, 0, "no flow lost a packet")),
        (1, None, (1.0, 20, None)),
        # what is sent again for a loss before the capture is seen once
        (1, 3, (None, 0, "the trace does not show the losses of each flow")),
    ],
)
def test_synchronisation_is_of_flows_whose_losses_show(again, before, expected):
    table, bins = frames(("tcp", [1] * 20), ("tcp", [1] * 20))
    unknown = pl.lit(None, dtype=pl.UInt64)
    table = table.with_columns(
        transport=pl.lit("tcp"),
        lost_packets=unknown,
        lost_before_capture=pl.lit(before, dtype=pl.UInt64),
    )
    bins = bins.with_columns(lost_packets=unknown, retransmitted_packets=pl.lit(again, dtype=pl.UInt64))
    one = CompetingSet(1, "a", tuple(table["flow"]), Windows(0, S, 20), 0)
    rows = evaluate(table, bins, [one], column="unique_bytes", window_ns=S).rows
    (found,) = [metric for metric in each_metric(rows) if metric.name == "loss_synchronisation"]
    assert (found.value, found.n, found.reason) == expected


def test_variation_is_reported_for_timescales_that_leave_eight_windows():
    found = [m for m in evaluated(("tcp", [1, 2, 5] * 40), width_ns=S // 10) if m.name == "cov"]
    assert [metric.window_s for metric in found] == [0.1, 0.2, 0.5, 1.0]
    assert [metric.n for metric in found] == [120, 60, 24, 12]


def test_a_silent_flow_counts_for_fairness_and_has_no_burstiness():
    found = evaluated(("tcp", [4] * 10), ("tcp", [0] * 10))
    (jain,) = [m for m in found if m.name == "jain"]
    assert (jain.value, jain.n) == (0.5, 2)
    silent = {m.name: m for m in found if m.flows == (2,)}
    assert silent["rate_bps"].value == silent["rate_std_bps"].value == 0
    assert silent["burstiness"].value is None
    assert silent["burstiness"].reason == "no byte in the windows"
    assert silent["convergence_s"].value is None


def test_nothing_at_all_has_no_index():
    found = {m.name: m for m in evaluated(("tcp", [0] * 10), ("tfrc", [0] * 10))}
    for name in ("jain", "jain_window_mean", "inter_protocol_normalized", "equivalence_ratio"):
        assert found[name].value is None
        assert found[name].reason


def test_utilisation_counts_frames_and_a_share_twice_as_large_can_be_due():
    found = evaluated(
        ("tcp", [200] * 10), ("tfrc", [100] * 10), given=Assumptions(capacity_bps=8e3, weights={"tcp": 2})
    )
    by_name = {m.name: m for m in found if m.competing_set}
    # 240 and 140 bytes a second of 1000
    assert (by_name["link_utilisation"].value, by_name["link_utilisation"].n) == (0.38, 10)
    assert by_name["jain_weighted"].value == 1
    assert by_name["jain"].value == 0.9


def test_one_flow_is_not_compared():
    found = {m.name: m for m in evaluated(("tcp", [3] * 10))}
    assert (found["jain"].value, found["jain"].n) == (1, 1)
    assert "equivalence_ratio" not in found
    assert found["inter_protocol_ratio"].value is None
    assert found["fairness_settling_s"].reason == "one flow"


def test_of_very_many_flows_pairs_are_not_compared():
    found = {m.name: m for m in evaluated(*[("tcp", [1, 2, 3])] * 65)}
    assert found["equivalence_ratio"].value is None
    assert found["equivalence_ratio"].reason == "more than 64 flows"
    assert found["jain"].value == 1


def test_shards_of_bins_give_the_same_as_the_whole():
    flows = [("tcp", [5, 0, 7, 9] * 5), ("tfrc", [4, 4, 3, 5] * 5)]
    table, bins = frames(*flows)
    one = CompetingSet(1, "a", (1, 2), Windows(0, S, 20), 0)
    parts = [bins.sample(fraction=1, shuffle=True, seed=7)[place::3] for place in range(3)]
    whole, sharded = (
        list(each_metric(evaluate(table, some, [one], column="unique_bytes", window_ns=S).rows))
        for some in (bins, pl.concat(parts))
    )
    assert whole == sharded


def test_a_flow_of_a_hundred_years_needs_no_memory_for_every_second_of_them():
    century_ns = 100 * 365 * 86_400 * S
    table, bins = frames(("tcp", [5] * 10), ("tcp", [5] * 10))
    last = bins.with_columns(pl.col("time_ns") + century_ns - 20 * S)
    table = table.with_columns(pl.lit(century_ns).alias("end_ns"))
    one = CompetingSet(1, "a", (1, 2), Windows(0, S, century_ns // S), 0)
    found = evaluate(table, pl.concat([bins, last]), [one], column="unique_bytes", window_ns=S)
    by_name = {metric.name: metric for metric in each_metric(found.rows)}
    assert by_name["jain"].value == 1
    for name in ("convergence_s", "rise_s", "stability", "fairness_settling_s"):
        assert (by_name[name].value, by_name[name].reason) == (None, "more than 10,000,000 windows")


def test_a_flow_alone_is_fair_to_itself_and_is_compared_with_nobody():
    found = {metric.name: metric for metric in evaluated(("tcp", [4] * 10))}
    assert (found["jain"].value, found["jain"].n) == (1, 1)
    assert found["inter_protocol_normalized"].value is None
    assert found["inter_protocol_normalized"].reason == "one group only, or all rates are 0"
    assert "equivalence_ratio" not in found


def test_flows_of_unequal_length_are_compared_in_what_they_have_in_common():
    trace = tfrctrace.open(NS2 / "wired-mix.tr.xz")
    measured = trace.measure("jain", window="500ms", basis="received")
    lives = dict(measured.looked_at.select("flow", pl.struct("start_ns", "end_ns")).iter_rows())
    assert len({life["start_ns"] for life in lives.values()}) > 1
    for one in measured.sets:
        assert one.windows.start_ns >= max(lives[flow]["start_ns"] for flow in one.flows)
        assert one.windows.end_ns <= min(lives[flow]["end_ns"] for flow in one.flows)


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_delivery_ratios_are_those_of_the_agents(name):
    """What ns-2's agents sent and their sinks received once, for every agent that counts both."""
    trace = tfrctrace.open(NS2 / name)
    measured = trace.measure("pdr", "drop_ratio", least_packets=1)
    flows = {row["flow"]: row for row in measured.looked_at.iter_rows(named=True)}
    value_of = {(metric.flows[0], metric.name): metric.value for metric in measured.metrics}
    checked = 0
    for agent in TRUTH[name]:
        if agent.get("received_once") is None or agent.get("sent_packets") is None:
            continue
        ends = {key: agent[key] for key in ("src", "src_port", "dst", "dst_port")}
        for flow, row in flows.items():
            if not ends.items() <= row.items():
                continue
            # what was on its way at the end counts neither as delivered nor as lost
            sent = agent["sent_packets"] - (row["in_flight_packets"] or 0)
            # a segment that arrives again is nothing new to the sink, but a packet of its own in the trace
            copies = value_of[flow, "pdr"] * sent - agent["received_once"]
            assert -1e-6 <= copies <= agent.get("retransmitted_packets", 0) + 1e-6
            if "dropped_packets" in agent:
                dropped = agent["dropped_packets"] / agent["sent_packets"]
                assert value_of[flow, "drop_ratio"] == pytest.approx(dropped)
            checked += 1
    assert checked


@pytest.mark.parametrize("name", ["updown-3-tfrc-1", "updown-3-mtfrc-1"])
def test_the_ratio_of_uploads_to_downloads_is_that_of_the_sinks_bytes(name):
    folder = Path(__file__).parents[2] / "sample_traces" / "studies" / "zhang"
    counted = truth_of(folder)[name]
    sinks_bytes = [flow["sink_bytes"] for flow in counted.values()]
    trace = tfrctrace.open(folder / "traces" / f"{name}.tr.xz")
    labels = ["upload=port 10", "download=port 40"]
    measured = trace.measure("upload_download_ratio", labels=labels, basis="received")
    (evaluated,) = measured.metrics
    # sinks count from the first packet to the last, the metric in the windows that all flows have in common
    assert evaluated.value == pytest.approx(sum(sinks_bytes[:3]) / sum(sinks_bytes[3:]), rel=0.1)
    assert evaluated.n == 6


def test_without_labels_the_place_of_a_capture_says_what_goes_up_and_nothing_is_guessed():
    flows = pl.DataFrame(
        {
            "flow": [1, 2, 3, 4],
            "group": ["tcp"] * 4,
            "source": ["host", "host", "server", "server"],
            "vantage": ["sender", "receiver", "sender", None],
        }
    )
    assert up_down_groups(flows) == {1: "up", 2: "down"}
    labelled = flows.with_columns(group=pl.Series(["Upload", "tcp", "down", "tcp"]))
    assert up_down_groups(labelled) == {1: "up", 3: "down"}
    assert up_down_groups(flows.drop("vantage")) == {}
    found = {m.name: m for m in tfrctrace.open(NS2 / "wired-mix.tr.xz").measure().metrics}
    evaluated = found["upload_download_ratio"]
    assert (evaluated.value, evaluated.n) == (None, 0)
    assert evaluated.reason == "no flow is known to be an upload or a download"


def test_the_catalogue_names_a_function_or_a_column_of_each_metric():
    columns = {column.name for column in FLOWS}
    for described in CATALOGUE:
        module, _, function = described.function.rpartition(".")
        if function:
            assert callable(getattr(import_module(f"tfrctrace.metrics.{module}"), function))
        else:
            assert described.name in columns
