"""What a study file may contain, and the errors of one that is wrong."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tfrctrace.base.errors import InputError
from tfrctrace.study.file.claims import ABOUT, Bound, Comparison, Number, ScenarioMean, Trend, parse_claim
from tfrctrace.study.file.study_file import read_study
from tfrctrace.study.file_pattern import compile_pattern, typed_values
from tfrctrace.study.run_table import runs_of_table

DOCS = Path(__file__).parents[3] / "docs"

SMALL = """
[runs]
files = "runs/*.tr"
pattern = "{queue}-n{flows}-{run}.tr"
repetition = "run"
[[quantity]]
metric = "jain"
[[quantity]]
name = "rate"
metric = "rate_bps"
"""

WITH_SERIES = (
    SMALL + "[[quantity]]\nname='window'\nseries='cwnd'\n[[quantity]]\nname='course'\nseries='rate'\n"
)


@pytest.fixture
def study(tmp_path):
    def read(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return read_study(str(path))

    return read


def test_the_study_that_the_documentation_shows_can_be_read(study):
    shown, paper, judging = _shown_studies()
    found = study(shown)
    assert found.title == "TFRC beside TCP"
    assert found.runs.scenario == ("queue", "flows")
    assert found.measure.labels == ("tfrc=transport tfrc", "tcp=transport tcp")
    assert found.measure.replay.stations == ("{flows}x11",)
    assert [quantity.name for quantity in found.quantities] == ["rate", "rtt", "tcp_over_tfrc", "fairness"]
    assert found.figures[0].where == {"flows": (2, 4, 8)}
    assert [reference.where["flows"] for reference in found.references] == [(2,), (4,), (8,)]
    assert [expectation.holds for expectation in found.expectations] == [True, False]
    found = study(paper)
    assert found.runs.parameters == ("variant", "flows", "run", "network", "topology")
    assert (found.runs.is_paired, found.runs.made_by) == (True, "make studies")
    assert found.runs.rules[0].measure.warmup == "60s"
    assert [plan.paper.status for plan in found.figures] == ["drawn", "drawing"]
    assert [(reference.group, reference.value) for reference in found.references] == [
        ("tcp", 11.5),
        ("tcp", 14),
    ]
    assert found.expectations[0].figures == ("figure 4",)
    assert not found.expectations[0].is_required
    found = study(MEASURED + judging).judging
    assert [place.name for place in found.places] == ["shallow", "alone"]
    assert [criterion.reason == "" for criterion in found.criteria] == [True, False]


def _shown_studies():
    return re.findall(r"```toml\n(.*?)```", (DOCS / "experiments.md").read_text(), flags=re.DOTALL)


MEASURED = """
[runs]
files = "*"
pattern = "{controller}/{scenario}/{run}.pcap"
repetition = "run"
[labels]
newcomer = "port 1"
incumbent = "port 2"
[[quantity]]
name = "loss_rate"
metric = "retransmission_ratio"
[[quantity]]
name = "lost"
metric = "plr"
"""
"""What the documentation does not repeat where it shows a study that judges."""


def test_what_is_left_out_has_a_default(study):
    found = study(SMALL)
    assert (found.title, found.confidence, found.measure.window) == ("study", 0.95, "1s")
    assert found.quantities[0].name == "jain"
    assert (found.tables, found.figures, found.expectations) == ((), (), ())


def test_parameters_may_come_from_a_table(study, tmp_path):
    (tmp_path / "runs.csv").write_text("file,queue,run\na.tr,red,1\n")
    assert study("[runs]\ntable = 'runs.csv'\nrepetition = 'run'").runs.parameters == ("queue", "run")


def test_the_table_of_a_spreadsheet_may_begin_with_the_mark_of_utf_8(study, tmp_path):
    (tmp_path / "runs.csv").write_bytes("\ufefffile,queue\r\na.tr,red\r\n".encode())
    assert study("[runs]\ntable = 'runs.csv'").runs.parameters == ("queue",)
    assert runs_of_table(str(tmp_path), "runs.csv") == {"a.tr": {"queue": "red"}}


def test_a_table_without_end_is_not_read_to_its_end(study, tmp_path):
    (tmp_path / "runs.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="cannot be read: it is larger than"):
        study("[runs]\ntable = 'runs.csv'")


def test_the_file_of_a_layout_is_looked_for_beside_the_study(study, tmp_path):
    (tmp_path / "layout.toml").write_text("[data]\nsequence = { offset = 0, width = 4 }")
    measure = study(SMALL + "[measure]\ndissect = ['udp:9=layout.toml', 'udp:10=rtp']").measure
    assert measure.dissect == (f"udp:9={tmp_path / 'layout.toml'}", "udp:10=rtp")


def test_a_profile_and_a_round_trip_time_of_tfrc_are_texts(study):
    measure = study(SMALL + "[measure]\ntfrc = { profile = 'linux', rtt = '50ms', df = 0.9 }").measure
    assert measure.tfrc == {"profile": "linux", "rtt": "50ms", "df": 0.9}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the study names no runs"),
        ("[runs", "not TOML"),
        ("runs = 1", "`[runs]` must be a table"),
        ("[run]\nfiles = 'a'", "unknown key `run` in the study"),
        ("[runs]\nfiles = 1", "`files` must be a list"),
        ("[runs]\nfiles = ['']", "`files` must be a non-empty string"),
        ("[runs]\nfiles = 'a'\npattern = 'a.tr'", "has no parameter"),
        ("[runs]\nfiles = 'a'\npattern = '{a}{b}'", "touch each other"),
        ("[runs]\nfiles = 'a'\npattern = '{a b}'", "is not a name"),
        ("[runs]\nfiles = 'a'\npattern = '{group}'", "no parameter can be called `group`"),
        ("[runs]\nfiles = 'a'\npattern = '{a}'\nrepetition = 'b'", "there is no `b`"),
        ("[runs]\ntable = 'none.csv'", "the table of runs `none.csv` cannot be read"),
        ("[runs]\ntable = 'a'\npattern = '{a}'", "cannot be together"),
        ("confidence = 1" + SMALL, "`confidence` is not between 0 and 1"),
        (SMALL + "[[quantity]]\nmetric = 'beauty'", "`metric` cannot be `beauty`"),
        (SMALL + "[[quantity]]\ncolumn = 'src'", "has no numbers `src`"),
        (SMALL + "[[quantity]]\nname = 'x'", "needs one of `metric`, `column`, `replay` and `series`"),
        (SMALL + "[[quantity]]\nmetric = 'jain'", "there is more than one quantity `jain`"),
        (SMALL + "[[quantity]]\nmetric = 'cov'", "needs a `timescale`"),
        (SMALL + "[[quantity]]\nname = '../x'\nmetric = 'pdr'", "letters, digits"),
        (SMALL + "[[quantity]]\nmetric = 'pdr'\nover = 'tcp'", "so `group` must be given"),
        (SMALL + "[[quantity]]\nmetric = 'pdr'\nflows = 'most'", "`flows` cannot be `most`"),
        (SMALL + "[[figure]]\ny = 'jain'", "needs an `x`"),
        (SMALL + "[[figure]]\nkind = 'cdf'\ny = 'jain'\nx = 'flows'", "has no `x`"),
        (SMALL + "[[figure]]\nkind = 'pie'\ny = 'jain'", "`kind` cannot be `pie`"),
        (SMALL + "[[figure]]\ny = 'loss'\nx = 'flows'", "there is no `loss`"),
        (SMALL + "[[figure]]\ny = 'jain'\nx = 'speed'", "there is no `speed`"),
        (SMALL + "[[table]]\nrows = ['queue', 'colour']", "there is no `colour`"),
        (SMALL + "[[table]]\nwhere = { flows = true }", "neither a number nor a text"),
        (SMALL + "[[table]]\nname = 'a'\n[[table]]\nname = 'a'", "there is more than one table `a`"),
        (SMALL + "[[compare]]\nquantity = 'jain'\nbetween = 'x'", "there is no `x`"),
        (SMALL + "[[expect]]\nclaim = 'jain is good'", "`jain is good` is not a claim"),
        (SMALL + "[[expect]]\nclaim = 'loss > 1'", "there is no `loss`"),
        (SMALL + "[[expect]]\nclaim = 'jain rising in speed'", "there is no `speed`"),
        (SMALL + "[[reference]]\nquantity = 'jain'\nsource = 'x'", "needs a `value`"),
        (SMALL + "[[reference]]\nquantity = 'jain'\nvalue = 1", "needs a `source` or a `figure`"),
        (SMALL + "[[reference]]\nquantity = 'jain'\nfigure='figure 1'\nvalue = 1", "there is no `figure 1`"),
        (SMALL + "[[reference]]\nquantity='rate'\nsource='x'\nvalue=1", "so `group` must name one"),
        (SMALL + "[[expect]]\nclaim = 'jain > 1'\nfigure = 'figure 1'", "figure: there is no `figure 1`"),
        (SMALL + "[[expect]]\nclaim = 'rate[x] > 5 ms'", "`rate` is not in `ms`"),
        (WITH_SERIES + "[[expect]]\nclaim = 'window[x] > 5 ms'", "so a claim cannot name `ms`"),
        (WITH_SERIES + "[[expect]]\nclaim = 'course[x] > 5 ms'", "`course` is not in `ms`"),
        (SMALL + "[[expect]]\nclaim = 'rate[x, before=5s] > 5'", "known of the whole run only"),
        (SMALL + "[[expect]]\nclaim = 'jain > 1'\nin = 'some'", "`in` cannot be `some`"),
        (SMALL + "[[figure]]\nstatus = 'drawing'", "needs the `id`"),
        (SMALL + "[[figure]]\nid = 'figure 1'\nstatus = 'drawing'\ny = 'jain'", "so it has no `y`"),
        (SMALL + "[[figure]]\nid = 'figure 1'\nstatus = 'lost'", "`status` cannot be `lost`"),
        (SMALL + "[[quantity]]\nmetric = 'pdr'\nuntil = '5s'", "`until` needs a `series`"),
        (SMALL + "[[quantity]]\nseries='cwnd'\nfrom='5s'\nuntil='4s'", "`until` is not after `from`"),
        (SMALL + "[[quantity]]\nseries = 'cwnd'\nover_time = 'sum'", "`over_time` cannot be `sum`"),
        ("paired = true\n[runs]\nfiles = 'a'", "`paired` runs need a `repetition`"),
        ("[[runs]]\nfiles='a'\npattern='{a}.tr'\nparameters={a=1}", "in `parameters` and in the name"),
        ("[[runs]]\nfiles='a'\npattern='{a}.tr'\nparameters={mean=1}", "can be called `mean`"),
        (
            "[[runs]]\nfiles='a'\npattern='{a}'\nrepetition='a'\n[[runs]]\nfiles='b'\npattern='{b}'\nrepetition='b'",
            "must be called alike in all `[[runs]]`",
        ),
        ("title = '${x}'\n[runs]\nfiles = 'a'", "`${x}` is used, but the study has no `[values]`"),
        ("title = '${x}'\n[values]\ny = 'z'", "`[values]`: there is no `x`"),
        (SMALL + "[[reference]]\nquantity='jain'\nsource='x'\nby='flows'\nvalues=[[1]]", "has pairs"),
        (SMALL + "[measure]\nwindow = 'soon'", "`soon` is not a duration"),
        (SMALL + "[measure]\nbasis = 'joy'", "`basis` cannot be `joy`"),
        (SMALL + "[measure]\ncapacity = '0'", "capacity must be above 0, not `0`"),
        (SMALL + "[measure]\nweight = { tcp = 0 }", "the weight of `tcp` is not above 0"),
        (SMALL + "[[quantity]]\nmetric = 'link_utilisation'", "needs a `capacity`"),
        (SMALL + "[[quantity]]\nmetric = 'jain_weighted'", "needs a `weight`"),
        (SMALL + "[[quantity]]\nreplay = 'tfrc'", "replayed algorithm: there is no `tfrc`"),
        (SMALL + "[measure.replay]\nalgorithms = ['mtfrc']", "say who shares the medium"),
        (SMALL + "[measure]\nfilter = 'tcp and and'", "can't parse filter expression"),
        (SMALL + "[measure]\ninput_format = 'poem'", "poem"),
        (SMALL + "[measure]\nlayer = 'cake'", "`layer` cannot be `cake`"),
        (SMALL + "[measure]\ndissect = 'udp:9=none.toml'", "none.toml"),
        (SMALL + "[measure]\ntfrc = { speed = 1 }", "has no parameter `speed`"),
        (SMALL + "[measure]\ntfrc = { profile = 'mine' }", "unknown TFRC profile `mine`"),
        (SMALL + "[measure]\nstep = '4'", "`4` is not a duration"),
        (SMALL + "[labels]\ntcp = 'often'", "is not a rule for a label"),
    ],
)
def test_what_cannot_be_is_reported_with_the_name_of_the_file(study, text, error):
    with pytest.raises(InputError) as caught:
        study(text)
    message = " ".join(line for one in caught.value.messages() for line in one.lines())
    assert "study.toml" in message
    assert error in message


def test_a_study_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_study(str(tmp_path / "none.toml"))


def mean(quantity, group=None, *where, times=()):
    return ScenarioMean(quantity, group, where, times)


@pytest.mark.parametrize(
    ("text", "left", "right", "bounds"),
    [
        ("a > 0.5", mean("a"), Number(0.5), [Bound(">")]),
        ("0.5 <= a", mean("a"), Number(0.5), [Bound(">=")]),
        ("a < 384 kbit/s", mean("a"), Number(384e3, "bit/s"), [Bound("<")]),
        ("a<=5%", mean("a"), Number(0.05), [Bound("<=")]),
        (
            "a[tcp] <= b[tfrc, queue=red]",
            mean("a", "tcp"),
            mean("b", "tfrc", ("queue", "red")),
            [Bound("<=")],
        ),
        ("a > 1.5 * b", mean("a"), mean("b"), [Bound(">", 1.5)]),
        ("a > half of b", mean("a"), mean("b"), [Bound(">", 0.5)]),
        ("a about b", mean("a"), mean("b"), [Bound(">=", 1 / ABOUT), Bound("<=", ABOUT)]),
        ("a about half b", mean("a"), mean("b"), [Bound(">=", 0.5 / ABOUT), Bound("<=", 0.5 * ABOUT)]),
        ("a about twice b", mean("a"), mean("b"), [Bound(">=", 2 / ABOUT), Bound("<=", 2 * ABOUT)]),
        ("a within 20 % of b", mean("a"), mean("b"), [Bound(">=", 0.8), Bound("<=", 1.2)]),
        ("a within 0.1 of 0.6", mean("a"), Number(0.6), [Bound(">=", 1, -0.1), Bound("<=", 1, 0.1)]),
        (
            "a[tcp, before=35s] > a[tcp, after=1 min]",
            mean("a", "tcp", times=(("before", "35s"),)),
            mean("a", "tcp", times=(("after", "1 min"),)),
            [Bound(">")],
        ),
    ],
)
def test_claims_have_terms_with_selectors(text, left, right, bounds):
    right = right if isinstance(right, Number) else (right,)
    assert parse_claim(text) == Comparison(text, (left,), right, tuple(bounds))


def test_a_side_may_be_a_ratio_of_two_terms():
    text = "a[tcp, way=reverse] / a[tcp, way=quiet] < 0.5 * a[tfrc] / b"
    found = parse_claim(text)
    assert found.left == (mean("a", "tcp", ("way", "reverse")), mean("a", "tcp", ("way", "quiet")))
    assert (found.right, found.bounds) == ((mean("a", "tfrc"), mean("b")), (Bound("<", 0.5),))
    assert parse_claim("a / b > 20 %").right == Number(0.2)


def test_a_trend_is_along_a_parameter():
    text = "a[tcp] falling in n"
    assert parse_claim(text) == Trend(text, mean("a", "tcp"), False, "n")


@pytest.mark.parametrize(
    "text",
    [
        "1 > 2",
        "a",
        "a[b, c] > 1",
        "a[ > 1",
        "2 rising in n",
        "a > ",
        " " * 999,
        "a within b of c",
        "a within 2 ms b",
        "a about",
        "a > 0 * b",
        "a > 1.2.3 * b",
        "1 within 2 of a",
        "a / b > 2 ms",
        "a / b > -1",
        "a / b > 0",
        "a / b within 0.1 of c",
        "a / b within 150 % of c",
        "a / b rising in n",
    ],
)
def test_other_claims_are_refused(text):
    with pytest.raises(ValueError, match="claim"):
        parse_claim(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "jain is good",
            "`within`, `about`, `rising in` or `falling in` at character 6, before `is good`",
        ),
        ("a[b > 1", "expected `,` or `]` at character 5, before `> 1`"),
        ("a rising with n", "expected `in` at character 10, before `with n`"),
        ("a >", "expected a number or a quantity at the end"),
        ("1 > 2", "it compares two numbers"),
    ],
)
def test_an_error_in_a_claim_has_its_place(text, error):
    with pytest.raises(ValueError, match="is not a claim") as raised:
        parse_claim(text)
    assert str(raised.value).endswith(error)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("runs/red-n4-1.tr", {"queue": "red", "flows": "4", "run": "1"}),
        ("red-n4-1.tr", {"queue": "red", "flows": "4", "run": "1"}),
        ("red-n4-1-2.tr", {"queue": "red", "flows": "4", "run": "1-2"}),
        ("infrared-n4-1.tr.gz", None),
        ("red-n4/1.tr", None),
    ],
)
def test_parameters_are_what_stands_in_their_place(path, found):
    fits = compile_pattern("{queue}-n{flows}-{run}.tr").fullmatch(path)
    assert (fits.groupdict() if fits else None) == found


def test_a_parameter_that_is_in_a_name_twice_has_the_same_text():
    form = compile_pattern("mix-{each}-{each}-{run}.tr")
    assert form.fullmatch("mix-4-4-1.tr").groupdict() == {"each": "4", "run": "1"}
    assert form.fullmatch("mix-4-1-1.tr") is None


def test_a_long_name_that_nearly_fits_is_refused_at_once():
    places = "-".join(f"{{p{place}}}" for place in range(20))
    assert compile_pattern(places + ".tr").fullmatch("-" * 250) is None
    assert compile_pattern(places + ".tr").fullmatch("a-" * 120) is None


def test_values_are_numbers_only_if_all_are():
    assert typed_values(["1", "10", "-2"]) == [1, 10, -2]
    assert typed_values(["1", "0.5"]) == [1.0, 0.5]
    assert typed_values(["1", "x", "nan"]) == ["1", "x", "nan"]


@pytest.mark.parametrize(
    "naming", ["dissect = 'udp:9=beside:Header'", "replay = { algorithms = ['tfrc', 'beside:Control'] }"]
)
def test_a_study_runs_code_only_if_that_is_allowed(tmp_path, monkeypatch, naming):
    (tmp_path / "beside.py").write_text(
        "from pathlib import Path\nPath('ran').touch()\nclass Header: fields_desc = []\nclass Control: pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    path = tmp_path / "study.toml"
    path.write_text(f"{SMALL}[measure]\n{naming}\n")
    with pytest.raises(InputError, match="would run the code of `beside:") as refused:
        read_study(str(path))
    assert "--allow-code" in refused.value.problems[0]["hint"]
    assert not (tmp_path / "ran").exists()
    with pytest.raises(InputError, match="has no"):  # neither class is complete
        read_study(str(path), allow_code=True)
    assert (tmp_path / "ran").exists()
