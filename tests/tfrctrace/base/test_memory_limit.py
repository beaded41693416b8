"""A child below a memory limit that does nothing but fail to allocate is ended, and no other."""

import subprocess
import sys

import pytest
from patience import PATIENCE_S

CHILD = """
import mmap, os, resource, sys, time
from tfrctrace.base import memory_limit

memory_limit._LOOK_S, memory_limit._SPENT_S = 0.05, 0.1
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

def run():
    held, size = [], 1 << 26 if sys.argv[1] != "free" else 0
    while size >= 1 << 16:
        try:
            held.append(mmap.mmap(-1, size))
        except (OSError, MemoryError):
            size //= 2
    # several times as long as the looks take, by the clock that judges; one that is to be ended waits for it
    clock = time.monotonic if sys.argv[1] == "sleeps" else time.process_time
    until = clock() + (1 if sys.argv[1] != "fails" else 600)
    while clock() < until:
        if sys.argv[1] == "computes":
            sum(range(1000))
        elif sys.argv[1] == "sleeps":
            time.sleep(0.1)
        else:
            os.stat("/proc/self/status")
            os.listdir("/proc")
        if sys.argv[1] == "reads":
            with open("/proc/self/stat", "rb", buffering=0) as file:
                file.read()
    return 0

sys.exit(memory_limit.run_in_child(run, lambda by: print(by) or 71))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
@pytest.mark.parametrize(
    ("does", "status"), [("fails", 71), ("free", 0), ("computes", 0), ("sleeps", 0), ("reads", 0)]
)
def test_only_a_starved_child_is_ended(does, status):
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, does], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "SIGKILL\n" if status else "", "")
