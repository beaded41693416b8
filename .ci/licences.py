"""Check the licences of all crates and of all installed Python packages: `python .ci/licences.py`.

What is allowed, and which packages may have another licence, is in the tables of `docs/licences.md`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/licences.md"

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Identifiers of SPDX for the licences that older packages name by a classifier."""

NAMES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
}
"""The same for the first line of the free text of packages without a classifier."""


def tables() -> tuple[set[str], dict[str, str]]:
    """Return the allowed licences, and the licence of each package that may have another, from the page."""
    text = PAGE.read_text(encoding="utf-8")
    allowed, others = (_section(text, heading) for heading in ("Allowed", "Exceptions"))
    names = set(re.findall(r"`([^`]+)`", allowed))
    return names, dict(re.findall(r"^\| `([^`]+)` \| (?:none|`([^`]+)`) \|", others, flags=re.MULTILINE))


def _section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Return whether an SPDX expression can be satisfied with allowed licences only.

    `/` is how crates wrote OR before SPDX; an exception (`WITH`) only adds permissions.
    """
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def alternatives() -> bool:
        found = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            found |= both()
        return found

    def both() -> bool:
        found = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            found &= one()
        return found

    def one() -> bool:
        token = tokens.pop(0) if tokens else ""
        if token == "(":
            found = alternatives()
            return bool(tokens) and tokens.pop(0) == ")" and found
        if tokens and tokens[0] == "WITH":
            del tokens[:2]
        return token in allowed

    return alternatives() and not tokens


def crates() -> dict[str, str]:
    """Return the licence of each crate that `Cargo.lock` names, for whatever system it is built on."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {package["name"]: package["license"] or "" for package in json.loads(answer)["packages"]}


def packages() -> dict[str, str]:
    """Return the licence of each Python package that is installed beside this interpreter."""
    return {one.name.lower().replace("_", "-"): licence(one) for one in distributions()}


def licence(package: Distribution) -> str:
    """Return the SPDX expression of a package: declared, else by its classifiers, else by its free text."""
    facts = package.metadata
    if facts.get("License-Expression"):
        return facts["License-Expression"]
    found = [
        CLASSIFIERS.get(name, name)
        for one in facts.get_all("Classifier") or []
        if one.startswith("License ::") and (name := one.rpartition(":: ")[2]) != "OSI Approved"
    ]
    if found:
        return " AND ".join(found)
    first = (facts.get("License") or "").partition("\n")[0].strip(" .")
    return NAMES.get(first.lower(), first)


def complaints(found: dict[str, str], allowed: set[str], exceptions: dict[str, str]) -> list[str]:
    """Return a line for each package whose licence is neither allowed nor an exception on the page."""
    return [
        f"{name}: {expression or 'no licence named'}"
        for name, expression in sorted(found.items())
        if not is_allowed(expression, allowed) and exceptions.get(name) != expression
    ]


if __name__ == "__main__":
    allowed, exceptions = tables()
    found = crates() | packages()
    wrong = complaints(found, allowed, exceptions)
    for line in wrong:
        print(f"licence not in docs/licences.md: {line}", file=sys.stderr)
    unused = sorted(exceptions.keys() - found.keys())
    print(f"licences: {len(found)} crates and packages, {len(wrong)} not allowed")
    if unused:
        print(f"exceptions without a package here: {', '.join(unused)}")
    sys.exit(bool(wrong))
