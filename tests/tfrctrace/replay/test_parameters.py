"""Parameters of algorithms: each is an option with a default, and none is silently ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from replay_recordings import recording

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.parsers._native import replay_profiles
from tfrctrace.replay.algorithms import BUILT_IN, algorithm_named
from tfrctrace.replay.controller import Start
from tfrctrace.replay.open_loop import select_algorithms
from tfrctrace.replay.parameters import by_algorithm, check_parameters, parameters_of, parse_settings
from tfrctrace.replay.tfrc import TfrcVariant, run, tfrc_variant

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
TCP = ROOT / "tests" / "data" / "captures" / "linux-relay-loss-snd.pcap.gz"
NS2 = ROOT / "tests" / "data" / "ns2" / "tfrc"
START = Start(segment_bytes=1000)


def test_a_setting_is_algorithm_parameter_and_value() -> None:
    settings = parse_settings(["vegas.alpha=1", "tfrc-veno.gamma=mix", "my.module:Mine.gain=2.5"])
    assert settings == {"vegas.alpha": 1.0, "tfrc-veno.gamma": "mix", "my.module:Mine.gain": 2.5}
    assert by_algorithm(settings, ["vegas", "tfrc-veno", "my.module:Mine"])["my.module:Mine"] == {"gain": 2.5}
    for text in ("alpha=1", "vegas.alpha", "vegas.=1", ".alpha=1", "vegas.alpha="):
        with pytest.raises(UsageError, match="is not a parameter setting"):
            parse_settings([text])
    with pytest.raises(UsageError, match="which is not replayed"):
        by_algorithm(settings, ["vegas"])


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_parameter_of_a_built_in_algorithm_has_its_default(name: str) -> None:
    make = algorithm_named(name).make
    known = parameters_of(make)
    assert {"initial_window", *([] if name == "bbr" else ["min_rto_s"])} <= known.keys()
    known_defaults = {parameter: default for parameter, default in known.items() if default is not None}
    assert vars(make(START, **known_defaults)).keys() == vars(make(START)).keys()


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "many"])
def test_no_parameter_is_what_no_number_is(name: str, value: float | str) -> None:
    make = algorithm_named(name).make
    for parameter, default in parameters_of(make).items():
        if not isinstance(default, str):
            with pytest.raises(UsageError, match="cannot be"):
                check_parameters(name, make, {parameter: value})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("vegas.beta", 1.0),
        ("cubic.beta", 1.0),
        ("cubic.c", 0.0),
        ("cubic.fast_convergence", 0.5),
        ("sack.gamma", 0.0),
        ("modified-veno.growth", "fast"),
        ("modified-veno.second_cut", 2.0),
        ("modified-veno.stride", 0.5),
        ("newreno.initial_window", 0.0),
    ],
)
def test_values_without_a_meaning_are_refused(setting: str, value: float | str) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        select_algorithms([setting.partition(".")[0]], "rfc5348", [], settings={setting: value})


def test_parameters_reach_the_algorithm() -> None:
    trace = tfrctrace.open(TCP)
    means = {
        value: trace.replay("bbr", settings={"bbr.initial_window": value})["x_bps"][0]
        for value in (2.0, 10.0)
    }
    assert means[10.0] > means[2.0]


def test_a_function_may_make_a_controller_too() -> None:
    def made(start: Start, *, gain: float = 2) -> Any:
        del start, gain

    assert parameters_of(made) == {"gain": 2}


def test_a_class_that_declares_no_parameters_needs_none() -> None:
    class Silent(dict):
        """A class whose own way of being made has no signature."""

        __init__ = dict.__init__

    assert check_parameters("silent", Silent, {}) == {}


def test_unknown_parameters_are_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="`vegas` has no parameter `gain`") as refused:
        select_algorithms(["vegas"], "rfc5348", [], settings={"vegas.gain": 1})
    assert refused.value.hint == (
        "known: agent, alpha, beta, gamma, samples, forgets_base_rtt, initial_window, min_rto_s, hystart"
    )
    with pytest.raises(UsageError, match="no parameter `df`") as refused:
        select_algorithms(["tfrc"], "rfc5348", [], settings={"tfrc.df": 0.9})
    assert refused.value.hint
    assert {"n", "discounting", "threshold", "b", "q"} <= set(refused.value.hint[7:].split(", "))
    with pytest.raises(UsageError, match="no parameter `gamma`"):
        select_algorithms(["tfrc"], "rfc5348", [], settings={"tfrc.gamma": 0.8})
    with pytest.raises(UsageError, match="which is not replayed"):
        select_algorithms(["newreno"], "rfc5348", [("q", 0.8)])


def test_gamma_that_follows_the_losses_is_between_reno_s_and_the_weakest() -> None:
    reports = [
        {"t": 0.1 * n, "r_sample": 0.05 + 0.01 * (n % 5), "p": 0.001 + 0.001 * (n % 3), "x_recv": 1e9}
        for n in range(1, 60)
    ]
    flow = recording(reports, end_s=6.0)

    def x_calc(gamma: float | str) -> pl.Series:
        chosen = tfrc_variant("tfrc-veno", "rfc5348", [], {"gamma": gamma})
        return run(chosen, flow).filter(pl.col("event") == "report")["x_calc_bps"]

    least, most, mixed = x_calc(0.5), x_calc(0.8), x_calc("mix")
    assert (mixed >= least * (1 - 1e-12)).all()
    assert (mixed <= most * (1 + 1e-12)).all()
    assert (mixed > least * 1.01).any()
    assert (mixed < most * 0.99).any()


def test_n_and_discounting_change_the_reports_that_are_made() -> None:
    trace = tfrctrace.open(NS2 / "heavy-loss.tr.xz")

    def p(**own: float) -> pl.Series:
        settings = {f"tfrc.{name}": value for name, value in own.items()}
        return trace.replay("tfrc", simulate=True, settings=settings)["p"].drop_nulls()

    by_default = p()
    assert p(n=8, discounting=1, threshold=0.25).equals(by_default)
    for other in (p(n=2), p(n=32), p(discounting=0)):
        assert not other.equals(by_default)
    # the fewer intervals count, the more p varies
    assert p(n=2).std() > p(n=32).std()


def test_where_reports_are_known_the_receiver_s_parameters_change_nothing_and_that_is_reported() -> None:
    trace = tfrctrace.open(NS2 / "heavy-loss.tr.xz")
    replayed = trace.replays("tfrc", settings={"tfrc.n": 2})
    assert replayed.frame.equals(trace.replay("tfrc"))
    assert any("`n` has no effect" in note for note in replayed.recordings[0].notes)


def test_each_kind_of_tfrc_has_the_receiver_of_its_own() -> None:
    trace = tfrctrace.open(NS2 / "heavy-loss.tr.xz")
    together = trace.replay("tfrc", "tfrc-veno", simulate=True)
    for name in ("tfrc", "tfrc-veno"):
        alone = trace.replay(name, simulate=True)
        assert together.filter(pl.col("algorithm") == name).equals(alone)


def test_the_initial_window_is_an_option() -> None:
    reports = [{"t": 0.1, "r_sample": 0.1, "p": 0.0, "x_recv": 1e6}]
    flow = recording(reports, end_s=0.2, segment_bytes=1000)
    for profile in ("rfc5348", "linux"):
        steps = run(TfrcVariant(profile=profile, parameters=(("initial_window", 10.0),)), flow)
        assert steps["x_bps"][0] == pytest.approx(8 * 10 * 1000 / 0.1)


def test_every_parameter_is_in_the_documentation() -> None:
    replay_page, models_page = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("replay", "models"))
    for name in dict(replay_profiles())["rfc5348"]:
        assert re.search(rf"^\| [^|]*`{name}`", replay_page, re.MULTILINE), name
    for algorithm in BUILT_IN:
        for name in parameters_of(algorithm_named(algorithm).make):
            assert f"`{name}`" in models_page, (algorithm, name)


def test_settings_are_options_of_the_command(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", "-a", "vegas,cubic", "--set", "vegas.alpha=1", "--set", "cubic.beta=0.8", TCP)
    assert done.status == 0, done.err
    for options, words in {
        (
            "-a",
            "vegas",
            "--set",
            "vegas.alph=1",
        ): (
            "known: agent, alpha, beta, gamma, samples, forgets_base_rtt, initial_window, min_rto_s, hystart"
        ),
        ("-a", "vegas", "--set", "cubic.beta=1"): "`cubic.beta` belongs to `cubic`, which is not replayed",
        ("--set", "alpha=1"): "`alpha=1` is not a parameter setting",
        ("--set", "tfrc.n=0"): "the parameter `n` cannot have this value",
        ("-a", "newreno", "--tfrc", "q=0.8"): "set parameters of other algorithms with `--set`",
    }.items():
        done = run("replay", "-q", *options, TCP)
        assert done.status == 2
        assert words in done.err
