"""The constants of one 802.11 network, from presets and settings of the user."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.wlan.phy import CW_MIN, MAC_BYTES, make_phy
from tfrctrace.wlan.rates import Dsss, Ht, Ofdm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.wlan.contention import JamMode
    from tfrctrace.wlan.phy import Band, Phy, Standard, Timing, Width
    from tfrctrace.wlan.rates import Preamble, Rate

Preset = Literal["standard", "paper"]
Layer = Literal["payload", "mpdu"]
"""Bits that a rate counts: S_t of each frame, or all S."""

ACK_BITS: Final = 112
CTS_BITS: Final = 112
MAX_MPDU_BITS: Final = 8 * 2346
"""The largest frame without aggregation, with MAC header and FCS."""
MAX_CW_MIN: Final = 32_767

IP_UDP_BYTES: Final = 28
LLC_SNAP_BYTES: Final = 8

PAPER_OVERHEAD_BITS: Final = 422
"""S - S_t of [Z], found by fitting: S = 8614 for a payload of 1024 bytes. No whole header explains it."""

_OFDM_MANDATORY_MBPS: Final = (6.0, 12.0, 24.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSettings:
    """A user's settings of a network; None takes the value of the preset or the standard."""

    preset: Preset | None = None
    phy: Standard | None = None
    preamble: Preamble | None = None
    band: Band | None = None
    width: Width | None = None
    short_gi: bool | None = None
    payload_bytes: int | None = None
    overhead_bits: int | None = None
    cw_min: int | None = None
    ack_rate: str | None = None
    basic_rates: tuple[str, ...] | None = None
    cts_rate: str | None = None
    jam: JamMode | None = None
    jam_backoff: bool | None = None

    def or_else(self, others: CellSettings) -> CellSettings:
        """Return these settings, completed by those of `others`."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(others, **{name: value for name, value in given.items() if value is not None})


PRESETS: Final[Mapping[Preset, CellSettings]] = {
    "standard": CellSettings(payload_bytes=1024, jam="pairwise", jam_backoff=False),
    "paper": CellSettings(
        payload_bytes=1024,
        jam="heusse2",
        jam_backoff=False,
        ack_rate="11",
        cw_min=32,
        overhead_bits=PAPER_OVERHEAD_BITS,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The constants of one network, made by `make_cell`."""

    preset: Preset
    phy: Phy
    payload_bytes: int
    overhead_bits: int
    cw_min: int
    ack_rate: Rate | None
    """Rate of all ACKs; None if each is at the highest basic rate that its frame permits."""
    basic_rates: tuple[Rate, ...]
    cts_rate: Rate | None
    """Rate of a CTS-to-self before OFDM frames; None without this protection."""
    jam: JamMode
    jam_backoff: bool
    """Whether t_cont is part of the times that t_jam is taken from."""

    @property
    def s_t_bits(self) -> int:
        """S_t: payload of a full frame, in bits."""
        return 8 * self.payload_bytes

    @property
    def s_bits(self) -> int:
        """S: a full frame (MPDU with FCS), in bits."""
        return self.s_t_bits + self.overhead_bits

    @property
    def bounds_count(self) -> Layer:
        """Layer whose bytes MTFRC's bounds count: [Z] uses S/T in place of X_t."""
        return "mpdu" if self.preset == "paper" else "payload"

    def ack_rate_for(self, rate: Rate) -> Rate:
        """Return the rate of a frame's ACK: the fixed one, else the highest basic rate up to the frame's.

        If no basic rate is that low, it is the highest mandatory rate up to the frame's.
        """
        if self.ack_rate:
            return self.ack_rate
        alike = Dsss if isinstance(rate, Dsss) else Ofdm
        basic = [basic_rate for basic_rate in self.basic_rates if isinstance(basic_rate, alike)]
        return _highest_up_to(rate.reference_mbps, basic) or self._mandatory_rate_for(rate)

    def overhead_us(self, rate: Rate, timing: Timing) -> float:
        """Return T_ov in µs: DIFS + preamble + SIFS + ACK, and a CTS-to-self and SIFS if there is one."""
        protection_us = 0.0
        if self.cts_rate and not isinstance(rate, Dsss):
            protection_us = self.cts_rate.frame_us(CTS_BITS) + timing.sifs_us
        ack_us = self.ack_rate_for(rate).frame_us(ACK_BITS)
        return timing.difs_us + protection_us + rate.preamble_us + timing.sifs_us + ack_us

    def _mandatory_rate_for(self, rate: Rate) -> Rate:
        if isinstance(rate, Dsss):  # all four are mandatory
            return rate
        mbps = max(mbps for mbps in _OFDM_MANDATORY_MBPS if mbps <= rate.reference_mbps)
        return self.phy.rate(f"{mbps:g}")


def _highest_up_to(mbps: float, rates: Sequence[Rate]) -> Rate | None:
    return max((rate for rate in rates if rate.mbps <= mbps), key=lambda rate: rate.mbps, default=None)


def make_cell(settings: CellSettings) -> Cell:
    """Return the network with these settings. Raises `UsageError` if they contradict each other."""
    preset = settings.preset or "standard"
    chosen = settings.or_else(PRESETS[preset])
    standard = chosen.phy or "b"
    if preset == "paper" and standard != "b":
        raise UsageError(
            f"the preset `paper` supports 802.11b only, not 802.11{standard}",
            hint="use the preset `standard` for a, g and n",
        )
    phy = make_phy(
        standard, preamble=chosen.preamble, band=chosen.band, width=chosen.width, short_gi=chosen.short_gi
    )
    if chosen.ack_rate is not None and chosen.basic_rates is not None:
        raise UsageError("basic rates have no effect when all ACKs have one rate")
    if chosen.cts_rate is not None and (standard == "b" or phy.band == "5"):
        raise UsageError("CTS-to-self needs OFDM frames beside 802.11b stations")
    return Cell(
        preset=preset,
        phy=phy,
        payload_bytes=_payload(chosen.payload_bytes),
        overhead_bits=_overhead(chosen, standard),
        cw_min=_contention_window(CW_MIN[standard] if chosen.cw_min is None else chosen.cw_min),
        ack_rate=None if chosen.ack_rate is None else _control_rate(phy, chosen.ack_rate),
        basic_rates=tuple(_control_rate(phy, name) for name in chosen.basic_rates or phy.basic_rates),
        cts_rate=None if chosen.cts_rate is None else _dsss_rate(phy, chosen.cts_rate),
        jam=chosen.jam or "pairwise",
        jam_backoff=bool(chosen.jam_backoff),
    )


def _payload(payload_bytes: int | None) -> int:
    if payload_bytes is None or payload_bytes < 1:
        raise UsageError(f"a payload of {payload_bytes} bytes is invalid", hint="give at least 1 byte")
    return payload_bytes


def _overhead(chosen: CellSettings, standard: Standard) -> int:
    """Return S - S_t in bits; default: IPv4, UDP, LLC/SNAP and MAC headers."""
    bits = chosen.overhead_bits
    if bits is None:
        bits = 8 * (IP_UDP_BYTES + LLC_SNAP_BYTES + MAC_BYTES[standard])
    if bits < 0:
        raise UsageError(f"headers cannot have {bits} bits")
    if 8 * (chosen.payload_bytes or 0) + bits > MAX_MPDU_BITS:
        raise UsageError(
            f"{chosen.payload_bytes} bytes of payload and {bits / 8:g} of headers do not fit in a frame",
            hint=f"without aggregation a frame has at most {MAX_MPDU_BITS // 8} bytes",
        )
    return bits


def _contention_window(cw_min: int) -> int:
    if not 1 <= cw_min <= MAX_CW_MIN:
        raise UsageError(f"CWmin cannot be {cw_min}", hint=f"it must be from 1 to {MAX_CW_MIN}")
    return cw_min


def _control_rate(phy: Phy, name: str) -> Rate:
    rate = phy.rate(name)
    if isinstance(rate, Ht):
        raise UsageError(f"ACKs are not sent at `{name}`", hint="ACKs are not HT frames; give a rate in Mb/s")
    return rate


def _dsss_rate(phy: Phy, name: str) -> Rate:
    rate = phy.rate(name)
    if not isinstance(rate, Dsss):
        raise UsageError(
            f"stations of 802.11b cannot read a CTS at `{name}`", hint="give one of 1, 2, 5.5 and 11"
        )
    return rate
