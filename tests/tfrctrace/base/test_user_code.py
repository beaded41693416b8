"""Modules of the current folder are found, and never in place of installed ones."""

import sys
from pathlib import Path

import pytest

from tfrctrace.base.errors import UsageError
from tfrctrace.base.user_code import load_class

CONTROL = """
import colorsys
from pathlib import Path

class Control:
    installed = hasattr(colorsys, "rgb_to_hsv")

    def helper(self):
        import beside_it
        return beside_it.VALUE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a module that has the name of an installed one."""
    (tmp_path / "colorsys.py").write_text("raise SystemExit('the module beside the captures ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("colorsys", "own_control", "beside_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_module_beside_the_captures_does_not_run_in_place_of_an_installed_one(folder: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_class("colorsys:Control")


@pytest.mark.parametrize("first", ["", "."])
def test_nor_where_the_interpreter_puts_the_current_folder_first(folder: Path, first: str) -> None:
    sys.path.insert(0, first and str(folder))
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_class("colorsys:Control")


def test_a_class_of_the_current_folder_is_found_and_may_import_later(folder: Path) -> None:
    (folder / "own_control.py").write_text(CONTROL)
    (folder / "beside_it.py").write_text("VALUE = 3")
    control = load_class("own_control:Control")
    assert control.installed
    assert control().helper() == 3
