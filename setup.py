"""Put uPlot, which draws the plots of a report, beside the page's own scripts when the package is built.

Its two files come from the package `uplot-python` of the registry and are known by their hashes; the
repository does not have them, a source distribution does.
"""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PAGE = Path(__file__).parent / "reports" / "page"
SHA256 = {
    "uPlot.iife.js": "655bc8aa33781e8721c5af6b59f1699c03c9bda951aa74a6ab518ac20cc4326d",
    "uPlot.min.css": "3f121cd4a997b634e07a887658850018e475c26f0bddd874109a8d382c19de87",
}


def is_uplot(path: Path) -> bool:
    """Return whether a file is there and is the one that the reports were tested with."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[path.name]


def copy_uplot() -> None:
    """Copy the files that are missing."""
    missing = [name for name in SHA256 if not is_uplot(PAGE / name)]
    if not missing:
        return
    try:
        package = distribution("uplot-python")
    except PackageNotFoundError:
        raise SystemExit(
            "uplot-python is missing: install what [build-system] of pyproject.toml requires"
        ) from None
    for name in missing:
        source = Path(str(package.locate_file(f"uplot/static/{name}")))
        (PAGE / name).write_bytes(source.read_bytes())
        if not is_uplot(PAGE / name):
            (PAGE / name).unlink()
            raise SystemExit(f"{source}: not the file that reports were tested with (uplot-python 1.1.1)")


class BuildWithUplot(build_py):
    """Collect the data files of the package, uPlot's included."""

    def finalize_options(self) -> None:
        """Make the files before anything lists them, the source distribution included."""
        copy_uplot()
        super().finalize_options()


setup(cmdclass={"build_py": BuildWithUplot})
