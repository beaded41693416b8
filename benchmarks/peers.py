"""The programs that are measured: tfrctrace, and those that it is compared with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A program to run on a capture; `command` is None with a `reason` if it cannot run here."""

    name: str
    command: Callable[[Path], list[str]] | None
    reason: str = ""


COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "flows": ("flows", "--quiet", "{}"),
    "metrics": ("metrics", "--quiet", "{}"),
    "report": ("report", "--quiet", "{}", "--output", "{scratch}/report.html"),
    "convert": ("convert", "--quiet", "--what", "packets", "{}", "--output", "{scratch}/packets.parquet"),
    "replay": ("replay", "--quiet", "--algorithm", "tfrc", "{}"),
}
"""Arguments of the commands that are measured; `{}` stands for the capture."""


def tfrctrace(
    command: str = "flows", scratch: Path | None = None, program: Path | None = None
) -> Callable[[Path], list[str]]:
    """Return a command of tfrctrace: of this environment, or of an older `program`."""
    program = program or Path(sys.executable).with_name("tfrctrace")

    def on(capture: Path) -> list[str]:
        parts = (part.replace("{scratch}", str(scratch)) for part in COMMANDS[command])
        return [str(program), *(part.replace("{}", str(capture)) for part in parts)]

    return on


def older(commit: str, folder: Path) -> Path:
    """Return the tfrctrace of a commit (or a program), built and installed in `folder` if it is not there."""
    if Path(commit).is_file():
        return Path(commit).resolve()
    named = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"],
        cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if named.returncode:
        sys.exit(f"{commit} is neither a program nor a commit")
    place = folder / named.stdout.strip()[:12]
    program = place / "venv" / "bin" / "tfrctrace"
    if not program.exists():
        print(f"building {commit} (minutes)", file=sys.stderr, flush=True)
        source = place / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", named.stdout.strip()], cwd=HERE.parent, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        subprocess.run([str(program.with_name("pip")), "install", "--quiet", str(source)], check=True)
    return program


def tool(name: str, *arguments: str) -> Peer:
    """Return a peer found on the path; `{}` stands for the capture."""
    program = shutil.which(name)
    if program is None:
        return Peer(name, None, f"{name} is not installed")
    return Peer(name, lambda capture: [program, *(part.replace("{}", str(capture)) for part in arguments)])


def tcptrace() -> Peer:
    """tcptrace with everything of the long form: RTT and retransmissions, no names looked up."""
    return tool("tcptrace", "-n", "-l", "-r", "{}")


def script(name: str, module: str) -> Peer:
    """Return a peer that is a Python loop beside this file."""
    probe = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    if probe.returncode:
        return Peer(module, None, f"{module} is not installed")
    return Peer(module, lambda capture: [sys.executable, str(HERE / name), str(capture)])


def bare_loop(scratch: Path) -> Peer:
    """Compile the loop that only counts, for the system's libpcap or the one in the PyPI package."""
    name = "bare loop"
    compiler = shutil.which("cc")
    library = _libpcap()
    if compiler is None or library is None:
        return Peer(name, None, "no C compiler" if compiler is None else "no libpcap found")
    program = scratch / "count"
    command = [compiler, "-O2", str(HERE / "count.c"), "-o", str(program), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        return Peer(name, None, f"count.c could not be built: {built.stderr.strip().splitlines()[-1]}")
    return Peer(name, lambda capture: [str(program), str(library), str(capture)])


def _libpcap() -> Path | None:
    """Find the libpcap of the system, else of the PyPI package."""
    places = [Path("/usr/lib"), Path("/usr/local/lib"), Path("/opt/homebrew/lib")]
    patterns = ["libpcap.so*", "*-linux-gnu/libpcap.so*", "libpcap.dylib"]
    for place in places:
        for pattern in patterns:
            if found := sorted(place.glob(pattern)):
                return found[0]
    return _bundled_libpcap()


def _bundled_libpcap() -> Path | None:
    """Ask the PyPI package which file it loads."""
    ask = "import libpcap; libpcap.config(LIBPCAP='tcpdump'); from libpcap import _dll; print(_dll.DLL_PATH)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    path = Path(answer.stdout.strip())
    return path if answer.returncode == 0 and path.is_file() else None
