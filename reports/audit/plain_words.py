"""An incident in one sentence for those who read no tables: who suffered, what, when, on whose side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.audit.signals import trouble_of
from tfrctrace.reports.audit.incident_tables import listed
from tfrctrace.reports.units import counted, enumerated, format_duration_s, format_stretch_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.signals import Place, Trouble
    from tfrctrace.metrics.audit.silence_proofs import SilenceKind
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.audit import FoundIncident

_SUFFERED: Final[Mapping[Trouble | None, str]] = {
    "delay": "waited for slow round trips",
    "loss": "lost packets",
    "connections": "could not connect",
    "requests": "got no answer to requests",
    "answers": "got slow answers",
    "names": "waited for names to be looked up",
    "ping": "lost pings",
    "radio": "had a bad radio link",
    None: "missed an objective",
}
_WHERE: Final[Mapping[Place, str]] = {
    "client side": "the trouble was between the capture and the clients",
    "server side": "the trouble was between the capture and the servers",
    "server": "the trouble was at the server",
    "link": "the link carried nothing",
    "capture": "the capture missed packets",
    "radio": "the trouble was the radio link",
    "load": "the link was full",
    "unknown": "the place of the trouble is not known",
}

_SILENCES: Final[Mapping[SilenceKind, str]] = {
    "link dead": "the link was dead, while the capture ran",
    "nobody there": "the link had packets, but none that the capture's filter lets through",
    "capture stopped": "the capture had stopped",
    "unknown": "the capture or the link stood still",
}


def plain_sentence(
    one: FoundIncident, near: Sequence[str] | None, objectives: Sequence[Objective], zone: TimeZone
) -> str:
    """Return who suffered from an incident, for how long, when and on whose side."""
    incident, where = one.incident, one.where
    when = format_stretch_ns(incident.begin_ns, incident.end_ns, zone)
    lasted = format_duration_s(incident.lasted_ns / 1e9)
    if incident.is_silence:
        kind = "unknown" if incident.silence is None else incident.silence.kind
        return f"Nothing was captured for {lasted}, {when}: {_SILENCES[kind]}."
    if where.place == "capture":
        return f"The capture missed packets for {lasted}, {when}: losses there may be its own."
    troubles: dict[Trouble | None, None] = dict.fromkeys(
        trouble_of(objectives[stretch.objective]) for stretch in incident.stretches
    )
    suffered = enumerated([_SUFFERED[trouble] for trouble in troubles])
    return f"{_who(where, near)} {suffered} for {lasted}, {when}: {_WHERE[where.place]}{_named(where)}."


def _who(where: Attribution, near: Sequence[str] | None) -> str:
    if where.scope in {"one host", "some hosts"}:
        return "One host" if len(where.hosts) == 1 else f"{len(where.hosts)} hosts"
    if where.scope in {"one server", "some servers"}:
        return f"Clients of {'one server' if len(where.hosts) == 1 else f'{len(where.hosts)} servers'}"
    return f"All {counted(len(near), 'client')}" if where.scope == "all hosts" and near else "Clients"


def _named(where: Attribution) -> str:
    return f" ({listed(where.hosts)})" if where.hosts else ""
