"""Congestion controls of the user's own among those that may have sent a flow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripted_sender import Bottleneck, Connection, Sender, write

import tfrctrace
from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]

OWN = """
from tfrctrace.replay.tcp.window import WindowControl


class MyControl(WindowControl):
    def avoid_congestion(self, share):
        self.cwnd += 2 * share

    def after_loss(self):
        return 0.4 * self.cwnd


class Failing(MyControl):
    def avoid_congestion(self, share):
        raise RuntimeError("no window")


class Endless(MyControl):
    def avoid_congestion(self, share):
        self.cwnd = float("nan")


class Other:
    pass
"""


@dataclass
class Two(Sender):
    """Grows by two segments in each round trip, and keeps 0.4 of its window: HighSpeed would keep more."""

    def on_acknowledged(self, time_s: float, flight: int) -> None:
        for _ in range(1 if self.cwnd < self.ssthresh else 2):
            super().on_acknowledged(time_s, flight)

    def on_loss(self, time_s: float) -> None:
        del time_s
        self.cwnd = self.ssthresh = 0.4 * self.cwnd


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture of a sender with the rules of `MyControl`."""
    made = Connection(Two(), Bottleneck()).run(40.0)
    return write(tmp_path_factory.mktemp("sent") / "sender.pcap", made.frames)


@pytest.fixture
def capture(sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return that capture, from a folder that has `MyControl`."""
    (tmp_path / "control_of_mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return sent


def test_a_flow_is_named_by_a_control_of_the_users_own(capture: Path, run: Callable[..., Any]) -> None:
    (usual,) = tfrctrace.open(capture).why()
    (found,) = tfrctrace.open(capture).why(["control_of_mine:MyControl"])
    assert usual.congestion_control is None
    assert found.congestion_control == "control_of_mine:MyControl"
    assert found.window_left == pytest.approx(0.4, abs=0.02)
    assert (found.predicted_rounds or 0) > 0.9 * (found.compared_rounds or 0)
    said = run("why", "--algorithm", "control_of_mine:MyControl", str(capture))
    assert "behaves like control_of_mine:MyControl" in " ".join(said.out.split())


def test_other_senders_are_not_named_by_it(capture: Path) -> None:
    del capture
    trace = tfrctrace.open(ROOT / "sample_traces" / "two-flows.pcapng.gz")
    named = {
        one.congestion_control for one in trace.why(["control_of_mine:MyControl"]) if one.congestion_control
    }
    assert named == {one.congestion_control for one in trace.why() if one.congestion_control}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("control_of_mine:Other", "is not a congestion control with a window"),
        ("control_of_mine:Missing", "cannot be loaded"),
        ("control_of_mine:Failing", "failed: no window"),
        ("control_of_mine:Endless", "failed: "),
    ],
)
def test_one_that_cannot_take_part_is_an_error(capture: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tfrctrace.open(capture).why([name])
