"""`tfrctrace convert` with chosen columns."""

from __future__ import annotations

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

CAPTURE = Path(__file__).resolve().parents[2] / "data" / "captures" / "linux-relay-loss-snd.pcap.gz"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is the witness")
def test_the_columns_that_are_named_are_written(run: Callable[..., Any]) -> None:
    fields = ["-T", "fields", "-E", "separator=,", "-e", "frame.time_epoch", "-e", "tcp.len"]
    command = ["tshark", "-n", "-r", str(CAPTURE), "-Y", "tcp", *fields]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    done = run(
        *("convert", CAPTURE, "-q", "--filter", "tcp", "--columns", "payload_bytes, time_ns"),
        *("--format", "csv", "-o", "-"),
    )
    heading, *rows = done.out.splitlines()
    # in the order of the table
    assert heading == "time_ns,payload_bytes"
    assert rows == [
        f"{int(Decimal(time_s) * 10**9)},{size}" for time_s, size in (line.split(",") for line in shown)
    ]


@pytest.mark.parametrize("anonymized", [(), ("--anonymize",)])
@pytest.mark.parametrize("what", ["packets", "flows", "rtt", "variables"])
def test_every_table_has_its_columns_chosen(
    what: str, anonymized: tuple[str, ...], run: Callable[..., Any], tmp_path: Path
) -> None:
    whole = pl.DataFrame()
    for name, chosen in (("all", ()), ("some", ("--columns", "flow,direction"))):
        output = tmp_path / f"{name}.parquet"
        done = run("convert", CAPTURE, "-q", "--what", what, *anonymized, *chosen, "-o", output)
        assert done.status == 0
        found = pl.read_parquet(output)
        whole = found if not chosen else whole
    assert found.equals(whole.select("flow", "direction"))
    assert what == "variables" or found.height


def test_a_column_that_a_table_has_not_is_refused(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("convert", CAPTURE, "--columns", "flow,payload_byte", "-o", "x.csv")
    assert done.status == 2
    assert done.err.startswith(
        "error: packets have no column `payload_byte`\nhint:  did you mean `payload_bytes`? there are "
    )
    assert run("convert", CAPTURE, "--columns", " ,", "-o", "x.csv").status == 2
    assert not list(tmp_path.iterdir())
