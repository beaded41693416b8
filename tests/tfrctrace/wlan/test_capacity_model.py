"""The 802.11 model of MTFRC against vectors, the numbers of its paper, and what theory says of it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.errors import UsageError
from tfrctrace.wlan.capacity import capacity
from tfrctrace.wlan.cell import CellSettings, make_cell
from tfrctrace.wlan.contention import JamMode, jam_time_us
from tfrctrace.wlan.mtfrc import fair_rate_bps, send_rate_bps
from tfrctrace.wlan.population import AccessPoint, Frames, Population, Sparing
from tfrctrace.wlan.rates import PLCP_US, Dsss

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "mtfrc.json").read_text())
B_RATES = (1.0, 2.0, 5.5, 11.0)

rates = st.sampled_from(B_RATES).map(Dsss)
stations = st.lists(rates, min_size=1, max_size=12)
loads = st.lists(st.builds(Sparing, rates, st.floats(0, 5e6)), max_size=5)
settings = st.builds(
    CellSettings,
    preset=st.sampled_from(["standard", "paper"]),
    cw_min=st.integers(8, 64),
    jam=st.sampled_from(get_args(JamMode)),
    jam_backoff=st.booleans(),
)


def ap(mbps=11.0, **more):
    return AccessPoint(rate=Dsss(mbps), **more)


def found_for(constants, entry):
    """Return the cell and the capacity of a vector."""
    preamble = next(name for name, us in PLCP_US.items() if us == constants["plcp"])
    cell = make_cell(
        CellSettings(
            preset="paper",
            preamble=preamble,
            ack_rate=f"{constants['ack_rate']:g}",
            cw_min=constants["cwmin"],
            jam=constants["jam"],
            jam_backoff=constants["jam_backoff"],
        )
    )

    def rate(mbps):
        return cell.phy.rate(f"{mbps:g}")

    access_point = entry["ap_rate_mbps"] and AccessPoint(
        rate=rate(entry["ap_rate_mbps"]),
        is_saturated=entry["ap_greedy"],
        frames=tuple(Frames(rate(mbps), per_s, bits) for per_s, bits, mbps in entry["airtime_loads"]),
    )
    population = Population(
        greedy=tuple(map(rate, entry["greedy_rates_mbps"])),
        sparing=tuple(Sparing(rate(mbps), load) for mbps, load in entry["sparing"]),
        access_point=access_point,
    )
    return cell, capacity(cell, population)


@pytest.mark.parametrize("entry", VECTORS["mtfrc_capacity"], ids=lambda entry: entry["id"])
def test_every_term_agrees_with_the_vectors(entry):
    cell, found = found_for(entry["constants"], entry)
    assert (cell.s_bits, cell.s_t_bits) == (entry["S_bits"], entry["S_t_bits"])
    terms = {
        "n_contenders": len(found.contenders),
        "P_c": found.p_c,
        "t_cont_us": found.t_cont_us,
        "t_jam_us": found.t_jam_us,
        "T_col_us": found.t_col_us,
        "sum_T_us": found.sum_t_us,
        "U": found.u,
        "T_us": found.t_us,
        "X_m_bps": found.x_m_bps,
        "X_t_bps": found.x_t_bps,
    }
    assert terms == pytest.approx(entry["expect"], rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["mtfrc_fair"], ids=lambda entry: entry["id"])
def test_the_fair_rate_agrees_with_the_vectors(entry):
    found = fair_rate_bps(entry["X_m_bps"], entry["U"], entry["D"])
    if entry["D"]:
        assert found == pytest.approx(entry["X_fair_bps"], rel=1e-9)
    else:
        assert found is None, "without downloads X_fair must not bound anything"


@pytest.mark.parametrize("entry", VECTORS["mtfrc_min"], ids=str)
def test_the_sending_rate_agrees_with_the_vectors(entry):
    x_send, bound = send_rate_bps(entry["X_tfrc"], entry["X_t"], entry["X_fair"])
    assert (x_send, bound) == (entry["X_send"], entry["bound"].lower())


def test_of_equal_bounds_the_first_is_named():
    assert send_rate_bps(5.0, 5.0, 5.0) == (5.0, "x_tfrc")
    assert send_rate_bps(6.0, 5.0, 5.0) == (5.0, "x_t")


def paper(*greedy, access_point=None):
    cell = make_cell(CellSettings(preset="paper"))
    return capacity(cell, Population(greedy=tuple(map(Dsss, greedy)), access_point=access_point))


def test_the_paper_s_four_numbers():
    assert round(paper(11, 11, 11, 11, access_point=ap()).x_m_bps / 1e6, 2) == 1.48
    assert round(paper(11, 11, 5.5, 5.5, access_point=ap()).x_m_bps / 1e6, 2) == 1.14
    up_and_down = paper(11, 2, access_point=ap(5.5, downloads=3))
    assert round(up_and_down.x_m_bps / 1e3) == 968
    assert round(up_and_down.x_fair_bps / 1e3) == 581


@given(st.lists(st.floats(1, 1e5), min_size=2, max_size=9))
def test_the_pairwise_jam_is_the_mean_of_the_longer_frame_of_all_pairs(times_us):
    longer = [Fraction(max(pair)) for pair in combinations(times_us, 2)]
    assert jam_time_us(times_us, "pairwise") == pytest.approx(float(sum(longer) / len(longer)), rel=1e-12)


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=9))
def test_each_jam_lies_between_the_shortest_and_the_longest_frame(times_us):
    for mode in get_args(JamMode):
        jam_us = jam_time_us(times_us, mode)
        assert min(times_us) * (1 - 1e-12) <= jam_us <= max(times_us) * (1 + 1e-12)


@given(settings, stations, loads, st.randoms(use_true_random=True))
def test_the_order_of_stations_changes_nothing(chosen, greedy, sparing, random):
    cell = make_cell(chosen)
    shuffled = [random.sample(items, len(items)) for items in (greedy, sparing)]
    one, other = (
        capacity(cell, Population(greedy=tuple(first), sparing=tuple(second), access_point=ap()))
        for first, second in ((greedy, sparing), shuffled)
    )
    assert (one.x_m_bps, one.t_us, one.u, one.t_jam_us) == (
        other.x_m_bps,
        other.t_us,
        other.u,
        other.t_jam_us,
    )


@given(settings, stations, loads)
def test_shares_of_time_fill_it(chosen, greedy, sparing):
    cell = make_cell(chosen)
    found = capacity(cell, Population(greedy=tuple(greedy), sparing=tuple(sparing), access_point=ap()))
    assert 0 <= found.u < 1
    frames_per_us = found.x_m_bps / cell.s_bits / 1e6
    used = math.fsum(one.t_us for one in found.contenders if one.is_greedy) + found.t_col_us
    assert found.u + used * frames_per_us == pytest.approx(1, rel=1e-12)
    assert found.x_t_bps == pytest.approx(found.x_m_bps * cell.s_t_bits / cell.s_bits, rel=1e-12)


@given(stations, loads)
def test_each_station_is_given_the_smaller_one_of_its_load_and_x_m(greedy, sparing):
    found = capacity(make_cell(CellSettings()), Population(greedy=tuple(greedy), sparing=tuple(sparing)))
    for one in found.contenders:
        if one.load_bps is not None:
            assert one.is_greedy == (one.load_bps >= found.x_m_bps)


@given(st.sampled_from(["pairwise", "mean"]), stations, rates)
def test_one_more_station_leaves_less_for_each(jam, greedy, another):
    cell = make_cell(CellSettings(jam=jam))
    before = capacity(cell, Population(greedy=tuple(greedy), access_point=ap()))
    after = capacity(cell, Population(greedy=(*greedy, another), access_point=ap()))
    assert after.x_m_bps < before.x_m_bps


def test_heusse_s_jam_may_give_more_when_a_fast_station_joins_many_slow_ones():
    # T_next is the second slowest rate, which one fast station pulls down for all
    slow = [1.0] * 30
    before, after = (paper(*some) for some in (slow, [*slow, 11.0]))
    assert after.x_m_bps > before.x_m_bps


@given(settings, stations, rates)
def test_a_greedy_access_point_is_one_more_station(chosen, greedy, rate):
    cell = make_cell(chosen)
    with_ap = capacity(
        cell, Population(greedy=tuple(greedy), access_point=AccessPoint(rate=rate, is_saturated=True))
    )
    as_station = capacity(cell, Population(greedy=(*greedy, rate)))
    assert with_ap.x_m_bps == as_station.x_m_bps


@given(stations, st.integers(1, 20))
def test_all_fair_shares_add_up_to_what_the_network_carries(greedy, downloads):
    found = capacity(
        make_cell(CellSettings()), Population(greedy=tuple(greedy), access_point=ap(downloads=downloads))
    )
    carried = (found.uploads + 1) * found.x_m_bps
    assert found.x_fair_bps * (found.uploads + downloads) == pytest.approx(carried, rel=1e-12)


def test_frames_that_take_all_the_time_leave_nothing():
    feedback = Frames(Dsss(1.0), 1000.0, 4000)
    found = capacity(
        make_cell(CellSettings()),
        Population(
            greedy=(Dsss(11.0),), sparing=(Sparing(Dsss(11.0), 1e3),), access_point=ap(frames=(feedback,))
        ),
    )
    assert not found.is_feasible
    assert (found.x_m_bps, found.t_us) == (0.0, None)
    assert found.u >= 1


def test_without_a_greedy_station_there_is_no_rate_to_ask_for():
    with pytest.raises(UsageError, match="no station always has a frame to send"):
        capacity(make_cell(CellSettings()), Population(greedy=(), sparing=(Sparing(Dsss(11.0), 1e5),)))
    with pytest.raises(UsageError, match="no station always has a frame to send"):
        capacity(make_cell(CellSettings()), Population(greedy=()))


def test_802_11_has_at_most_2007_stations():
    with pytest.raises(UsageError, match="at most 2007 stations"):
        Population(greedy=(Dsss(11.0),) * 2008)


def test_acks_are_sent_at_the_highest_basic_rate_up_to_that_of_the_frame():
    cell = make_cell(CellSettings(phy="g", basic_rates=("1", "5.5", "12")))
    acks = {name: cell.ack_rate_for(cell.phy.rate(name)).name for name in ("1", "2", "11", "6", "9", "54")}
    assert acks == {"1": "1", "2": "1", "11": "5.5", "6": "6", "9": "6", "54": "12"}


def test_acks_of_ht_frames_follow_the_modulation():
    cell = make_cell(CellSettings(phy="n"))
    acks = [cell.ack_rate_for(cell.phy.rate(f"mcs{mcs}")).name for mcs in (0, 1, 2, 3, 7, 8, 15)]
    assert acks == ["6", "12", "12", "24", "24", "6", "24"]


def test_a_cts_to_self_protects_ofdm_frames_only():
    plain, protected = (make_cell(CellSettings(phy="g", cts_rate=rate)) for rate in (None, "11"))
    timing = plain.phy.timing([Dsss(11.0)])
    cost = {
        rate.name: protected.overhead_us(rate, timing) - plain.overhead_us(rate, timing)
        for rate in map(plain.phy.rate, ("54", "11"))
    }
    assert cost == pytest.approx({"54": 192 + 112 / 11 + 10, "11": 0})


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"preset": "paper", "phy": "g"}, "supports 802.11b only"),
        ({"ack_rate": "11", "basic_rates": ("1",)}, "basic rates have no effect"),
        ({"preset": "paper", "basic_rates": ("1",)}, "basic rates have no effect"),
        ({"cts_rate": "11"}, "CTS-to-self needs"),
        ({"phy": "g", "cts_rate": "6"}, "cannot read a CTS"),
        ({"phy": "n", "ack_rate": "mcs0"}, "ACKs are not sent"),
        ({"payload_bytes": 0}, "bytes is invalid"),
        ({"payload_bytes": 2300}, "do not fit in a frame"),
        ({"overhead_bits": -1}, "headers cannot have"),
        ({"cw_min": 0}, "CWmin cannot be 0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong, text):
    with pytest.raises(UsageError, match=text):
        make_cell(CellSettings(**wrong))
