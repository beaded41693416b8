"""What is installed: exactly the modules of the tree, under one name, with the core in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import tfrctrace

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("parsers", "metrics", "reports")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DATA_SUFFIXES = {".pyi", ".typed", ".html", ".css", ".js", ".toml"}


def installed_files():
    """Return the files of the tree that belong into a wheel, by their place in it."""
    files = {}
    for room in ("tfrctrace", *ROOMS):
        for path in (ROOT / room).rglob("*"):
            inside = path.relative_to(ROOT / room)
            # the rooms are linked below `tfrctrace`, and the crate is not installed as source
            if path.is_dir() or inside.parts[0] in {*ROOMS, "native"} or "__pycache__" in inside.parts:
                continue
            if path.suffix in {".py", *DATA_SUFFIXES}:
                files[str(Path("tfrctrace", "" if room == "tfrctrace" else room, inside))] = path
    return files


def test_every_package_of_the_tree_is_named_in_pyproject():
    in_tree = {
        str(Path(name).parent).replace("/", ".")
        for name in installed_files()
        if name.endswith("/__init__.py")
    }
    assert in_tree == set(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_data_file_of_the_tree_is_matched_in_pyproject():
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]
    for name in installed_files():
        path = Path(name)
        if path.suffix in DATA_SUFFIXES:
            packages = {".".join(folder.parts): path.relative_to(folder) for folder in path.parents}
            named = [
                inside.match(pattern)
                for package, inside in packages.items()
                for pattern in patterns.get(package, [])
            ]
            assert any(named), name


@pytest.mark.parametrize("room", ROOMS)
def test_the_rooms_are_linked_so_that_a_checkout_looks_as_installed(room):
    assert os.readlink(ROOT / "tfrctrace" / room) == f"../{room}"


def test_the_version_is_one():
    assert tfrctrace.__version__ == PYPROJECT["project"]["version"]


def test_the_program_is_the_one_of_python_dash_m():
    assert PYPROJECT["project"]["scripts"] == {"tfrctrace": "tfrctrace.__main__:main"}


def test_scapy_is_for_tests_only():
    named = [name.split(">")[0].lower() for name in PYPROJECT["project"]["dependencies"]]
    assert "scapy" not in named


@pytest.fixture(scope="session")
def sdist(tmp_path_factory):
    """Build the source distribution and return the folder it unpacks to."""
    folder = tmp_path_factory.mktemp("sdist")
    build("--sdist", ROOT, folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture(scope="session")
def wheel(sdist, tmp_path_factory):
    """Build the wheel out of the source distribution, so that the latter must be complete."""
    if not shutil.which("cargo"):
        pytest.skip("building the core needs cargo")
    folder = tmp_path_factory.mktemp("wheel")
    build("--wheel", sdist, folder)
    (path,) = folder.glob("*.whl")
    return path


def build(what, source, folder):
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", what, "-o", folder, source],
        # As `make` builds. Cargo knows the core by its place in the workspace, so that what `make` compiled
        # is still good as long as every file of it is here too, and no younger: else it is compiled again.
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(ROOT / "target"),
            "SETUPTOOLS_RUST_CARGO_PROFILE": "quick",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_source_distribution_holds_what_a_build_needs(sdist):
    names = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    crate = {str(path.relative_to(ROOT)) for path in (ROOT / "parsers/native/src").rglob("*.rs")}
    needed = {"Cargo.toml", "Cargo.lock", ".cargo/config.toml", "LICENSE", "README.md", "pyproject.toml"}
    assert crate | needed <= names
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pcap", ".o"))]


def test_a_wheel_holds_exactly_the_modules_of_the_tree(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        libraries = {name for name in names if name.endswith((".so", ".pyd", ".dylib"))}
        pages = {name for name in names if "/share/man/man1/" in name}
        assert {Path(name).name for name in pages} == {
            path.name for path in (ROOT / "docs" / "man").iterdir()
        }
        assert names - libraries - pages == set(installed_files())
        assert len(libraries) == 1
        assert libraries.pop().startswith("tfrctrace/parsers/_native.abi3.")


def test_a_wheel_puts_one_name_into_site_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        top_level = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in top_level if not name.endswith((".dist-info", ".data"))} == {"tfrctrace"}


def test_one_wheel_is_for_python_3_11_and_later(wheel):
    assert "-cp311-abi3-" in wheel.name


def test_a_wheel_carries_the_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith("dist-info/licenses/LICENSE") for name in archive.namelist())
