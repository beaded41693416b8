"""Captures whose clock jumps, stands, runs backwards or is of another century."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from case import Case
from consistent_sums import bounds, parsed
from program import lay
from traces import content, drawn_command, drawn_trace

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from program import Program

SECOND_NS: Final = 10**9
YEAR_NS: Final = 31_557_600 * SECOND_NS
JUMPS_NS: Final = (
    *(1, -1, SECOND_NS, -SECOND_NS, 86_400 * SECOND_NS, -3_600 * SECOND_NS),
    *(YEAR_NS, -YEAR_NS, 20 * YEAR_NS, -1_024 * 7 * 86_400 * SECOND_NS, 137 * YEAR_NS, 290 * YEAR_NS),
)
"""1,024 weeks is after how long the clock of GPS begins again."""
STARTS_NS: Final = (0, 1, 1_700_000_000 * SECOND_NS, 2**32 * SECOND_NS, 2**63 - 1, 2**63, 2**64 - 1)
HEADERS: Final = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}
MOST_PACKETS: Final = 300


class OddClocks:
    """Any times end in a designed status within bounds, and in values within theirs."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Share nothing."""

    def draw(self, chance: random.Random) -> Case:
        """Draw a capture, a command, and where its clock jumps."""
        trace = drawn_trace(chance)
        while content(trace)[:4] not in HEADERS:
            trace = drawn_trace(chance)
        command, options = drawn_command(chance)
        if chance.random() < 0.3:
            command, options = chance.choice((("flows",), ("groups",), ("metrics",))), (("--format", "json"),)
        jumps = {
            f"jump at {chance.randrange(40)}": chance.choice(JUMPS_NS) for _ in range(chance.randrange(4))
        }
        setting: dict[str, int | str] = {
            "trace": trace,
            "start": chance.choice(STARTS_NS),
            "step": chance.choice((0, 1, 10**6, 10**7, 3_600 * SECOND_NS)),
            **jumps,
        }
        return Case((*command, "trace.pcapng"), options, setting=setting)

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command on a capture with these times."""
        frames, link_type = frames_of(content(str(case.setting["trace"])))
        path = folder / "trace.pcapng"
        lay(path, pcapng(frames, link_type, times(case.setting, len(frames))))
        if case.command[0] == "compare":
            lay(folder / "trace.same", path.read_bytes())
        ended = program.run(case.line(), folder)
        wrong = ended.wrong()
        if ended.out[:1] == b"{":
            wrong += bounds(parsed(ended.out, wrong))
        return wrong


def frames_of(capture: bytes) -> tuple[list[bytes], int]:
    """Return the first frames of a pcap file, and their link type."""
    order = HEADERS[capture[:4]]
    (link_type,) = struct.unpack_from(f"{order}I", capture, 20)
    frames: list[bytes] = []
    at = 24
    while at + 16 <= len(capture) and len(frames) < MOST_PACKETS:
        (length,) = struct.unpack_from(f"{order}I", capture, at + 8)
        frames.append(capture[at + 16 : at + 16 + length])
        at += 16 + length
    return frames, link_type & 0xFFFF


def times(setting: Mapping[str, int | str], count: int) -> Iterator[int]:
    """Give the times of packets, in 64 bits."""
    now = int(setting["start"])
    for number in range(count):
        now += int(setting["step"]) + int(setting.get(f"jump at {number}", 0))
        yield now % 2**64


def pcapng(frames: list[bytes], link_type: int, times_ns: Iterator[int]) -> bytes:
    """Return a pcapng file with times in nanoseconds (draft-ietf-opsawg-pcapng, if_tsresol 9)."""
    resolution = struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
    made = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    made += block(1, struct.pack("<HHI", link_type, 0, 0) + resolution)
    for frame, time_ns in zip(frames, times_ns, strict=False):
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), len(frame))
        made += block(6, head + frame + bytes(-len(frame) % 4))
    return made


def block(kind: int, body: bytes) -> bytes:
    """Return a block of pcapng."""
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)
