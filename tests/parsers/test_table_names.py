"""The tables that Python names are those of the core, and their values are documented."""

from pathlib import Path
from typing import get_args

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.parsers.schema import ROWS, TABLES
from tfrctrace.trace.passes import TableName

SAMPLES = Path(__file__).parents[2] / "sample_traces"

NOT_OF_PASS = {
    "packets",
    "congestion_controls",
    "replay",
    "one_step",
    "closed_loop",
    "groups",
    "group_buckets",
}


def test_every_table_of_the_core_has_a_name_in_python() -> None:
    assert set(get_args(TableName)) == set(TABLES) - NOT_OF_PASS
    assert set(ROWS) == set(TABLES)


def test_a_pass_has_the_columns_that_are_declared() -> None:
    analysis = _native.analyse([str(SAMPLES / "dumbbell.tr.xz")], ReadSettings())
    for name in get_args(TableName):
        assert analysis.table(name).columns == [column.name for column in TABLES[name]], name


@pytest.mark.parametrize("name", ["flow", "packets", ""])
def test_other_tables_cannot_be_collected(name: str) -> None:
    with pytest.raises(ValueError, match="no table"):
        _native.analyse([], ReadSettings(), collect={name})
    with pytest.raises(ValueError, match="no table"):
        _native.analyse([], ReadSettings()).table(name)


@pytest.mark.parametrize("column", ["class", "evidence", "spurious"])
def test_all_values_of_losses_are_documented(column: str) -> None:
    captures = sorted((SAMPLES.parent / "tests" / "data" / "captures").glob("*.pcap*"))
    assert len(captures) > 5
    (declared,) = [one for one in TABLES["losses"] if one.name == column]
    for capture in captures:
        losses = _native.analyse([str(capture)], ReadSettings(), collect={"losses"}).table("losses")
        for row in losses.rows():
            assert row[column] is None or f"`{row[column]}`" in declared.meaning
