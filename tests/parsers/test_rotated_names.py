"""Files of a rotated capture that were not joined are noted."""

import pytest

from tfrctrace.parsers.rotated_names import rotated_files

HOUR_NS = 3_600 * 10**9


def sources(*spans):
    return [{"source": f"{n}", "start_ns": begin, "end_ns": end} for n, (begin, end) in enumerate(spans)]


HOURS = [(n * HOUR_NS + 5 * 10**9, (n + 1) * HOUR_NS - 10**9) for n in range(3)]
NAMES = ["a/link-2026010500.pcap", "a/link-2026010501.pcap", "a/link-2026010502.pcap"]


def test_hours_one_after_the_other_look_like_one_capture():
    note = rotated_files(NAMES, sources(*HOURS))
    assert note["severity"] == "note"
    assert "--join" in note["hint"]


@pytest.mark.parametrize(
    ("names", "spans"),
    [
        (NAMES[:2], HOURS[:2]),  # two may be anything
        (["a/link-1.pcap", "a/run-2.pcap", "a/link-3.pcap"], HOURS),
        (NAMES, [HOURS[0], HOURS[0], HOURS[1]]),  # at the same time: interfaces
        (NAMES, [HOURS[0], HOURS[2], (9 * HOUR_NS, 10 * HOUR_NS)]),  # runs with pauses
        (NAMES, [HOURS[0], HOURS[1], (None, None)]),
    ],
)
def test_other_files_do_not(names, spans):
    assert rotated_files(names, sources(*spans)) is None
