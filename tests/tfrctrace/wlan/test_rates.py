"""How long frames are in the air, against vectors and ns-3's own table of durations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.errors import UsageError
from tfrctrace.wlan.phy import make_phy
from tfrctrace.wlan.rates import Dsss, Ht

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "mtfrc.json").read_text())

# src/wifi/test/tx-duration-test.cc of ns-3 (releases 3.30 to 3.38): bytes of an MPDU with FCS, MCS, MHz,
# microseconds in HT-mixed format at 5 GHz with the long guard interval.
NS3_HT = [(1536, 7, 20, 228), (76, 7, 20, 48), (14, 7, 20, 40)]

# With the short guard interval. ns-3 stops with the last symbol; 802.11-2012 20.4.3 rounds up to 4 µs.
NS3_HT_SHORT_GI = [(1536, 0, 1742.4), (76, 0, 126.0), (14, 0, 57.6), (1536, 6, 226.8), (76, 6, 46.8)]

# Nominal rates in Mb/s of 802.11-2012 tables 20-30 to 20-37: MCS, MHz, short guard interval.
HT_MBPS = [
    (0, 20, False, 6.5),
    (7, 20, False, 65),
    (7, 20, True, 72.2),
    (15, 20, False, 130),
    (31, 20, True, 288.9),
    (0, 40, False, 13.5),
    (7, 40, True, 150),
    (15, 40, True, 300),
    (31, 40, True, 600),
]


@pytest.mark.parametrize("vector", VECTORS["ofdm_airtime"], ids=str)
def test_ofdm_frames_agree_with_the_vectors(vector):
    rate = make_phy(vector["std"]).rate(f"{vector['rate']:g}")
    assert rate.frame_us(vector["bits"]) == pytest.approx(vector["T_us"], rel=1e-9)


@pytest.mark.parametrize(("size", "mcs", "width", "expected_us"), NS3_HT)
def test_ht_frames_agree_with_ns3(size, mcs, width, expected_us):
    assert Ht(mcs, width).frame_us(8 * size) == expected_us


@pytest.mark.parametrize(("size", "mcs", "ns3_us"), NS3_HT_SHORT_GI)
def test_ht_frames_with_short_guard_interval_end_on_the_next_4_us_after_ns3(size, mcs, ns3_us):
    frame_us = Ht(mcs, short_guard_interval=True).frame_us(8 * size)
    assert frame_us % 4 == 0
    assert ns3_us <= frame_us < ns3_us + 4


@pytest.mark.parametrize(("mcs", "width", "short_gi", "mbps"), HT_MBPS)
def test_ht_rates_are_those_of_the_standard(mcs, width, short_gi, mbps):
    assert Ht(mcs, width, short_gi).mbps == pytest.approx(mbps, abs=0.05)


def test_a_second_encoder_adds_a_tail_above_300_mbps():
    # 40 MHz, MCS 23: 1620 bits a symbol; 1600 bits fit with one tail of 6, not with two
    bits = 1620 - 16 - 6
    assert Ht(23, 40).symbols_us(bits) == 8
    assert Ht(15, 40).symbols_us(1080 - 16 - 6) == 4


def test_a_signal_extension_follows_frames_at_2_4_ghz():
    band = {name: make_phy("n", band=name).rate("mcs7").frame_us(8 * 1536) for name in ("2.4", "5")}
    assert band == {"2.4": 234, "5": 228}


@given(st.integers(8, 18_000), st.sampled_from(["1", "11", "6", "54", "mcs0", "mcs31"]))
def test_a_longer_frame_is_never_quicker(bits, name):
    rate = make_phy("n", band="2.4").rate(name)
    assert rate.frame_us(bits + 8) >= rate.frame_us(bits) >= rate.preamble_us + bits / rate.mbps - 1e-9


@pytest.mark.parametrize(
    ("standard", "name"),
    [
        ("b", "54"),
        ("b", "7"),
        ("a", "11"),
        ("g", "mcs3"),
        ("n", "mcs32"),
        ("n", "11"),
        ("b", "mcs"),
        ("b", ""),
    ],
)
def test_a_rate_that_a_standard_has_not_is_refused_with_those_it_has(standard, name):
    with pytest.raises(UsageError, match=f"802.11{standard} has no rate") as raised:
        make_phy(standard).rate(name)
    assert raised.value.hint.startswith("rates: ")


def test_the_short_preamble_is_not_for_1_mbps():
    phy = make_phy("b", preamble="short")
    with pytest.raises(UsageError, match="1 Mb/s does not allow the short preamble"):
        phy.rate("1")
    assert phy.rate("2") == Dsss(2, "short")


@pytest.mark.parametrize(
    ("standard", "choice"),
    [("a", {"preamble": "short"}), ("b", {"width": "40"}), ("g", {"short_gi": True}), ("b", {"band": "5"})],
)
def test_choices_that_a_standard_does_not_leave_are_refused(standard, choice):
    with pytest.raises(UsageError, match=f"nothing 802.11{standard} has"):
        make_phy(standard, **choice)


def test_a_station_of_802_11b_makes_the_slot_long():
    phy = make_phy("g")
    alone, mixed = phy.timing([phy.rate("54")]), phy.timing([phy.rate("54"), phy.rate("11")])
    assert (alone.slot_us, alone.sifs_us, alone.difs_us) == (9, 10, 28)
    assert (mixed.slot_us, mixed.sifs_us, mixed.difs_us) == (20, 10, 50)


@pytest.mark.parametrize(("standard", "times"), [("b", (20, 10, 50)), ("a", (9, 16, 34)), ("n", (9, 16, 34))])
def test_waiting_times_are_those_of_the_standard(standard, times):
    timing = make_phy(standard).timing([])
    assert (timing.slot_us, timing.sifs_us, timing.difs_us) == times
