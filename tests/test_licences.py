"""Licences of what is built and installed are on the list of `docs/licences.md`; scapy stays optional."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["scapy"] = None  # as where it is not installed
import tfrctrace
names = [one.name for one in pkgutil.walk_packages(tfrctrace.__path__, "tfrctrace.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""


@pytest.fixture(scope="module")
def licences(load_script):
    return load_script(ROOT / ".ci/licences.py")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-2.0-only AND MIT", False),
        ("(MIT OR GPL-2.0-only) AND Zlib", True),
        ("MIT OR GPL-2.0-only AND Zlib", True),
        ("(MIT OR Zlib) AND GPL-2.0-only", False),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
        ("GPL-2.0-only", False),
        ("", False),
        ("(MIT", False),
        ("MIT)", False),
    ],
)
def test_an_expression_needs_allowed_licences_only(licences, expression, expected):
    assert licences.is_allowed(expression, {"MIT", "Apache-2.0", "Zlib"}) is expected


def test_another_licence_is_named_with_its_package(licences):
    found = {"a": "MIT", "b": "GPL-3.0-only", "c": "", "d": "MPL-2.0", "e": "AGPL-3.0-only"}
    exceptions = {"d": "MPL-2.0", "e": "MPL-2.0"}
    assert licences.complaints(found, {"MIT"}, exceptions) == [
        "b: GPL-3.0-only",
        "c: no licence named",
        "e: AGPL-3.0-only",
    ]


def test_what_is_installed_here_is_on_the_list(licences):
    allowed, exceptions = licences.tables()
    assert {"MIT", "Apache-2.0"} <= allowed
    assert not [name for name in allowed if "GPL" in name]
    assert exceptions["scapy"] == "GPL-2.0-only"
    assert not licences.complaints(licences.packages(), allowed, exceptions)


def test_every_module_is_imported_without_scapy():
    ended = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 200
