"""What several tests need: captures made from packets, and the program run as a user runs it."""

from __future__ import annotations

import gc
import importlib.util
import os
import struct
import subprocess
import sys
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from types import ModuleType

# A busy machine is slow, not wrong. A gate draws the same examples each time: it judges a change, not chance.
settings.register_profile("drawn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", parent=settings.get_profile("drawn"), derandomize=True)
settings.register_profile("many", parent=settings.get_profile("drawn"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "drawn"))

CLIENT, SERVER = "192.0.2.1", "198.51.100.7"
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
START_S = 1_700_000_000
STEP_MS = 10


@dataclass(frozen=True)
class Outcome:
    """How one run of the program ended."""

    status: int
    out: str
    err: str


def pytest_collection_finish() -> None:
    """Keep garbage collection from visiting what was imported and collected: half a million objects."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_process() -> Iterator[None]:
    """Work in this process where a test does not say `--jobs`: each new one imports all again."""
    with mock.patch("tfrctrace.runs.workers.default_jobs", return_value=1):
        yield


@pytest.fixture(scope="session")
def load_script() -> Callable[[Path], ModuleType]:
    """Return a function that imports a script that belongs to no package."""

    def load(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # dataclasses look their module up by name, and so does one script that imports another
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def conversation() -> Callable[..., list[bytes]]:
    """Return a function that makes the frames of a short, closed TCP connection."""
    from ip_packets import ethernet, maximum_segment_size, tcp

    def frames(port: int = 40_000, *, data_packets: int = 3, link_layer: bool = True) -> list[bytes]:
        client, server = (CLIENT, port), (SERVER, 80)

        def there(flags: str, seq: int, **more: Any) -> bytes:
            packet = tcp(client, server, flags, seq=seq, **more)
            return ethernet(packet, src=CLIENT_MAC, dst=SERVER_MAC) if link_layer else packet

        def back(flags: str, seq: int, ack: int, **more: Any) -> bytes:
            packet = tcp(server, client, flags, seq=seq, ack=ack, **more)
            return ethernet(packet, src=SERVER_MAC, dst=CLIENT_MAC) if link_layer else packet

        end = 1001 + 100 * data_packets
        made = [
            there("S", 1000, options=maximum_segment_size(1460)),
            back("SA", 5000, 1001, options=maximum_segment_size(1400)),
            there("A", 1001, ack=5001),
        ]
        for seq in range(1001, end, 100):
            made += [there("PA", seq, ack=5001, payload=b"x" * 100), back("A", 5001, seq + 100)]
        return [*made, there("FA", end, ack=5001), back("FA", 5001, end + 1), there("A", end + 1, ack=5002)]

    return frames


@pytest.fixture
def write_capture(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes frames into a pcap file, 10 ms apart if not told otherwise."""

    def write(
        name: str,
        frames: Iterable[bytes],
        *,
        link_type: int = 1,
        start_s: int = START_S,
        step_ms: int = STEP_MS,
        cut: int = 0,
    ) -> Path:
        """Write the capture; `cut` bytes are missing at its end."""
        content = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link_type))
        for number, frame in enumerate(frames):
            seconds, ms = divmod(number * step_ms, 1000)
            content += struct.pack("<IIII", start_s + seconds, ms * 1000, len(frame), len(frame)) + frame
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[: len(content) - cut])
        return path

    return write


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawings out of pages that this process writes: they take most of the time of a page."""
    monkeypatch.setattr("tfrctrace.reports.page.html.figure_svgs", lambda *_: [])


@contextmanager
def _standard_stream(name: str, number: int, content: bytes = b"") -> Iterator[IO[str]]:
    """Replace a standard stream by a file, for Python and for the core."""
    own = os.dup(number)
    try:
        with TemporaryFile("w+", errors="backslashreplace") as file, mock.patch.object(sys, name, file):
            file.buffer.write(content)
            file.seek(0)
            os.dup2(file.fileno(), number)
            yield file
    finally:
        os.dup2(own, number)
        os.close(own)


def _run_here(folder: Path, arguments: list[str], stdin: bytes) -> Outcome:
    from tfrctrace import cli

    with (
        chdir(folder),
        mock.patch.dict(os.environ, COLUMNS="80"),
        _standard_stream("stdin", 0, stdin),
        _standard_stream("stdout", 1) as out,
        _standard_stream("stderr", 2) as err,
    ):
        status = cli.run(arguments)
        for stream in (out, err):
            stream.seek(0)
        return Outcome(status, out.read(), err.read())


def _run_process(folder: Path, arguments: list[str], stdin: bytes, environment: dict[str, str]) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", "tfrctrace", *arguments],
        cwd=folder,
        input=stdin,
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="session")
def run_in() -> Callable[..., Outcome]:
    """Return a function that runs the program in the folder that it is given.

    It runs in this process, which takes a fraction of what a new one takes; but an environment that the
    interpreter or a plugin reads as it starts needs a process of its own.
    """

    def run_program(
        folder: Path, *arguments: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> Outcome:
        words = [str(argument) for argument in arguments]
        if environment is None:
            outcome = _run_here(folder, words, stdin)
        else:
            outcome = _run_process(folder, words, stdin, environment)
        assert "Traceback" not in outcome.err
        assert "internal error" not in outcome.err
        return outcome

    return run_program


@pytest.fixture
def run(run_in: Callable[..., Outcome], tmp_path: Path) -> Callable[..., Outcome]:
    """Return a function that runs the program in `tmp_path`."""
    return partial(run_in, tmp_path)


@pytest.fixture
def truth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The sums of what sending kernels logged, beside the captures in `tests/data/causes`."""
    monkeypatch.syspath_prepend(str(request.config.rootpath / "evaluation" / "kernel_farm"))
    import truth

    yield truth
    for name in ("truth", "scenario", "judge", "judge_bottlenecks", "judge_windows"):
        sys.modules.pop(name, None)
