"""One run of ns-2: what it simulates, and its trace, compressed while ns-2 writes it."""

from __future__ import annotations

import json
import lzma
import os
import random
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
LONGEST_RUN_S = 3600.0
"""A simulation that takes longer than this has failed."""
PACKING: dict[str, dict[str, int]] = {
    "full": {"id": lzma.FILTER_LZMA2, "preset": 1},
    "small": {"id": lzma.FILTER_LZMA2, "preset": 6, "nice_len": 128, "depth": 24, "lc": 4, "pb": 0},
}
"""How xz packs: a campaign waits for it, a repository keeps what it packed (as small as by `xz -9e`)."""
PIECE_BYTES = 1 << 20
MESSAGE_LINES = 20


class SimulationError(Exception):
    """A simulation that ended without a result, and what it printed last."""


@dataclass(frozen=True)
class Run:
    """One run: its trace's name, its topology (a Tcl file beside this one) with options, and its flows."""

    name: str
    topology: str
    flows: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_variables(self) -> bool:
        """Whether the variables of a sender go beside the trace: the run is a folder then."""
        return any(flow.get("variables") for flow in self.flows)

    def definition(self) -> dict[str, Any]:
        """Return all that the trace depends on, but for the scripts."""
        return asdict(self)


def flow(kind: str, number: int, source: object, target: object, **more: object) -> dict[str, Any]:
    """Return flow `number` of a run."""
    return {"kind": kind, "id": number, "from": source, "to": target} | more


def spread_starts(flows: list[dict[str, Any]], first_s: float, seed: int) -> list[dict[str, Any]]:
    """Return `flows` with starts within one second, so that no two are in step: the same for one seed."""
    draws = random.Random(seed)
    return [{"start": round(first_s + draws.random(), 3)} | one for one in flows]


def bounded(flows: list[dict[str, Any]], bounds_kbps: dict[float, float]) -> list[dict[str, Any]]:
    """Return flows of TFRC that send no more than these bounds, each from its time (s) on: those of MTFRC."""
    words = " ".join(f"{from_s} {bound}kb" for from_s, bound in bounds_kbps.items())
    return [one | {"bounds": f"{{{words}}}"} for one in flows]


def simulate(
    run: Run, folder: Path, scale: str, started: Callable[[subprocess.Popen[bytes]], None]
) -> dict[str, Any]:
    """Write the compressed trace of `run` to `folder`, and its variables; return what the agents counted."""
    options = dict(run.options, flows=" ".join(f"{{{_words(each)}}}" for each in run.flows))
    arguments = [str(word) for pair in options.items() for word in pair]
    trace, writing_end = os.pipe()
    command = [
        "ns",
        str(HERE / "simulate.tcl"),
        run.topology,
        f"/dev/fd/{writing_end}",
        str(folder),
        *arguments,
    ]
    with (folder / "printed").open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing_end],
            )
        finally:
            os.close(writing_end)
    started(process)
    limit = Timer(LONGEST_RUN_S, process.kill)
    limit.start()
    try:
        with os.fdopen(trace, "rb", buffering=0) as stream:
            _compress(stream.read, folder / f"{run.name}.tr.xz", scale)
        status = process.wait()
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    truth, printed = folder / "truth.json", folder / "printed"
    if status or not truth.exists():
        last = printed.read_text(errors="replace").splitlines()[-MESSAGE_LINES:]
        raise SimulationError(f"ns ended with status {status}:\n" + "\n".join(last))
    for file in sorted(folder.glob("tcp*.txt")):
        with file.open("rb") as text:
            _compress(text.read, folder / f"{run.name}.{file.name}.xz", scale)
        file.unlink()
    counted: dict[str, Any] = json.loads(truth.read_text())
    for file in (truth, printed):
        file.unlink()
    return counted


def _compress(read: Callable[[int], bytes], to: Path, scale: str) -> None:
    compressor = lzma.LZMACompressor(filters=[PACKING[scale]])
    with to.open("wb") as packed:
        while piece := read(PIECE_BYTES):
            packed.write(compressor.compress(piece))
        packed.write(compressor.flush())


def _words(options: dict[str, Any]) -> str:
    return " ".join(f"{name} {value}" for name, value in options.items())
