"""Scenario files: who is there and when, and the errors of files that are wrong."""

from __future__ import annotations

import pytest

from tfrctrace.base.errors import InputError
from tfrctrace.wlan.capacity import capacity
from tfrctrace.wlan.cell import CellSettings
from tfrctrace.wlan.scenario import read_scenario

PAPER_SCENARIO_2 = """
preset = "paper"
[access_point]
rate = 5.5
downloads = 3
[[station]]
rate = [[0, 5.5], [80, 11]]
[[station]]
rate = 2
"""


@pytest.fixture
def scenario(tmp_path):
    def read(text, settings=None):
        path = tmp_path / "cell.toml"
        path.write_text(text)
        return read_scenario(str(path), settings)

    return read


def refusal(scenario, text):
    with pytest.raises(InputError) as raised:
        scenario(text)
    (problem,) = raised.value.problems
    assert problem["source"].endswith("cell.toml")
    return problem["message"]


def test_a_station_that_changes_its_rate_makes_two_steps(scenario):
    found = scenario(PAPER_SCENARIO_2)
    assert [(step.from_s, step.until_s) for step in found.steps] == [(0, 80), (80, None)]
    x_m_kbps = [round(capacity(found.cell, step.population).x_m_bps / 1e3) for step in found.steps]
    assert x_m_kbps == [890, 968], "the second is the one that the MTFRC paper prints"


def test_stations_come_and_go(scenario):
    found = scenario(
        """
        [[station]]
        rate = 11
        [[station]]
        name = "visitor"
        rate = [[35, 5.5], [50.5, "away"], [60, 1]]
        count = 2
        load_bps = [[35, "200k"], [60, 1000]]
        """
    )
    there = [
        (step.from_s, step.population.stations, [one.load_bps for one in step.population.sparing])
        for step in found.steps
    ]
    assert there == [(0, 1, []), (35, 3, [2e5, 2e5]), (50.5, 1, []), (60, 3, [1e3, 1e3])]


def test_an_access_point_without_settings_has_the_fastest_rate(scenario):
    found = scenario("[[station]]\nrate = [[0, 2], [9, 5.5]]\n")
    assert [step.population.access_point.rate.mbps for step in found.steps] == [2, 5.5]


def test_there_may_be_no_access_point(scenario):
    (step,) = scenario("access_point = false\n[[station]]\nrate = 11\n").steps
    assert step.population.access_point is None


def test_an_access_point_may_send_other_frames(scenario):
    (step,) = scenario(
        "[[station]]\nrate = 11\n[access_point]\nsaturated = true\n"
        "frames = [{ rate = 5.5, frames_per_s = 20, bytes = 76 }]\n"
    ).steps
    (frames,) = step.population.access_point.frames
    assert (frames.rate.mbps, frames.frames_per_s, frames.bits) == (5.5, 20, 608)
    assert step.population.access_point.is_greedy


def test_options_count_more_than_the_file(scenario):
    found = scenario(PAPER_SCENARIO_2 + "", CellSettings(cw_min=16, preamble="short"))
    assert (found.cell.cw_min, found.cell.phy.preamble, found.cell.preset) == (16, "short", "paper")


def test_every_constant_may_stand_in_the_file(scenario):
    cell = scenario(
        """
        phy = "n"
        band = "2.4"
        width = 40
        short_gi = true
        preamble = "short"
        payload_bytes = 500
        overhead_bits = 600
        cw_min = 7
        basic_rates = [5.5, "12"]
        cts_rate = 11
        jam = "mean"
        jam_backoff = true
        [[station]]
        rate = "mcs7"
        """
    ).cell
    assert (cell.phy.standard, cell.phy.band, cell.phy.width, cell.phy.short_gi) == ("n", "2.4", "40", True)
    assert (cell.s_bits, cell.cw_min, cell.jam, cell.jam_backoff) == (4600, 7, "mean", True)
    assert [rate.mbps for rate in (*cell.basic_rates, cell.cts_rate)] == [5.5, 12, 11]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("station = 3", "`station` must be a list, not `3`"),
        ("statoin = []", "unknown key `statoin` in the scenario"),
        ("[[station]]", "station 1 has no rate"),
        ("[[station]]\nrate = 7", "802.11b has no rate `7`"),
        ("[[station]]\nrate = 11\nspeed = 3", "unknown key `speed` in station 1"),
        ("[[station]]\nrate = []", "rate of station 1 is not a list of pairs"),
        ("[[station]]\nrate = [[0, 11, 3]]", "rate of station 1 is not a list of pairs"),
        ("[[station]]\nrate = [[5, 11], [5, 2]]", "rate of station 1 goes back in time"),
        (
            "[[station]]\nrate = [[-1, 11]]",
            "`time in rate of station 1` must be a number of at least 0, not `-1`",
        ),
        ("[[station]]\nrate = nan", "must be a number of at least 0, not `nan`"),
        ("[[station]]\nrate = true", "must be a number of at least 0, not `True`"),
        ("[[station]]\nrate = 11\ncount = 0", "station 1 has an invalid count of 0"),
        ("[[station]]\nrate = 11\ncount = 1.5", "must be a whole number, not `1.5`"),
        ("[[station]]\nrate = 11\ncount = 100000000000000", "has an invalid count of"),
        ("[[station]]\nrate = 11\ncount = 2000\n[[station]]\nrate = 11\ncount = 8", "at most 2007 stations"),
        ("[[station]]\nrate = 11\nload_bps = 'lots'", "`lots` is not a bit rate"),
        ("preset = 'old'", "`preset` cannot be `old`"),
        ("jam_backoff = 1", "must be `true` or `false`"),
        ("access_point = 3", "the access point must be a table"),
        ("[access_point]\nframes = [{ rate = 11 }]", "frames of the access point have no `frames_per_s`"),
        (
            "[access_point]\nframes = [{ rate = 'away', frames_per_s = 1, bytes = 1 }]",
            "frames of the access point have no rate `away`",
        ),
        ("rate = [", "not TOML"),
        ("a = " + "[" * 5000, "not TOML"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE} = 1", "not TOML"),
        ("#" + " " * 1_000_001, "larger than 1000000 bytes"),
        (
            "[[station]]\nrate = [" + ",".join(f"[{time}, 11]" for time in range(10_001)) + "]",
            "can change at most 10000 times",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_what_cannot_be_is_reported(scenario, text, message):
    assert message in refusal(scenario, text)


def test_a_file_that_is_not_there_is_an_input_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no such file or directory"):
        read_scenario(str(tmp_path / "none.toml"))
