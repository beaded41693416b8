"""Proposals for names that are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal

TWO_FLOWS = Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz"


@pytest.mark.parametrize(
    ("arguments", "proposed"),
    [
        (("convert", TWO_FLOWS, "--what", "throughput"), "bins"),
        (("convert", TWO_FLOWS, "--what", "rtts"), "rtt"),
        (("flows", TWO_FLOWS, "--sort", "byte"), "bytes"),
        (("metrics", TWO_FLOWS, "-m", "jian"), "jain"),
        (("groups", TWO_FLOWS, "--by", "hosts"), "host"),
        (("replay", TWO_FLOWS, "--algorithm", "tfcr"), "tfrc"),
        (("check", TWO_FLOWS, "--limits", "typo.toml"), "limit"),
    ],
)
def test_a_name_that_is_near_is_proposed(run, tmp_path, arguments, proposed):
    (tmp_path / "typo.toml").write_text("[[limits]]\nrequire = 'max(rtt_p95_ms) < 1 s'\n")
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert f"did you mean `{proposed}`?" in done.err


def test_a_name_that_is_near_none_has_no_proposal():
    assert proposal("beauty", ["rtt", "losses"]) == ""


def test_a_table_that_there_is_not_lists_the_tables():
    trace = tfrctrace.open(TWO_FLOWS)
    with pytest.raises(UsageError, match="a trace has no table `loss`") as raised:
        trace.to_pandas("loss")  # type: ignore[arg-type]
    assert raised.value.hint.startswith("did you mean `losses`? there are flows, tcp, bins, ")
