"""Run drawn scenarios in real kernels, and keep captures with what the kernels knew.

    python evaluation/kernel_farm/run.py RUNS --seed 1 --runs 40

A kernel is Debian's user-mode-linux (6.1) with 17 congestion controls. It boots in two seconds, needs no
rights and has the host's files as its root. Runs that are done are not made again. Each folder below RUNS
gets

    scenario.json                     what was drawn
    sender, middle, receiver.pcap.gz  captures
    flow.tcp_info.csv.gz              TCP_INFO every 20 ms; the last row has the kernel's sums
    flow.application.csv.gz           when the application had data for the socket, and when not
    counters.json                     `nstat` of the ends and `tc -s` of the queues, before and after
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario import CONTROLLERS, DURATION_S, LIMITS, Scenario, draw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tfrctrace-farm"
MEMORY: Final = "768M"
"""Of a guest; its captures are in it until they are copied."""
TRIES: Final = 2

HOW_TO_GET_IT: Final = """\
user-mode-linux is missing. On Debian or Ubuntu, without installing it:
    apt-get download user-mode-linux && dpkg -x user-mode-linux_*.deb {cache}"""


class RunFailedError(Exception):
    """A run that did not come to its end."""


def find_kernel(given: Path | None) -> tuple[Path, Path]:
    """Return the kernel and the folder of its modules."""
    roots = [given] if given is not None else [CACHE, Path("/")]
    for root in roots:
        kernel = root / "usr/bin/linux.uml"
        modules = sorted((root / "usr/lib/uml/modules").glob("*"))
        if kernel.is_file() and modules:
            return kernel, modules[-1]
    raise SystemExit(HOW_TO_GET_IT.format(cache=roots[0]))


def boot(kernel: Path, modules: Path, folder: Path, parameters: Sequence[str], timeout_s: float) -> None:
    """Run the scenario in a folder to its end, with parameters such as `tcp_cubic.beta=512`."""
    init = folder / "init.sh"
    search = ":".join((str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"))
    init.write_text(
        f"#!/bin/sh\nexport PATH='{search}' FARM_FOLDER='{folder}' FARM_MODULES='{modules}'\n"
        f"export FARM_PARAMETERS='{' '.join(parameters)}'\n"
        f"exec '{sys.executable}' '{HERE / 'guest.py'}'\n"
    )
    init.chmod(0o755)
    words = [
        str(kernel), "rootfstype=hostfs", "root=/dev/root", "rw", f"mem={MEMORY}", f"init={init}",
        "con=null", "con0=null,fd:1", "quiet", f"umid=farm-{os.getpid()}-{'-'.join(folder.parts[-3:])}", *parameters,
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


def make(scenario: Scenario, folder: Path, kernel: tuple[Path, Path], parameters: Sequence[str] = ()) -> str:
    """Make the run of a folder, unless it is there; return what was done."""
    if (folder / "done").exists():
        return "there"
    for attempt in range(1, TRIES + 1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "scenario.json").write_text(json.dumps(scenario.as_dict(), indent=1))
        try:
            boot(*kernel, folder, parameters, 4 * scenario.duration_s + 120)
        except RunFailedError as reason:
            if attempt == TRIES:
                return f"failed: {reason}"
        else:
            return "made"
    return "failed"


def make_all(
    folders: Mapping[Path, Scenario], kernel: tuple[Path, Path], parameters: Sequence[str], jobs: int
) -> int:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs_folder", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw")
    parser.add_argument("--runs", type=int, default=len(LIMITS), metavar="N", help="number of runs")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first run")
    parser.add_argument(
        "--limit", action="append", choices=LIMITS, help="only what is limited so; repeatable"
    )
    parser.add_argument(
        "--controller", action="append", choices=CONTROLLERS, help="only this one; repeatable"
    )
    parser.add_argument("--duration", type=float, default=DURATION_S, metavar="SECONDS", help="of each run")
    parser.add_argument("--jobs", "-j", type=int, default=2 * (os.cpu_count() or 1), help="kernels at a time")
    parser.add_argument("--kernel", type=Path, metavar="ROOT", help="folder with usr/bin/linux.uml")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="MODULE.NAME=VALUE",
        help="of a congestion control, such as tcp_cubic.beta=512; repeatable",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the scenarios and run none")
    asked = parser.parse_args(arguments)
    scenarios = [
        draw(
            asked.seed,
            number,
            limits=tuple(asked.limit or LIMITS),
            controllers=tuple(asked.controller or CONTROLLERS),
            duration_s=asked.duration,
        )
        for number in range(asked.first, asked.first + asked.runs)
    ]
    if asked.list:
        for scenario in scenarios:
            path = f"{scenario.rate_bps / 1e6:.1f} Mbit/s, {scenario.base_rtt_s * 1e3:.0f} ms"
            print(f"{scenario.name}: {path}, {scenario.queue} of {scenario.buffer_bytes} bytes")
        return 0
    kernel = find_kernel(asked.kernel)
    runs = asked.runs_folder.resolve()
    folders = {runs / scenario.name: scenario for scenario in scenarios}
    return 1 if make_all(folders, kernel, asked.parameter, asked.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
