"""A batch on a Dask cluster of which workers are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from case import Case, NotHereError
from killed_runs import lay_inputs, written
from program import ended, lay
from traces import content

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

CLUSTER: Final = """
import os, sys, json
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            print(json.dumps([cluster.scheduler_address, list(client.run(os.getpid).values())]), flush=True)
        sys.stdin.read()
"""
CHAINS: Final = 6


class DyingWorkers:
    """A cluster that loses a worker gives what this machine alone gives."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write captures, and analyse them here."""
        if find_spec("distributed") is None:
            raise NotHereError("distributed is not installed: pip install 'tfrctrace[dask]'")
        self.folder = folder
        lay_inputs(folder)
        for number in range(CHAINS):
            capture = content("tests/data/captures/linux-small-flows-snd.pcap.gz", 5_000 + 2_000 * number)
            lay(folder / "captures" / f"link-{number}.pcap", capture)

    def draw(self, chance: random.Random) -> Case:
        """Draw how many milliseconds after its first result a cluster loses a worker."""
        command = ("batch", "captures", "-o", "out", "--chains", "none")
        return Case(command, setting={"ms": chance.choice((0, 10, 100, 400))})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the batch here and on a cluster, and compare."""
        here, there = folder / "here", folder / "there"
        for place in (here, there):
            shutil.copytree(self.folder, place)
        wrong = program.run([*case.line(), "-j", "1"], here).wrong()
        script = folder / "cluster.py"
        script.write_text(CLUSTER)
        with subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as cluster:
            try:
                assert cluster.stdout is not None
                address, workers = json.loads(cluster.stdout.readline())
                line = [*case.line(), "--executor", f"dask:{address}", "-j", "2"]
                process = program.start(line, there)
                killer = threading.Thread(
                    target=kill_after, args=(there / "out", int(case.setting["ms"]), workers[0]), daemon=True
                )
                killer.start()
                wrong += ended(process).wrong()
            finally:
                os.killpg(cluster.pid, signal.SIGKILL)
        of_one, of_two = written(here / "out"), written(there / "out")
        names = sorted({name for name, _ in of_one.items() ^ of_two.items()})
        return wrong + ([f"files differ: {names[:5]}"] if names else [])


def kill_after(results: Path, ms: int, worker: int) -> None:
    """Kill a worker some time after the first result is there."""
    until = time.monotonic() + 60
    while not list(results.glob("chains/*/facts.json")) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(ms / 1_000)
    os.kill(worker, signal.SIGKILL)
