"""A child below a memory limit that does nothing but fail to allocate is ended, and no other."""

import subprocess
import sys

import pytest

CHILD = """
import mmap, os, resource, sys, time
from tfrctrace.base import memory_limit

memory_limit._LOOK_S = 0.2
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

def run():
    held, size = [], 1 << 26 if sys.argv[1] != "free" else 0
    while size >= 1 << 16:
        try:
            held.append(mmap.mmap(-1, size))
        except (OSError, MemoryError):
            size //= 2
    until = time.monotonic() + 2
    while time.monotonic() < until:
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
        [sys.executable, "-c", CHILD, does], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "SIGKILL\n" if status else "", "")
