"""Reports that are shared do not name the folders in which their inputs lay."""

from __future__ import annotations

import polars as pl
import pytest

from tfrctrace.report_data.shared_names import SharedNames


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["/home/alice/a.pcap"], ["a.pcap"]),
        (["/home/alice/a.pcap", "/home/alice/day/b.pcap"], ["a.pcap", "day/b.pcap"]),
        (["../a.pcap", "x/../../a.tr"], ["a.pcap", "a.tr"]),
        (["-"], ["-"]),
        (["-", "/home/alice/a.pcap"], ["-", "a.pcap"]),
    ],
)
def test_names_are_relative_to_the_folder_of_all_inputs(names, shared):
    assert [SharedNames.of(names).name(name) for name in names] == shared


def test_only_names_of_files_change():
    shared = SharedNames.of(["/home/alice/a.pcap"])
    assert shared.name("/etc/passwd") == "passwd"
    assert shared.name("--label") == "--label"
    frame = pl.DataFrame({"source": ["/home/alice/a.pcap", None], "n": [1, 2]})
    assert shared.frame(frame).rows() == [("a.pcap", 1), (None, 2)]


def test_no_report_holds_a_local_path(tmp_path, write_capture, conversation, run):
    folder = tmp_path / "private-folder"
    (folder / "day").mkdir(parents=True)
    for name in ("a.pcap", "day/b.pcap"):
        write_capture("x.pcap", conversation()).rename(folder / name)
    (folder / "bad.pcap").write_bytes(b"\xd4\xc3\xb2\xa1" + b"\xff" * 40)
    out = tmp_path / "out"
    for options in (
        ("-o", out / "page.html", "--results", out / "saved", "--csv"),
        ("-o", out / "page.md"),
        ("--pages", out / "pages"),
    ):
        out.mkdir(exist_ok=True)
        outcome = run("report", folder, *options)
        assert outcome.status == 3, outcome.err
        assert "private-folder" in outcome.err
    written = [path for path in out.rglob("*") if path.is_file()]
    assert len(written) > 8
    assert [path for path in written if b"private-folder" in path.read_bytes()] == []
