"""Find rate algorithms by name: built in, from other packages, or `module:Class`."""

from __future__ import annotations

from dataclasses import dataclass, field
from inspect import isclass
from typing import TYPE_CHECKING, Final, cast

from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal_or_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.replay.controller import Controller, MakeController, Start

CONTROLLERS: Final = "tfrctrace.controllers"
"""Entry point group; each entry point is a class."""

MTFRC: Final = "mtfrc"
"""TFRC within the bounds of the 802.11 MAC."""

METHODS: Final = ("on_feedback", "on_nofeedback")


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm by name, with the class of its controllers."""

    name: str
    make: MakeController
    settings: Mapping[str, float | str] = field(default_factory=dict)
    """Parameters that differ from their defaults."""

    @property
    def has_window(self) -> bool:
        """Whether it is a window control, of which an open loop predicts each decision."""
        from tfrctrace.replay.tcp.window import WindowControl

        return isclass(self.make) and issubclass(self.make, WindowControl)

    def begin(self, start: Start) -> Controller:
        """Return a controller for a flow."""
        return self.make(start, **self.settings)


BUILT_IN: Final[dict[str, str]] = {
    "newreno": "tfrctrace.replay.tcp.newreno:NewReno",
    "sack": "tfrctrace.replay.tcp.sack:Sack",
    "vegas": "tfrctrace.replay.tcp.vegas:Vegas",
    "veno": "tfrctrace.replay.tcp.veno:Veno",
    "modified-veno": "tfrctrace.replay.tcp.modified_veno:ModifiedVeno",
    "westwood": "tfrctrace.replay.tcp.westwood:Westwood",
    "cubic": "tfrctrace.replay.tcp.cubic:Cubic",
    "dctcp": "tfrctrace.replay.tcp.dctcp:Dctcp",
    "bic": "tfrctrace.replay.tcp.bic:Bic",
    "highspeed": "tfrctrace.replay.tcp.high_speed:HighSpeed",
    "htcp": "tfrctrace.replay.tcp.htcp:Htcp",
    "hybla": "tfrctrace.replay.tcp.hybla:Hybla",
    "illinois": "tfrctrace.replay.tcp.illinois:Illinois",
    "lp": "tfrctrace.replay.tcp.low_priority:LowPriority",
    "nv": "tfrctrace.replay.tcp.nv:Nv",
    "scalable": "tfrctrace.replay.tcp.scalable:Scalable",
    "yeah": "tfrctrace.replay.tcp.yeah:Yeah",
    "bbr": "tfrctrace.replay.tcp.bbr:Bbr",
}
"""Built-in controllers in Python by name, as `module:Class`; TFRC's are in the core."""


def algorithm_named(name: str, *, others: Sequence[str] = ()) -> Algorithm:
    """Return the algorithm `name`; raises `UsageError` if it does not exist or is not a controller.

    `others` are names of further algorithms, for the hint.
    """
    if ":" in name:
        return Algorithm(name, _controller(name, name))
    if name in BUILT_IN:
        return Algorithm(name, _controller(name, BUILT_IN[name]))
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=CONTROLLERS, name=name):
        return Algorithm(name, _controller(name, entry_point.value))
    known = [*others, *algorithm_names()]
    raise UsageError(
        f"unknown algorithm `{name}`",
        hint=f"{proposal_or_all(name, known, 'known:')}, or your own as `mymodule:MyControl`",
    )


def algorithm_names() -> list[str]:
    """Return the names of all controllers in Python."""
    from importlib.metadata import entry_points

    return sorted({*BUILT_IN, *entry_points(group=CONTROLLERS).names})


def _controller(name: str, path: str) -> MakeController:
    """Return the controller class at `path`, as `module:Class`."""
    from tfrctrace.base.user_code import load_class

    found = load_class(path)
    missing = [method for method in METHODS if not callable(getattr(found, method, None))]
    if missing:
        raise UsageError(
            f"the algorithm `{name}` has no `{missing[0]}`",
            hint="an algorithm must be a class with the methods of `tfrctrace.replay.controller.Controller`",
        )
    return cast("MakeController", found)
