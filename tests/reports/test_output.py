"""Files appear when they are complete, or not at all."""

import os
import stat
import threading

import pytest

from tfrctrace.base.errors import OutputError
from tfrctrace.reports.output import open_output, open_text_output


def test_a_file_has_what_was_written_and_nothing_is_left_beside_it(tmp_path):
    with open_output(str(tmp_path / "x")) as file:
        file.write(b"words")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"words")]


def test_a_run_that_fails_leaves_what_was_there(tmp_path):
    (tmp_path / "x").write_text("before")

    def fail():
        with open_output(str(tmp_path / "x")) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "before")]


def test_permissions_of_a_replaced_file_stay(tmp_path):
    path = tmp_path / "x"
    path.write_text("before")
    path.chmod(0o604)
    with open_output(str(path)) as file:
        file.write(b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "other").write_text("")
    with open_output(str(tmp_path / "x")):
        pass
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to("target")
    with open_output(str(tmp_path / "link")) as file:
        file.write(b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "after"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with open_output(str(path)) as file:
        file.write(b"words")
    reader.join()
    assert read == [b"words"]
    assert path.is_fifo()


@pytest.mark.parametrize(("name", "reason"), [("no/such/x", "no such directory"), (".", "is a directory")])
def test_what_cannot_be_written_is_reported_with_its_name(tmp_path, name, reason):
    path = str(tmp_path / name)
    with pytest.raises(OutputError) as caught, open_output(path):
        pass
    assert str(caught.value) == f"cannot write `{path}`: {reason}"


def test_text_files_are_utf_8_and_take_undecodable_names(tmp_path):
    path = tmp_path / "x"
    with open_text_output(str(path)) as file:
        file.write("→ \udcff\n")
    assert path.read_bytes() == b"\xe2\x86\x92 \\udcff\n"


def test_only_what_an_unfinished_run_left_is_removed(tmp_path):
    stale, other, pipe = (
        tmp_path / f".a.csv.{name}.part" for name in ("abcd1234", "my-own-notes", "fifo1234")
    )
    stale.touch()
    other.touch()
    os.mkfifo(pipe)
    with open_output(str(tmp_path / "a.csv")) as file:
        file.write(b"x")
    assert [path.exists() for path in (stale, other, pipe)] == [False, True, True]
