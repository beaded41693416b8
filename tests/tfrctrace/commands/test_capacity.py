"""`tfrctrace capacity` as a user runs it."""

from __future__ import annotations

import json

import pytest

STATIONS = ["--station", "11", "--station", "11", "--station", "5.5", "--station", "5.5"]
PAPER = [
    (["--station", "4x11"], "X_m", "1.48 Mbit/s"),
    (STATIONS, "X_m", "1.14 Mbit/s"),
    (["--station", "11", "--station", "2", "--ap-rate", "5.5", "--downloads", "3"], "X_m", "968 kbit/s"),
    (["--station", "11", "--station", "2", "--ap-rate", "5.5", "--downloads", "3"], "X_fair", "581 kbit/s"),
]


def model(run, *arguments):
    done = run("capacity", *arguments, "--format", "json")
    assert (done.status, done.err) == (0, "")
    return json.loads(done.out)


@pytest.mark.parametrize(("arguments", "symbol", "value"), PAPER)
def test_the_numbers_of_the_paper_are_printed(run, arguments, symbol, value):
    done = run("capacity", "--preset", "paper", *arguments)
    assert done.status == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith(f"{symbol} ")]
    assert line.split(maxsplit=1)[1].startswith(f"{value} ")
    assert "the paper prints S/T" in done.out


def test_without_the_preset_the_numbers_are_not_those_of_the_paper_and_the_help_says_so(run):
    assert round(model(run, *STATIONS)["x_m_bps"] / 1e6, 2) == 1.09
    assert "need `paper`" in " ".join(run("capacity", "--help").out.replace("│", "").split())


def test_json_has_the_three_rates_and_every_term(run):
    document = model(run, *STATIONS, "--payload", "1024", "--preset", "paper")
    assert document["schema_version"] == 1
    assert document["x_m_bps"] == pytest.approx(1135943.99871)
    assert document["x_t_bps"] == pytest.approx(1080294.08376)
    assert document["x_fair_bps"] is None
    assert document["t_jam_us"] == pytest.approx(1550.50909091)
    assert [(one["role"], one["count"]) for one in document["contenders"]] == [
        ("station", 2),
        ("station", 2),
        ("access point", 1),
    ]
    shares = sum(one["count"] * one["time_share"] for one in document["contenders"])
    assert shares + document["collision_share"] == pytest.approx(1)


def test_the_standard_s_constants_are_the_default(run):
    network = model(run, "--station", "11")["network"]
    assert (network["preset"], network["cw_min"], network["jam"]) == ("standard", 31, "pairwise")
    assert network["s_bits"] == 8 * (1024 + 28 + 8 + 28)
    assert network["basic_mbps"] == [1, 2]


@pytest.mark.parametrize(
    ("preset", "rate", "expected"),
    [
        ("paper", "2M", ("mpdu", "x_fair", 580796.745703)),
        ("paper", "400k", ("mpdu", "x_tfrc", 4e5)),
        ("standard", "2M", ("payload", "x_fair", None)),
    ],
)
def test_what_mtfrc_sends_names_its_bound(run, preset, rate, expected):
    layer, bound, x_send_bps = expected
    cell = ["--preset", preset, "--station", "11", "--station", "2", "--ap-rate", "5.5", "--downloads", "3"]
    document = model(run, *cell, "--tfrc-rate", rate)
    bounds = document["bounds"]
    assert (bounds["layer"], bounds["bound"]) == (layer, bound)
    if x_send_bps is None:
        network = document["network"]
        x_send_bps = document["x_fair_bps"] * network["s_t_bits"] / network["s_bits"]
    assert bounds["x_send_bps"] == pytest.approx(x_send_bps)
    text = run("capacity", *cell, "--tfrc-rate", rate).out
    assert f"bound by {bound.replace('x_', 'X_')}: the least of" in text


def test_sparing_stations_and_feedback_take_their_time(run):
    document = model(run, "--station", "2x11", "--sparing", "5.5:200k", "--ap-frames", "11:20:76")
    assert document["u"] > 0
    (sparing,) = [one for one in document["contenders"] if one["load_bps"] is not None]
    assert (sparing["load_bps"], sparing["is_greedy"]) == (200_000, False)
    frames_share = document["u"] - sparing["time_share"]
    t_cont_us, basic_ack_us, rate = document["t_cont_us"], 192 + 112 / 2, 11
    expected = 20 * (50 + 192 + 8 * 76 / rate + 10 + basic_ack_us + t_cont_us) / 1e6
    assert frames_share == pytest.approx(expected)


def test_a_station_that_offers_too_much_is_reported_as_greedy(run):
    done = run("capacity", "--station", "11", "--sparing", "11:9M")
    assert "note: a sparing station offers X_m or more, and counts as greedy" in done.out


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (["--phy", "a", "--station", "54"], "802.11a, S = 8704 bits"),
        (
            ["--phy", "g", "--station", "54", "--station", "11", "--cts-to-self", "11"],
            "CTS-to-self at 11 Mb/s",
        ),
        (["--phy", "n", "--width", "40", "--short-gi", "--station", "mcs7"], "40 MHz, short guard interval"),
        (["--station", "11", "--ack-rate", "1", "--jam", "mean", "--jam-backoff"], "t_jam mean with backoff"),
    ],
)
def test_the_first_line_says_which_network_it_is(run, arguments, title):
    done = run("capacity", *arguments)
    assert (done.status, done.err) == (0, "")
    assert title in done.out.splitlines()[0]


def test_a_mcs_shows_its_rate_and_the_lack_of_aggregation(run):
    out = run("capacity", "--phy", "n", "--station", "mcs7").out
    assert "mcs7, 65 Mb/s" in out
    assert "no aggregation" in out


def test_a_scenario_has_a_line_for_each_step(run, tmp_path):
    (tmp_path / "cell.toml").write_text("[[station]]\nrate = [[0, 5.5], [80, 11]]\n[[station]]\nrate = 5.5\n")
    done = run("capacity", "--scenario", "cell.toml", "--tfrc-rate", "3M")
    assert done.status == 0
    assert [line.split()[:2] for line in done.out.splitlines()[3:5]] == [["0", "s"], ["80", "s"]]
    steps = model(run, "--scenario", "cell.toml")["steps"]
    assert [(step["from_s"], step["until_s"]) for step in steps] == [(0, 80), (80, None)]
    assert steps[0]["x_m_bps"] < steps[1]["x_m_bps"]


def test_output_goes_to_a_file(run, tmp_path):
    assert run("capacity", "--station", "11", "--format", "json", "-o", "cell.json").out == ""
    assert json.loads((tmp_path / "cell.json").read_text())["x_m_bps"] > 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no station is given"),
        (["--station", "7"], "802.11b has no rate `7`"),
        (["--station", "0x11"], "`0x11` is not a station"),
        (["--station", "1", "--preamble", "short"], "1 Mb/s does not allow the short preamble"),
        (["--sparing", "11:1k"], "no station always has a frame to send"),
        (["--station", "11", "--sparing", "11"], "`11` has no load"),
        (["--station", "11", "--sparing", "11:much"], "`much` is not a bit rate"),
        (["--station", "11", "--ap-frames", "11:1"], "`11:1` does not describe frames"),
        (["--station", "11", "--ap-frames", "1:1000:500"], "leaves none (U >= 1)"),
        (["--station", "11", "--no-ap", "--downloads", "2"], "`--no-ap` cannot be combined"),
        (["--station", "11", "--preset", "paper", "--phy", "g"], "the preset `paper` supports 802.11b only"),
        (["--station", "11", "--scenario", "x"], "`--scenario` cannot be combined with options for stations"),
        (["--station", "11", "--width", "40"], "`width = 40` is nothing 802.11b has"),
        (["--station", "3000x11"], "`3000x11` is not a station"),
    ],
)
def test_what_cannot_be_is_reported(run, arguments, error):
    done = run("capacity", *arguments)
    assert (done.status, done.out) == (2, "")
    assert error in done.err


def test_a_scenario_that_cannot_be_read_is_status_3(run):
    done = run("capacity", "--scenario", "none.toml")
    assert done.status == 3
    assert done.err == "error: `none.toml`: no such file or directory\n"


def test_an_empty_step_is_named(run, tmp_path):
    (tmp_path / "cell.toml").write_text('[[station]]\nrate = [[0, 11], [80, "away"]]\n')
    done = run("capacity", "--scenario", "cell.toml")
    assert done.status == 2
    assert "from 80 s: no station always has a frame to send" in done.err


FIGURE_2 = [
    "--preset",
    "paper",
    "--sweep",
    "4:30",
    *(f"--mix={rate}Nx11" for rate in ("", "5.5,", "2,", "1,")),
]
# S/T in kbit/s, computed from the paper's model apart from this program
COMPUTED_KBPS = {
    4: (1477, 1267, 845, 555),
    8: (685, 629, 487, 360),
    16: (303, 289, 248, 203),
    30: (141, 137, 125, 110),
}


def test_a_sweep_has_the_four_curves_of_the_paper_s_figure(run):
    swept = model(run, *FIGURE_2)["sweep"]
    assert swept["stations"] == list(range(4, 31))
    for count, rates in COMPUTED_KBPS.items():
        found = [curve["points"][count - 4] for curve in swept["mixes"]]
        assert [round(point["x_m_bps"] / 1e3) for point in found] == list(rates)
        assert {point["stations"] for point in found} == {count}
    # the one point of these curves that the paper prints
    printed = run("capacity", *FIGURE_2, "--rate", "x_m").out.splitlines()
    assert printed[5].split() == ["4", "1.48", "Mbit/s", "1.27", "Mbit/s", "845", "kbit/s", "555", "kbit/s"]
    assert "the paper prints S/T" in printed[-1]


def test_a_sweep_over_one_number_is_the_model_of_that_network(run):
    swept = model(run, "--sweep", "5:5", "--mix", "5.5,2,Nx11", "--downloads", "2")["sweep"]
    alone = model(run, "--station", "5.5", "--station", "2", "--station", "3x11", "--downloads", "2")
    (point,) = swept["mixes"][0]["points"]
    assert {name: alone[name] for name in point if name != "stations"} == {
        name: value for name, value in point.items() if name != "stations"
    }
    # nobody at 11 Mbit/s is left
    assert run("capacity", "--sweep", "1:2", "--mix", "5.5,Nx11").status == 0


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_a_sweep_is_drawn(run, tmp_path, suffix):
    drawing = tmp_path / f"figure-2.{suffix}"
    done = run("capacity", *FIGURE_2, "--draw", drawing)
    assert (done.status, done.err) == (0, "")
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[suffix]
    assert drawing.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sweep", "4:30"], "`--sweep` needs the rates of the stations"),
        (["--mix", "Nx11"], "need `--sweep`"),
        (["--sweep", "30:4", "--mix", "Nx11"], "`30:4` is not a range of stations"),
        (["--sweep", "0:4", "--mix", "Nx11"], "`0:4` is not a range of stations"),
        (["--sweep", "4:30:0", "--mix", "Nx11"], "is not a range"),
        (["--sweep", "4:9999", "--mix", "Nx11"], "is not a range"),
        (["--sweep", "4:30", "--mix", "11"], "`11` is not a mix of stations"),
        (["--sweep", "4:30", "--mix", "Nx11,Nx2"], "is not a mix"),
        (["--sweep", "4:30", "--mix", "2x5.5,Nx11"], "is not a mix"),
        (["--sweep", "1:3", "--mix", "1,2,Nx11"], "has 2 stations, and the sweep begins at 1"),
        (["--sweep", "4:30", "--mix", "Nx3"], "3"),
        (["--sweep", "4:30", "--mix", "Nx11", "--station", "11"], "`--station` cannot be combined"),
        (["--sweep", "4:30", "--mix", "Nx11", "--draw", "figure.gif"], "figure.gif"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(run, arguments, words):
    done = run("capacity", *arguments)
    assert done.status == 2
    assert words in done.err
