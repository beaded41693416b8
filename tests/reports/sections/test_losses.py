"""Losses in a report: the table, its dashes, and the sentences of the summary."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_case import CorpusCase

import tfrctrace
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.page.html import render
from tfrctrace.reports.report_content import MOST_FLOWS, prepare
from tfrctrace.reports.sections.losses import losses_section, retransmission_causes, upstream_losses

CAPTURES = Path(__file__).parent.parent.parent / "data" / "captures"

SENDER = {
    "vantage": "sender",
    "vantage_confidence": 0.96,
    "fast_retransmissions": 0,
    "sack_retransmissions": 0,
    "rto_retransmissions": 0,
    "tail_loss_probes": 0,
    "unexplained_retransmissions": 0,
    "syn_retransmissions": 0,
    "fin_retransmissions": 0,
    "spurious_retransmissions": 0,
    "network_duplicates": 0,
    "capture_duplicates": 0,
    "lost_behind_capture": 0,
}
"""What a capture at the sender shows of a direction without trouble; the rest is null."""

RECEIVER = {
    "vantage": "receiver",
    "vantage_confidence": 0.88,
    "spurious_retransmissions": 0,
    "reordered_packets": 0,
    "lost_before_capture": 0,
}
"""The same at the receiver."""


def losses_of(trace):
    return losses_section(prepare(trace.results()))


def cells(trace):
    """Give each row of the table as text and second line by heading."""
    (table,) = losses_of(trace).tables
    labels = [heading.label for heading in table.headings]
    return [
        dict(zip(labels, ((cell.text, cell.back) for cell in row.cells), strict=True)) for row in table.rows
    ]


def sentences_of(trace):
    (words,) = retransmission_causes(trace.flows)
    return str(words)


def test_nothing_lost_means_no_section(small_trace):
    section = losses_of(small_trace().flow(1, **SENDER).flow(2, **RECEIVER))
    assert section.tables == section.paragraphs == ()


def test_only_directions_with_trouble_have_a_row_largest_first(small_trace):
    trace = small_trace()
    trace.flow(1, **SENDER | {"fast_retransmissions": 1}, wire_bytes=10)
    trace.flow(2, **SENDER, wire_bytes=30)
    trace.flow(3, **RECEIVER | {"lost_before_capture": 2}, wire_bytes=20)
    assert [row["Flow"][0] for row in cells(trace)] == ["3", "1"]


def test_copies_in_the_capture_are_no_trouble(small_trace):
    assert not losses_of(small_trace().flow(1, **SENDER | {"capture_duplicates": 9})).tables


def test_what_the_place_of_the_capture_hides_is_a_dash_and_none_is_0(small_trace):
    trace = small_trace()
    trace.flow(1, **SENDER | {"fast_retransmissions": 1, "lost_behind_capture": 1}, wire_bytes=2)
    trace.flow(2, **RECEIVER | {"lost_before_capture": 2, "loss_events": 1, "loss_event_rate": 0.0125})
    there, here = sorted(cells(trace), key=lambda row: row["Flow"])
    assert (there["Fast"], there["SACK"], there["Reordered"]) == (("1", ""), ("0", ""), ("–", ""))
    assert (there["Lost before"][0], there["Lost behind"][0]) == ("–", "1")
    assert there["Captured at"] == ("sender", "96 % confidence")
    assert (here["Fast"][0], here["Reordered"][0], here["Lost before"][0]) == ("–", "0", "2")
    assert here["Loss events"] == ("1", "1.25 %")
    assert here["Captured at"] == ("receiver", "88 % confidence")


def test_a_place_that_is_unknown_is_a_dash(small_trace):
    trace = small_trace().flow(
        1, **SENDER | {"vantage": None, "vantage_confidence": None, "lost_behind_capture": 1}
    )
    assert cells(trace)[0]["Captured at"] == ("–", "")


def test_rare_classes_have_a_column_where_there_are_any(small_trace):
    row = SENDER | {"rto_retransmissions": 3, "timeouts": 2}
    (plain,) = cells(small_trace().flow(1, **row))
    assert not {"Probe", "Unexplained", "SYN, FIN", "Duplicated", "Copies"} & set(plain)
    assert plain["Timeout"] == ("3", "in 2 timeouts")
    row |= {
        "tail_loss_probes": 1,
        "syn_retransmissions": 1,
        "fin_retransmissions": 1,
        "network_duplicates": 4,
    }
    (rich,) = cells(small_trace().flow(1, **row))
    assert [rich[label][0] for label in ("Probe", "SYN, FIN", "Duplicated")] == ["1", "2", "4"]


def test_the_table_is_bounded_and_says_so(small_trace):
    trace = small_trace()
    for flow in range(1, MOST_FLOWS + 3):
        trace.flow(flow, **SENDER | {"fast_retransmissions": 1})
    (table,) = losses_of(trace).tables
    assert len(table.rows) == MOST_FLOWS
    assert "the 1,000 largest of 1,002 directions" in table.caption


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"fast": 1}, "The only retransmission was fast."),
        ({"sack": 2}, "Both retransmissions were by SACK."),
        (
            {"sack": 86, "rto": 37, "spurious": 3},
            "86 were by SACK and 37 after timeouts; 3 were spurious.",
        ),
        (
            {"fast": 1, "sack": 1, "rto": 1},
            "Of 3 retransmissions 1 was fast, 1 by SACK and 1 after a timeout.",
        ),
        ({"rto": 1, "spurious": 1}, "The only retransmission was after a timeout; it was spurious."),
        ({"fast": 2, "spurious": 1}, "Both retransmissions were fast; 1 was spurious."),
        ({"unexplained": 2, "spurious": 2}, "Both retransmissions were unexplained; all were spurious."),
    ],
)
def test_the_causes_of_retransmissions_are_named(small_trace, counts, words):
    row = SENDER | {f"{name}_retransmissions": count for name, count in counts.items()}
    assert sentences_of(small_trace().flow(1, **row)).endswith(words)


def test_one_known_cause_is_not_called_the_only_retransmission(small_trace):
    trace = small_trace().flow(1, **SENDER | {"tail_loss_probes": 1})
    trace.flow(2, **RECEIVER | {"retransmitted_packets": 45})
    assert (
        sentences_of(trace) == "Where the capture shows the cause: one retransmission was a tail loss probe."
    )


def test_directions_that_hide_the_cause_are_owned_up_to(small_trace):
    trace = small_trace().flow(1, **SENDER | {"tail_loss_probes": 5})
    trace.flow(2, **RECEIVER | {"lost_before_capture": 6})
    assert sentences_of(trace) == (
        "Where the capture shows the cause: all 5 retransmissions were tail loss probes."
    )


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 0), ()),
        (
            (21, 0),
            ("No TCP packet is known to be lost before the capture point; 21 packets were reordered.",),
        ),
        ((0, 1), ("At least 1 TCP packet was lost before the capture point.",)),
        ((3, 27), ("At least 27 TCP packets were lost before the capture point, and 3 were reordered.",)),
    ],
)
def test_what_happened_on_the_way_is_put_in_words(small_trace, counts, words):
    reordered, lost = counts
    row = RECEIVER | {"reordered_packets": reordered, "lost_before_capture": lost}
    assert upstream_losses(small_trace().flow(1, **row).flow(2, **SENDER).flows) == words


def test_no_repeats_at_the_receiver_are_not_passed_off_as_no_losses(small_trace):
    trace = small_trace().source().flow(1, **RECEIVER | {"lost_before_capture": 27})
    summary = build_report(trace.results(), title="t").sections[0]
    finding = [str(words[0]) for words in summary.findings]
    assert "At least 27 TCP packets were lost before the capture point." in finding
    assert not any(words.startswith("None of the") for words in finding)
    (fact,) = (fact for fact in summary.facts if fact.label == "TCP retransmissions")
    assert fact.detail == "0 of 10 TCP data segments, as captured"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # the relay's log: nothing dropped; the sender's kernel: one retransmission, undone by D-SACK
        (
            "linux-relay-reorder-noloss-rcv",
            "No TCP packet is known to be lost before the capture point; 21 packets",
        ),
        ("linux-relay-reorder-noloss-snd", "The only retransmission was fast; it was spurious."),
        # the relay's log: 26 dropped
        ("linux-relay-loss-snd", "Of 26 retransmissions "),
    ],
)
def test_real_captures_are_reported_as_the_relay_logged_them(name, words):
    flows = tfrctrace.open(CAPTURES / f"{name}.pcap.gz").flows
    assert any(words in str(finding) for finding in (*retransmission_causes(flows), *upstream_losses(flows)))


@pytest.mark.parametrize("case", ["window-lost", "random-heavy", "routed", "tail-three", "outage"])
def test_as_many_retransmissions_are_reported_as_the_kernel_made(case, tmp_path):
    made = CorpusCase(case).counters["snd"]["TcpRetransSegs"]
    (words,) = retransmission_causes(tfrctrace.open(CorpusCase(case).unpack("snd", tmp_path)).flows)
    assert str(words).startswith(f"Of {made} retransmissions ")


def test_the_page_has_the_section_and_escapes_what_a_trace_says(small_trace):
    trace = small_trace().source().flow(1, **SENDER | {"lost_behind_capture": 1}, src="<b>&evil</b>")
    page = render(build_report(trace.results(), title="t"))
    assert 'href="#losses"' in page
    assert 'id="losses-1-fwd"' in page
    assert "&lt;b&gt;&amp;evil" in page
    assert "<b>" not in page
