"""What a silence was, by the files and the other links of its capture point."""

from dataclasses import replace

import pytest

from tfrctrace.metrics.audit.silence_proofs import FileExtent, edges_ns, silence_facts

HOUR = 3_600


def files(*spans: tuple[int, int] | None, numbers: tuple[int, ...] | None = None) -> list[FileExtent]:
    """Return files of these hours; None is a file without packets."""
    given = numbers or (None,) * len(spans)
    return [
        FileExtent(number, *((None, None) if span is None else (span[0] * HOUR, span[1] * HOUR)))
        for number, span in zip(given, spans, strict=True)
    ]


@pytest.mark.parametrize(
    ("given", "others", "kind", "proofs"),
    [
        # rotated files without packets: the capture ran
        (files((0, 1), (1, 2), None, None, (4, 5)), [], "link dead", ["empty files"]),
        # one of four hours is no proof for the rest
        (files((0, 1), (1, 2), None, (6, 7), (7, 8)), [], "unknown", []),
        # a packet of no host, such as ARP, within it
        (files((0, 1), (1, 2), (3, 3), (4, 5)), [], "link dead", ["other packets"]),
        (files((0, 1), (1, 5)), [], "link dead", ["one file"]),
        (files((0, 1), (1, 2), (4, 5), numbers=(1, 2, 5)), [], "capture stopped", ["missing files"]),
        (files((0, 1), (1, 2), (4, 5), numbers=(1, 2, 3)), [], "unknown", []),
        (files((0, 1), (1, 2), (4, 5)), [False], "capture stopped", ["all links silent"]),
        (files((0, 1), (1, 2), (4, 5)), [False, True], "unknown", ["other links"]),
        # what the capture itself shows is stronger
        (files((0, 1), (1, 2), None, None, (4, 5)), [False], "link dead", ["empty files"]),
        (files((0, 1), (1, 5)), [False], "capture stopped", ["one file", "all links silent"]),
        (files(), [], "unknown", []),
    ],
)
def test_a_silence_is_what_its_proofs_say(given, others, kind, proofs):
    starts_ns = [file.start_ns for file in given if file.start_ns is not None and file.start_ns > 3 * HOUR]
    found = silence_facts(2 * HOUR, min(starts_ns, default=4 * HOUR), given, others)
    assert (found.kind, list(found.proofs)) == (kind, proofs)


def test_what_a_filter_refused_may_have_passed():
    given = [replace(file, is_filtered=True) for file in files((0, 1), (1, 5))]
    found = silence_facts(2 * HOUR, 4 * HOUR, given, [])
    assert (found.kind, found.proofs) == ("nobody there", ("one file", "capture filter"))
    # a filter alone does not show that the capture ran
    apart = [replace(file, is_filtered=True) for file in files((0, 1), (1, 2), (4, 5))]
    assert silence_facts(2 * HOUR, 4 * HOUR, apart, []).kind == "unknown"
    # nor does that of an earlier capture tell anything
    earlier = [replace(apart[0], start_ns=0, end_ns=1), *files((0, 1), (1, 2), (3, 3), (4, 5))]
    found = silence_facts(2 * HOUR, 4 * HOUR, earlier, [])
    assert (found.kind, found.proofs) == ("link dead", ("other packets",))


def test_a_silence_begins_and_ends_with_its_files():
    given = [FileExtent(None, 0, 3_500), FileExtent(None, 3_500, 7_000), FileExtent(None, 9_100, 12_000)]
    assert edges_ns(7_200, 9_000, 300, given) == (7_000, 9_100)
    # a file that goes on does not show when its packets stopped
    assert edges_ns(7_200, 9_000, 300, [*given[:2], FileExtent(None, 7_000, 12_000)]) == (7_200, 9_000)
    # one that ends long before does not, either
    assert edges_ns(7_200, 9_000, 100, given) == (7_200, 9_000)
