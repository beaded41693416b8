"""Resolve every dependency and write the result to `constraints.txt`: `python .ci/pin.py`.

Run it with the oldest supported Python, so that every pinned version still installs there.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Exact versions of everything that `make` installs, build requirements included.
# Written by .ci/pin.py from the ranges in pyproject.toml; do not edit.
"""


def requirements() -> list[str]:
    """Return all requirements named in pyproject.toml: of the build, of the package, of each extra."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [*settings["build-system"]["requires"], *settings["project"]["dependencies"], "wheel"]
    for extra in settings["project"]["optional-dependencies"].values():
        named += extra
    return named


def resolve(named: list[str]) -> dict[str, str]:
    """Let pip resolve the requirements without installing them; return version by name."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    report = subprocess.run(
        [*command, "--report", "-", *named], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    chosen = [entry["metadata"] for entry in json.loads(report)["install"]]
    return {metadata["name"].lower(): metadata["version"] for metadata in chosen}


if __name__ == "__main__":
    pins = [f"{name}=={version}\n" for name, version in sorted(resolve(requirements()).items())]
    (ROOT / "constraints.txt").write_text(HEADER + "".join(pins))
