"""MTFRC: TFRC under the bounds of the MAC, as these change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from replay_recordings import recording

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.replay.airtime import _hub, frames_in_the_air
from tfrctrace.replay.medium import medium_frames, medium_from_frames, medium_from_options
from tfrctrace.replay.mtfrc import Bounds, bounded, bounds_of
from tfrctrace.replay.tfrc import TfrcVariant, run
from tfrctrace.wlan.cell import CellSettings
from tfrctrace.wlan.mtfrc import send_rate_bps
from tfrctrace.wlan.population import Description, Population
from tfrctrace.wlan.scenario import read_scenario

DATA = Path(__file__).resolve().parents[2] / "data"
SCENARIO = Path(__file__).resolve().parents[3] / "sample_traces" / "up-and-down.toml"
NS = 1_000_000_000

REPORTS = [{"t": 0.1 * n, "r_sample": 0.05, "p": 0.002, "x_recv": 1e6} for n in range(1, 46)]
"""Almost 5 Mbit/s by the equation."""


def mtfrc(bounds: list[Bounds], reports: list[dict[str, Any]] = REPORTS) -> pl.DataFrame:
    flow = recording(reports, end_s=4.6)
    return bounded(run(TfrcVariant(), flow), bounds, flow)


def test_the_numbers_of_the_paper_bound_what_is_sent() -> None:
    # Zhang et al.: 1.14 Mb/s for two stations at 11 and two at 5.5 Mb/s, 1.48 for four at 11
    for stations, printed in ((("2x11", "2x5.5"), 1.14), (("4x11",), 1.48)):
        network = medium_from_options(Description(stations=stations), CellSettings(preset="paper"))
        steps = mtfrc(bounds_of(network, 0))
        bound = steps.filter(pl.col("mode") == "x_t")
        # but for the first report's window of four packets
        assert bound.height >= steps.height - 1
        assert {round(x_bps / 1e6, 2) for x_bps in bound["x_bps"]} == {printed}


def test_downloads_get_their_share_as_in_the_second_scenario_of_the_paper() -> None:
    # 581 kb/s, with the stations at 11 and 2 Mb/s
    network = read_scenario(str(SCENARIO), CellSettings())
    at_80_s = [one for one in bounds_of(network, 0) if one.time_ns >= 80 * NS]
    steps = mtfrc([Bounds(time_ns=0, x_t_bps=at_80_s[0].x_t_bps, x_fair_bps=at_80_s[0].x_fair_bps)])
    assert set(steps["mode"]) == {"x_fair"}
    assert steps["x_bps"].unique().to_list() == [pytest.approx(580_797, rel=1e-5)]


def test_a_station_that_comes_or_goes_is_a_step_of_its_own() -> None:
    bounds = [
        Bounds(time_ns=0, x_t_bps=1e6, x_fair_bps=None),
        Bounds(time_ns=round(2.2 * NS), x_t_bps=9e7, x_fair_bps=None),
        Bounds(time_ns=round(3.3 * NS), x_t_bps=9e7, x_fair_bps=5e5),
    ]
    steps = mtfrc(bounds)
    changes = steps.filter(pl.col("event") == "population")
    assert changes["time_ns"].to_list() == [round(2.2 * NS), round(3.3 * NS)]
    assert changes["mode"].to_list() == ["equation", "x_fair"]
    assert steps.filter(pl.col("time_ns") < 2.2 * NS)["mode"].unique().to_list() == ["x_t"]
    assert steps["time_ns"].is_sorted()


def test_before_anybody_is_there_nothing_is_bounded() -> None:
    steps = mtfrc([Bounds(time_ns=2 * NS, x_t_bps=1.0, x_fair_bps=None)])
    early = steps.filter(pl.col("time_ns") < 2 * NS)
    assert early["x_bps"].to_list() == early["x_tfrc_bps"].to_list()
    assert early["x_t_bps"].null_count() == early.height


@pytest.mark.parametrize(("x_t", "x_fair"), [(1e5, 2e5), (2e5, 1e5), (1e5, 1e5), (1e9, None), (1e5, None)])
def test_the_least_is_chosen_as_the_model_has_it(x_t: float, x_fair: float | None) -> None:
    for row in mtfrc([Bounds(time_ns=0, x_t_bps=x_t, x_fair_bps=x_fair)]).iter_rows(named=True):
        x_bps, bound = send_rate_bps(row["x_tfrc_bps"], x_t, x_fair)
        assert row["x_bps"] == x_bps
        assert (row["mode"] == bound) or (bound == "x_tfrc" and row["mode"] == "equation")


def test_the_frames_of_a_capture_show_who_is_there_and_how_fast() -> None:
    trace = tfrctrace.open(DATA / "wifi" / "ns3-wifi-radiotap-veno-udp-2-1.pcap.gz")
    network = medium_from_frames(trace.link_samples, CellSettings(), trace.zero_ns)
    assert network.cell.phy.standard in {"b", "g"}
    assert network.steps
    seen = trace.link_samples.filter((pl.col("kind") == "data") & pl.col("rate_mbps").is_not_null())
    rates = {rate.mbps for step in network.steps for rate in step.population.rates}
    assert rates <= set(seen["rate_mbps"])
    steps = trace.replay("mtfrc", network=network, rtt="50ms", least_packets=10)
    assert steps["x_t_bps"].drop_nulls().len() > 0
    assert (steps["x_bps"] <= steps["x_t_bps"].fill_null(float("inf"))).all()


def stations_of(population: Population) -> list[float]:
    rates = [*population.greedy, *(one.rate for one in population.sparing)]
    return sorted((rate.mbps for rate in rates), reverse=True)


def test_a_station_that_sends_less_than_others_spares_rate_as_the_script_has_it() -> None:
    # wireless-rates.tcl: the station at 2 Mbit/s sends 20 packets/s from 0.5 s on, and 60 from 2 s on
    trace = tfrctrace.open(DATA / "ns2" / "wireless-sparing.tr.xz")
    network = medium_from_frames(medium_frames(trace), CellSettings(), trace.zero_ns)
    loads = [
        round(one.load_bps / network.cell.s_bits, 6)
        for step in network.steps
        for one in step.population.sparing
        if one.rate.mbps == 2
    ]
    assert loads == [10, 20, 60]
    steps = trace.replay("mtfrc", profile="ns2", network=network)
    x_t = steps.filter(pl.col("flow") == 2, pl.col("event") == "population")["x_t_bps"].to_list()
    greedy = medium_from_options(Description(stations=("2", "11", "5.5")), CellSettings())
    # who spares rate leaves it to the others
    assert min(x_t) > bounds_of(greedy, 0)[0].x_t_bps


def test_the_busiest_is_greedy_and_windows_are_as_many_as_a_scenario_may_have() -> None:
    frames = pl.DataFrame(
        {
            "time_ns": [second * NS for second in range(25_000)] * 2 + [0],
            "transmitter": ["1"] * 25_000 + ["2"] * 25_000 + ["3"],
            "receiver": ["4"] * 50_001,
            "bytes": [1000] * 50_001,
            "bssid": pl.Series([None] * 50_001, dtype=pl.String),
            "kind": ["data"] * 50_001,
            "rate_mbps": [11.0] * 50_001,
        }
    )
    network = medium_from_frames(frames, CellSettings(), 0)
    assert [len(step.population.sparing) for step in network.steps] == [1, 0]
    assert all(len(step.population.greedy) == 2 for step in network.steps)
    moving = frames.with_columns(rate_mbps=pl.Series([11.0, 5.5] * 25_000 + [2.0]))
    assert len(medium_from_frames(moving, CellSettings(), 0).steps) <= 10_001


def test_repeated_frames_are_one_load() -> None:
    frames = pl.DataFrame(
        {
            "time_ns": list(range(110)),
            "transmitter": ["1"] * 100 + ["2"] * 10,
            "receiver": ["3"] * 110,
            "bytes": [1000] * 110,
            "bssid": pl.Series([None] * 110, dtype=pl.String),
            "kind": ["data"] * 110,
            "rate_mbps": [11.0] * 110,
            "repeated": [0] * 100 + [0, 1] * 5,
        }
    )
    network = medium_from_frames(frames, CellSettings(), 0)
    assert [one.load_bps / network.cell.s_bits for one in network.steps[0].population.sparing] == [5]


def test_mac_lines_of_ns_2_show_who_is_there_and_how_fast_as_the_script_has_it() -> None:
    # wireless-rates.tcl: 11 Mbit/s; 5.5 and from 2 s on 11; 2 from 1.2 to 2.5 s; the base station is node 1
    trace = tfrctrace.open(DATA / "ns2" / "wireless-rates.tr.xz")
    frames = medium_frames(trace)
    assert set(frames["bssid"]) == {"1"}
    begin = pl.col("time_ns") < 2 * NS
    # what the MAC held at 2 s still went at the old rate
    settled = frames.filter(~pl.col("time_ns").is_between(2 * NS, 2 * NS + NS // 100))
    rates = {
        (node, early): set(settled.filter(pl.col("transmitter") == node, begin == early)["rate_mbps"])
        for node in "23"
        for early in (True, False)
    }
    assert rates == {("2", True): {11}, ("2", False): {11}, ("3", True): {5.5}, ("3", False): {11}}
    assert set(frames.filter(pl.col("transmitter") == "4")["rate_mbps"]) == {2}
    network = medium_from_frames(frames, CellSettings(), trace.zero_ns)
    assert [(step.from_s, stations_of(step.population)) for step in network.steps] == [
        (0, [11, 5.5]),
        (1, [11, 5.5, 2]),
        (2, [11, 11, 2]),
        (3, [11, 11]),
        (4, [11]),
    ]
    assert all(step.population.access_point for step in network.steps)
    steps = trace.replay("mtfrc", profile="ns2", network=network)
    changes = steps.filter(pl.col("event") == "population", pl.col("flow") == 2)
    assert changes["time_ns"].to_list() == [NS, 2 * NS, 3 * NS]
    # less is left for each while a third station is there, and more where the second one is faster
    x_t = changes["x_t_bps"].to_list()
    assert x_t[0] < x_t[1] < x_t[2]


def test_a_network_of_ns_2_without_a_base_station_has_no_downloads() -> None:
    air = tfrctrace.open(DATA / "ns2" / "wireless-rates.tr.xz")
    frames = medium_frames(air).with_columns(bssid=pl.lit(None, dtype=pl.String))
    assert all(
        step.population.access_point is None for step in medium_from_frames(frames, CellSettings(), 0).steps
    )
    with pytest.raises(UsageError, match="needs an access point"):
        medium_from_frames(frames, CellSettings(), 0, downloads=1)


@pytest.mark.parametrize("preamble_bits", [192, 120])
@pytest.mark.parametrize("mbps", [1, 2, 5.5, 11, 54])
def test_the_time_in_the_air_gives_the_rate(preamble_bits: int, mbps: float) -> None:
    # TXTIME of ns-2's Mac/802_11, and 250 m on the way
    lines = [
        {
            "time_ns": 10_000_000 * uid
            + round(1000 * after * (preamble_bits + (8 * size - preamble_bits) / mbps + 0.8)),
            "node": str(after),
            "event": ("sent", "received")[after],
            "uid": uid,
            "wire_bytes": size - 58 * after,
            "payload_bytes": size - 90,
            "layer": "mac",
        }
        for uid, size in enumerate((98, 570, 998, 1110, 1558))
        for after in (0, 1)
    ]
    assert frames_in_the_air([pl.DataFrame(lines)])["rate_mbps"].to_list() == [mbps] * 5


def test_ns_2_without_mac_lines_says_what_would_supply_them() -> None:
    trace = tfrctrace.open(DATA / "ns2" / "wireless-old.tr.gz")
    with pytest.raises(UsageError, match="has the rate of a station") as refused:
        medium_from_frames(medium_frames(trace), CellSettings(), trace.zero_ns)
    assert "-macTrace ON" in str(refused.value.hint)


def test_uploads_of_the_paper_s_cell_would_have_been_bounded_and_downloads_hardly() -> None:
    # three uploads (port 10) and three downloads (port 40) at 11 Mbit/s: uploads got 2.2 times as much
    trace = tfrctrace.open(SCENARIO.parent / "studies" / "zhang" / "traces" / "updown-3-tfrc-1.tr.xz")
    network = medium_from_options(Description(stations=("3x11",), downloads=3), CellSettings(preset="paper"))
    steps = trace.replay("mtfrc", profile="ns2", network=network)
    ports = trace.flows.filter(pl.col("direction") == "fwd").select("flow", "src_port")
    bounded_by = (
        steps.join(ports, on="flow")
        .group_by("src_port", "flow")
        .agg(pl.col("mode").is_in(["x_t", "x_fair"]).mean().alias("bounded"))
    )
    for port, low, high in ((10, 0.6, 1), (40, 0.0, 0.3)):
        shares = bounded_by.filter(pl.col("src_port") == port)["bounded"]
        assert shares.len() == 3
        assert shares.is_between(low, high).all()


def test_frames_without_rates_show_nobody() -> None:
    trace = tfrctrace.open(DATA / "captures" / "linux-relay-loss-snd.pcap.gz")
    with pytest.raises(UsageError, match="has the rate of a station"):
        medium_from_frames(trace.link_samples, CellSettings(), trace.zero_ns)


def test_who_is_there_must_be_given_and_only_for_mtfrc() -> None:
    trace = tfrctrace.open(DATA / "captures" / "linux-relay-loss-snd.pcap.gz")
    with pytest.raises(UsageError, match="stations that share the medium"):
        trace.replay("mtfrc")
    with pytest.raises(UsageError, match="apply to `mtfrc` only"):
        trace.replay("tfrc", network=medium_from_options(Description(stations=("11",)), CellSettings()))


def frames_between(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    """Return data frames of one second in the network `ap`: transmitter, receiver, number, and bytes."""
    frames = [
        {"transmitter": sender, "receiver": receiver, "bytes": size, "time_ns": number}
        for sender, receiver, count, size in rows
        for number in range(count)
    ]
    constant = {"bssid": pl.lit("ap"), "kind": pl.lit("data"), "rate_mbps": pl.lit(11.0)}
    return pl.DataFrame(frames).with_columns(**constant)


def test_downloads_are_stations_that_receive_more_than_they_send() -> None:
    frames = frames_between(
        ("up", "ap", 100, 1000),
        ("ap", "up", 50, 80),
        ("down", "ap", 30, 80),
        ("ap", "down", 60, 1000),
        ("ap", "other", 40, 1000),
        # to all stations
        ("ap", "ff:ff:ff:ff:ff:ff", 10, 1000),
    )
    (step,) = medium_from_frames(frames, CellSettings(), 0).steps
    assert step.population.access_point is not None
    assert step.population.access_point.downloads == 2
    (step,) = medium_from_frames(frames, CellSettings(), 0, downloads=5).steps
    assert step.population.access_point is not None
    assert step.population.access_point.downloads == 5


def test_an_access_point_that_only_acknowledges_has_no_downloads() -> None:
    frames = frames_between(("up", "ap", 100, 1000), ("ap", "up", 50, 80), ("ap", "quiet", 5, 1000))
    (step,) = medium_from_frames(frames, CellSettings(), 0).steps
    assert step.population.access_point is not None
    assert step.population.access_point.downloads == 0


@pytest.mark.parametrize(
    ("name", "uploads", "downloads"),
    [
        ("updown-3-tfrc-1", [11, 11, 11], 3),
        ("scenario2-5-tfrc-1", [11, 2], 3),
    ],
)
def test_stations_of_the_paper_s_scenarios_are_found_as_the_script_has_them(name, uploads, downloads) -> None:
    trace = tfrctrace.open(SCENARIO.parent / "studies" / "zhang" / "traces" / f"{name}.tr.xz")
    steps = medium_from_frames(medium_frames(trace), CellSettings(), trace.zero_ns).steps
    seen = [(stations_of(step.population), step.population.access_point.downloads) for step in steps]
    assert (uploads, downloads) in seen


def test_downloads_of_a_capture_are_those_that_tshark_s_directions_show() -> None:
    # tshark: From-DS 1,244,756 bytes to station 4 and 51,136 to station 5; To-DS 95,900 and 88 bytes
    trace = tfrctrace.open(DATA / "wifi" / "ns3-wifi-radiotap-veno-udp-2-1.pcap.gz")
    steps = medium_from_frames(medium_frames(trace), CellSettings(), trace.zero_ns).steps
    assert {step.population.access_point.downloads for step in steps if step.population.access_point} == {2}


def test_the_middle_of_a_chain_is_no_access_point() -> None:
    frames = pl.DataFrame(
        {"uid": [1, 1, 2, 2], "node": ["0", "1", "2", "1"], "receiver": ["1", "2", "1", "0"]}
    )
    assert _hub(frames) is None
    assert _hub(frames.with_columns(uid=pl.Series([1, 2, 3, 4]))) == "1"
