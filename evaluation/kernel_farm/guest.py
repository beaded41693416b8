"""The first process of a guest: loads modules, builds the network, runs a scenario, and ends the kernel.

    guest.py FOLDER        FOLDER has scenario.json, and gets captures, logs and counters

The guest's files are the host's, so what it writes while it runs goes to its memory, and to FOLDER at the
end.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import network  # noqa: E402
from scenario import CONTROLLERS, Scenario, Sender, scenario_of  # noqa: E402

FINIT_MODULE: Final = 313
"""Number of the system call on x86-64; the image has no insmod."""
WORK: Final = Path("/run/farm")
CAPTURED_AFTER_S: Final = 2.5
"""The kernel hands packets to tcpdump in blocks, each at most a second after it began."""
SNAP_BYTES: Final = 100
"""Ethernet, IPv4 and TCP with all options."""
MODULES: Final = (
    "veth", "sch_ingress", "sch_htb", "sch_tbf", "sch_netem", "sch_codel", "sch_fq_codel", "sch_pie",
    "sch_red", "sch_cake", "sch_fq", "sch_prio", "act_police", "act_pedit", "act_csum", "cls_matchall",
    "cls_u32", "ipip",
    *(f"tcp_{name}" for name in CONTROLLERS if name not in ("reno", "cubic")),
)  # fmt: skip


def load_modules(root: Path, parameters: str) -> None:
    """Load modules and what they need, in the order of `modules.dep`, with `MODULE.NAME=VALUE` of each."""
    system_call = ctypes.CDLL(None, use_errno=True).syscall
    needs: dict[str, list[str]] = {}
    for line in (root / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[path] = [path, *others.split()]
    given = [word.partition(".") for word in parameters.split()]
    by_name = {Path(path).name.removesuffix(".ko"): files for path, files in needs.items()}
    for name in MODULES:
        for path in reversed(by_name[name]):
            own = " ".join(rest for module, _, rest in given if module == Path(path).name.removesuffix(".ko"))
            with (root / path).open("rb") as file:
                system_call(FINIT_MODULE, file.fileno(), own.encode(), 0)


def mount(kind: str, place: str, options: str = "") -> None:
    """Mount a file system of the guest."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(kind.encode(), place.encode(), kind.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"cannot mount {place}")


def capture(namespace: str, interface: str, name: str) -> subprocess.Popen[bytes]:
    """Begin a capture."""
    words = ["tcpdump", "-i", interface, "-s", str(SNAP_BYTES), "-B", "16384", "-Z", "root"]
    words += ["-w", str(WORK / f"{name}.pcap"), "tcp"]
    with network.inside(namespace), (WORK / f"{name}.tcpdump.txt").open("wb") as messages:
        return subprocess.Popen(words, stderr=messages)


def start(what: str, namespace: str, asked: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start one program of a connection."""
    words = [sys.executable, "-S", str(HERE / "endpoints.py"), what, json.dumps(asked)]
    with network.inside(namespace):
        return subprocess.Popen(words)


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of a scenario, and the namespaces of its ends."""

    name: str
    source: str
    target: str
    sender: Sender

    def asked(self, scenario: Scenario, addresses: dict[str, str]) -> dict[str, Any]:
        """Return what its two programs are told."""
        return asdict(self.sender) | {
            "address": addresses[self.source],
            "server_address": addresses[self.target],
            "duration_s": scenario.duration_s,
            "base_rtt_s": scenario.base_rtt_s,
            "log": str(WORK / self.name),
        }


def run(scenario: Scenario) -> None:
    """Run a scenario, with what it leaves in `WORK`."""
    addresses = network.build(scenario)
    places = {"sender": ("a", "a-r"), "receiver": ("b", "b-t")}
    if scenario.middle is not None:
        places["middle"] = ("q", "q-r") if scenario.middle == "before" else ("t", "t-q")
    captures = [capture(*place, name) for name, place in places.items()]
    connections = [Connection("flow", "a", "b", scenario.sender)]
    connections += [
        Connection(f"competitor-{n}", scenario.competitors_from, "b", one)
        for n, one in enumerate(scenario.competitors)
    ]
    if scenario.backwards is not None:
        connections.append(Connection("backwards", "b", "a", scenario.backwards))
    wanted = [(one.source, one.target, one.asked(scenario, addresses)) for one in connections]
    readers = [start("receive", target, asked) for _, target, asked in wanted]
    _wait_for([Path(asked["log"]).with_suffix(".listens") for *_, asked in wanted])
    _wait_for([WORK / f"{name}.pcap" for name in places])
    before = network.statistics()
    writers = [start("send", source, asked) for source, _, asked in wanted]
    began_s = time.monotonic()
    for at_s, happen in sorted(_events(scenario, addresses), key=itemgetter(0)):
        time.sleep(max(began_s + at_s - time.monotonic(), 0))
        happen()
    for writer in writers:
        writer.wait()
    # what a writer has sent last is still under way
    time.sleep(2 * scenario.base_rtt_s + CAPTURED_AFTER_S)
    for reader in readers:
        reader.kill()
    for process in captures:
        process.terminate()
        process.wait()
    counters = {"before": before, "after": network.statistics()}
    (WORK / "counters.json").write_text(json.dumps(counters, indent=1))
    (WORK / "addresses.json").write_text(json.dumps(addresses))


def _events(scenario: Scenario, addresses: dict[str, str]) -> Iterator[tuple[float, Callable[[], None]]]:
    """Give what happens to the network, and when."""
    if scenario.change is not None:

        def change() -> None:
            network.change_path(scenario, addresses)
            (WORK / "change.json").write_text(json.dumps({"time_ns": time.time_ns()}))

        yield scenario.change[0], change
    if scenario.outage is not None:
        yield scenario.outage[0], partial(network.lose, scenario, 1.0)
        yield scenario.outage[1], partial(network.lose, scenario, scenario.loss)
    for at_s, rate_bps in scenario.rates:
        yield at_s, partial(network.set_rate, rate_bps)


def _wait_for(paths: list[Path]) -> None:
    ends = time.monotonic() + 60
    while not all(path.exists() for path in paths):
        if time.monotonic() > ends:
            raise TimeoutError(
                f"not there after a minute: {[str(path) for path in paths if not path.exists()]}"
            )
        time.sleep(0.02)


def keep(folder: Path) -> None:
    """Copy what the run left, compressed, to the host."""
    for path in sorted(WORK.iterdir()):
        if path.suffix in (".pcap", ".csv"):
            with path.open("rb") as source, gzip.open(folder / f"{path.name}.gz", "wb", 6) as target:
                shutil.copyfileobj(source, target)
        elif path.suffix in (".json", ".txt"):
            shutil.copyfile(path, folder / path.name)


def main() -> None:
    """Run and end the kernel, whatever happened."""
    folder, modules = Path(os.environ["FARM_FOLDER"]), os.environ["FARM_MODULES"]
    try:
        for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):
            # what /tmp holds on the host is hidden, unless the run is there
            if (
                not folder.is_relative_to(place)
                and not Path(modules).is_relative_to(place)
                and not HERE.is_relative_to(place)
            ):
                mount(kind, place)
        WORK.mkdir(parents=True, exist_ok=True)
        if modules:
            load_modules(Path(modules), os.environ["FARM_PARAMETERS"])
        run(scenario_of(json.loads((folder / "scenario.json").read_text())))
        keep(folder)
        (folder / "done").touch()
    except BaseException:
        (folder / "error.txt").write_text(traceback.format_exc())
    os.sync()
    Path("/proc/sysrq-trigger").write_text("o")
    # the kernel is off before that: if its first process ended by itself, it would panic
    time.sleep(60)


if __name__ == "__main__":
    main()
