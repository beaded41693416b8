"""Boot a kernel for each run of the farm, so many at a time; runs that are done are not made again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hide_xstate import ONLY_SSE

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping, Sequence

    from scenario import Scenario

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tfrctrace-farm"
SIMULATED: Final = CACHE / "simulated-time"
"""Where `build_kernel.sh` puts a kernel."""
MEMORY: Final = "768M"
"""Of a guest; its captures are in it until they are copied."""
TRIES: Final = 2

HOW_TO_GET_IT: Final = """\
user-mode-linux is missing. On Debian or Ubuntu, without installing it:
    apt-get download user-mode-linux && dpkg -x user-mode-linux_*.deb {root}"""
HOW_TO_BUILD_IT: Final = f"""\
There is no kernel with simulated time (CONFIG_UML_TIME_TRAVEL_SUPPORT). To build it:
    {HERE / "build_kernel.sh"} {{root}}"""


class RunFailedError(Exception):
    """A run that did not come to its end."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """User-mode-linux, and in which time it runs."""

    image: Path
    modules: Path | None
    """Their folder; None if all is built in."""
    simulated_time: bool


def add_options(parser: ArgumentParser) -> None:
    """Add the options by which `find_kernel` finds a kernel."""
    parser.add_argument("--kernel", type=Path, metavar="ROOT", help="folder with usr/bin/linux.uml")
    parser.add_argument(
        "--simulated-time", action="store_true",
        help="work takes no time in the guest, waiting is skipped; needs the kernel of build_kernel.sh",
    )  # fmt: skip


def find_kernel(given: Path | None, *, simulated_time: bool = False) -> Kernel:
    """Return the kernel below a folder, or else that of the cache or of this machine."""
    own = [SIMULATED] if simulated_time else [CACHE, Path("/")]
    roots = [given] if given is not None else own
    for root in roots:
        image = root / "usr/bin/linux.uml"
        if not image.is_file():
            continue
        shown = subprocess.run([image, "--showconfig"], capture_output=True, text=True, check=False).stdout
        config, modules = shown.splitlines(), sorted((root / "usr/lib/uml/modules").glob("*"))
        has_all = bool(modules) or "CONFIG_MODULES=y" not in config
        if has_all and (not simulated_time or "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in config):
            return Kernel(image, modules[-1] if modules else None, simulated_time)
    lacks = HOW_TO_BUILD_IT if simulated_time else HOW_TO_GET_IT
    raise SystemExit(lacks.format(root=roots[0]))


def boot(kernel: Kernel, folder: Path, parameters: Sequence[str], timeout_s: float) -> None:
    """Run the scenario in a folder to its end, with parameters such as `tcp_cubic.beta=512`."""
    init = folder / "init.sh"
    search = ":".join((str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"))
    init.write_text(
        f"#!/bin/sh\nexport PATH='{search}' FARM_FOLDER='{folder}' FARM_MODULES='{kernel.modules or ''}'\n"
        f"export FARM_PARAMETERS='{' '.join(parameters)}'\n"
        f"export GLIBC_TUNABLES='{ONLY_SSE}'\n"
        f"exec '{sys.executable}' -S '{HERE / 'guest.py'}'\n"
    )
    init.chmod(0o755)
    name = f"farm-{os.getpid()}-{'-'.join(folder.parts[-3:])}"
    words = [
        sys.executable, str(HERE / "hide_xstate.py"), str(kernel.image),
        "rootfstype=hostfs", "root=/dev/root", "rw", f"mem={MEMORY}", f"init={init}",
        "con=null", "con0=null,fd:1", "ssl=null", "quiet", f"umid={name}", *parameters,
        *(["time-travel=inf-cpu"] if kernel.simulated_time else []),
    ]  # fmt: skip
    with (folder / "console.txt").open("wb") as console:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            raise RunFailedError(f"not done after {timeout_s:.0f} s") from None
    if (folder / "error.txt").exists():
        raise RunFailedError((folder / "error.txt").read_text().strip().splitlines()[-1])
    if not (folder / "done").exists():
        raise RunFailedError(f"the kernel ended early: see {folder / 'console.txt'}")


def make(scenario: Scenario, folder: Path, kernel: Kernel, parameters: Sequence[str] = ()) -> str:
    """Make the run of a folder, unless it is there; return what was done."""
    if (folder / "done").exists():
        return "there"
    for attempt in range(1, TRIES + 1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "scenario.json").write_text(json.dumps(scenario.as_dict(), indent=1))
        try:
            boot(kernel, folder, parameters, 4 * scenario.duration_s + 120)
        except RunFailedError as reason:
            if attempt == TRIES:
                return f"failed: {reason}"
        else:
            return "made"
    return "failed"


def make_all(folders: Mapping[Path, Scenario], kernel: Kernel, parameters: Sequence[str], jobs: int) -> int:
    """Make the runs of all folders, so many at a time, with progress; return how many failed."""
    began, failed = time.monotonic(), 0
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(make, scenario, folder, kernel, parameters): folder
            for folder, scenario in folders.items()
        }
        for done, future in enumerate(as_completed(waiting), 1):
            result = future.result()
            failed += result.startswith("failed")
            left_s = (time.monotonic() - began) / done * (len(waiting) - done)
            name = waiting[future].name
            print(f"{done} of {len(waiting)}  {name}  {result}  ({left_s / 60:.0f} min left)",
                  file=sys.stderr, flush=True)  # fmt: skip
    return failed
