"""Programs of `evaluation/` that look at the repository: counts of its structure, outputs that changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EVALUATION = Path(__file__).parents[1] / "evaluation"

SOURCES = {
    "tfrctrace/a/one.py": "def f():\n    from tfrctrace.b import two\n    return two\n",
    "tfrctrace/b/two.py": "if TYPE_CHECKING:\n    import tfrctrace.a.one\n",
    "reports/page.py": 'def page(facts: Mapping[str, Any]):\n    return facts["flows"]["rtt"]\n',
    "parsers/native/src/pass/mod.rs": (
        "use crate::flow::Flow;\npub struct Analysis {\n    a: u8,\n    pub(crate) b: Vec<u8>,\n}\n"
        "impl Analysis {\n    fn follow(&mut self, a: u8, b: (u8, u8), c: &str, d: i64, e: fn(u8), f: u8) {"
        "\n    }\n}\n"
        "#[cfg(test)]\nmod tests {\n    fn not_counted() {}\n}\n"
    ),
    "parsers/native/src/flow/mod.rs": (
        "pub struct Flow;\nimpl Flow {\n    // a brace in a comment: {\n    fn one(&self) -> char {\n"
        "        '{'\n    }\n    fn two<T: Fn(u8) -> u8>(\n        &self,\n    ) {\n    }\n}\n"
    ),
    "parsers/native/src/flow/tcp.rs": "use super::udp::U;\n",
    "parsers/native/src/flow/udp.rs": "use crate::flow::{tcp::{T, V}, Flow};\n",
    "tests/test_rooms.py": 'SAME_SUBJECT = {"a": "b", "c": "d"}\n',
}


@pytest.fixture
def checkout(tmp_path):
    for name, source in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path


def test_the_structure_of_a_checkout_is_counted(load_script, checkout):
    house = load_script(EVALUATION / "house.py")
    assert house.measured(house.Checkout(checkout)) == {
        "pairs of rooms that import each other": "1 (a/b)",
        "circles of files, Python": "1 (of 2)",
        "circles of files, Rust": "1 (of 2)",
        "lines with `Mapping[str, Any]` and the like in reports/": "1",
        '`["key"]` look-ups in reports/': "2",
        "fields of `Analysis`": "2",
        "files with `impl Analysis`": "1",
        "fields of `HalfConnection`": "0",
        "methods of `Flow` in one file": "2",
        "functions of six arguments or more, Rust": "1",
        "lines of the longest function, Rust": "4 (two)",
        "lines of the longest function, Python": "3 (f)",
        "exemptions in the tests of the rooms": "2",
        "product lines": "29",
    }


def test_outputs_that_a_change_alters_are_named(load_script, tmp_path, capsys):
    program = [sys.executable, EVALUATION / "outputs.py", "write", tmp_path / "old"]
    subprocess.run([*program, "--only", "^flows-table$", "--of", "two-flows"], check=True)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    outputs = load_script(EVALUATION / "outputs.py")
    place = "sample_traces+two-flows.pcapng.gz/flows-table"
    files = {path.name: path.read_text() for path in (tmp_path / "old" / place).iterdir()}
    assert files.keys() == {"stdout", "stderr", "status"}
    assert (files["status"], files["stderr"]) == ("0\n", "")
    assert "pcapng in gzip, Ethernet" in files["stdout"]
    assert outputs.compare(tmp_path / "old", tmp_path / "new", []) == 0
    (tmp_path / "new" / place / "stdout").write_text("no flows")
    (tmp_path / "new" / place / "status").unlink()
    capsys.readouterr()
    assert outputs.compare(tmp_path / "old", tmp_path / "new", []) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"only before: {place}/status",
        f"differs: {place}/stdout",
        "3 files before, 2 after, 2 differ",
    ]
    assert outputs.compare(tmp_path / "old", tmp_path / "new", ["stdout$", "status$"]) == 0
