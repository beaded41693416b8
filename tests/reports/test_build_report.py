"""What a report says: the sentences, the key figures, and what it leaves out."""

from __future__ import annotations

import pytest

from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.drawn_traces import MOST_TRACES
from tfrctrace.reports.elements import OTHER, STYLES, Name, Report, Section
from tfrctrace.reports.report_content import MOST_FLOWS


def report_on(trace, **options) -> Report:
    return build_report(trace.results(**options), title="t")


def section(report: Report, key: str) -> Section:
    return next(section for section in report.sections if section.key == key)


def keys(report: Report) -> list[str]:
    return [section.key for section in report.sections]


def plain(words) -> str:
    return "".join(word.text if isinstance(word, Name) else word for word in words)


def findings(report: Report) -> str:
    return "\n".join(plain(words) for words in section(report, "summary").findings)


def notes(report: Report) -> list[tuple[str, str]]:
    return [
        (note.severity, f"{plain(note.words)} {note.detail}") for note in section(report, "caveats").notes
    ]


def test_the_summary_comes_first_and_the_method_last(two_flows):
    report = report_on(two_flows)
    assert keys(report) == [
        "summary",
        "why",
        "flows",
        "throughput",
        "sequence",
        "rtt",
        "caveats",
        "inputs",
        "definitions",
    ]


def test_the_opening_says_what_was_captured_and_when(two_flows):
    paragraphs = [plain(words) for words in section(report_on(two_flows), "summary").paragraphs]
    assert paragraphs == [
        "a.pcap holds 50 packets in 3 flows: 2 TCP and 1 UDP.",
        "The first packet is at 2023-11-14 22:13:20.000 UTC, the last one 1.00 s later.",
    ]


def test_a_simulation_and_a_capture_do_not_last_half_a_century(small_trace):
    trace = small_trace().flow(1).flow(2, source="b.tr", start_ns=0, end_ns=3 * 10**9)
    trace.source(packets=20).source(source="b.tr", format="ns2", start_ns=0, end_ns=3 * 10**9)
    summary = section(report_on(trace), "summary")
    assert "The inputs cover 2 separate periods" in plain(summary.paragraphs[-1])
    facts = {fact.label: fact for fact in summary.facts}
    assert (facts["Duration"].value, facts["Duration"].detail) == ("4.00 s", "2 separate periods")
    # 20 of the capture and 10 that the simulated flow sent
    assert facts["On the wire"].detail.endswith("; 30 packets in 2 flows")


@pytest.mark.parametrize(("joined", "duration"), [(False, "3.00 s"), (True, "5.00 s")])
def test_time_between_two_inputs_counts_if_they_are_one_trace(small_trace, joined, duration):
    trace = small_trace().flow(1)
    for name, (first_s, last_s) in {"a.pcap": (0, 1), "b.pcap": (0, 2), "c.pcap": (4, 5)}.items():
        trace.source(source=name, start_ns=first_s * 10**9, end_ns=last_s * 10**9)
    facts = section(report_on(trace, joined=joined), "summary").facts
    assert [fact.value for fact in facts if fact.label == "Duration"] == [duration]


def test_the_largest_flow_counts_both_directions(two_flows):
    # 41000 of 61000 bytes
    assert "flow 1 (10.0.0.1:40000 → 10.0.0.2:80): 41.0 kB on the wire, 67.2 % of the bytes" in findings(
        report_on(two_flows)
    )


def test_retransmissions_are_a_share_of_tcp_data_segments_only(two_flows):
    # flow 1 and 2 have 10 data segments each, UDP has no say
    assert "1 of 20 TCP data segments was retransmitted (5.00 %)" in findings(report_on(two_flows))


def test_the_flow_that_lost_most_is_named_if_its_share_means_something(small_trace):
    trace = small_trace().source()
    trace.flow(1, data_segments=10, retransmitted_segments=5)
    trace.flow(2, data_segments=1000, retransmitted_segments=20)
    trace.flow(3, data_segments=1000, retransmitted_segments=10)
    assert "most in flow 2 (2.00 %)" in findings(report_on(trace))


def test_no_retransmission_is_put_in_words(small_trace):
    assert "None of the 10 TCP data segments was retransmitted." in findings(
        report_on(small_trace().source().flow(1))
    )


def test_rtt_of_the_largest_flow_is_put_in_words(two_flows):
    assert "flow 1 was between 40.0 ms and 60.0 ms, 95 % of its 20 samples at or below 55.0 ms." in findings(
        report_on(two_flows)
    )


def test_rtt_from_the_receiver_is_not_passed_off_as_the_path(small_trace):
    rtts = {"rtt_samples": 3, "rtt_min_ms": 1.0, "rtt_p50_ms": 1.0, "rtt_p95_ms": 2.0, "rtt_max_ms": 2.0}
    report = report_on(small_trace().source().flow(1, vantage="receiver", **rtts))
    assert "only the receiver's own delay" in findings(report)
    assert any("1 flow with round-trip times taken near the receiver" in text for _, text in notes(report))


@pytest.mark.parametrize(("median_ms", "near"), [(4.0, True), (4.2, False)])
def test_samples_much_shorter_than_the_handshake_are_not_those_of_the_path(small_trace, median_ms, near):
    rtts = {
        "rtt_samples": 3,
        "rtt_min_ms": 1.0,
        "rtt_p50_ms": median_ms,
        "rtt_p95_ms": 5.0,
        "rtt_max_ms": 5.0,
    }
    report = report_on(small_trace().source().flow(1, handshake_rtt_ms=41.0, **rtts))
    assert ("only the receiver's own delay; the handshake took 41.0 ms." in findings(report)) == near
    # no RTT of one flow stands for the link: that of handshakes does, which is the path's from everywhere
    (fact,) = (fact for fact in section(report, "summary").facts if "RTT" in fact.label)
    assert (fact.label, fact.value) == ("RTT of handshakes, p50", "41.0 ms")


def test_directions_with_hardly_any_rtt_samples_do_not_stretch_the_figure(small_trace):
    trace = small_trace().source()
    rtts = {"rtt_min_ms": 1.0, "rtt_p50_ms": 1.0, "rtt_p95_ms": 1.0, "rtt_max_ms": 1.0}
    trace.flow(1, rtt_samples=100, **rtts).flow(2, rtt_samples=5, **rtts).flow(3, rtt_samples=4, **rtts)
    for flow in (1, 2, 3):
        trace.bin(flow, 0, rtt_samples=1, rtt_min_ms=1.0, rtt_mean_ms=1.0, rtt_max_ms=1.0)
    over_time, spread = section(report_on(trace), "rtt").figures
    assert [curve.label[0] for curve in over_time.curves] == ["1", "2"]
    assert [span.label[0] for span in spread.spans] == ["1", "2"]
    assert over_time.caption.endswith("Not drawn: 1 direction with fewer samples.")


def test_connections_that_failed_are_counted_once_each(small_trace):
    trace = small_trace().source().flow(1, state="reset").flow(1, state="reset", direction="rev")
    trace.flow(2, state="refused").flow(3, state="refused").flow(4, state="attempted")
    assert "that did not end normally: 1 not answered, 2 refused, 1 reset." in findings(report_on(trace))


def test_closed_windows_and_icmp_errors_are_mentioned(small_trace):
    text = findings(report_on(small_trace().source().flow(1, zero_windows=3, icmp_errors=1)))
    assert "3 packets advertised a zero window, in 1 flow." in text
    assert "1 ICMP error returned" in text


def test_offload_is_told_with_what_it_does_to_counts(small_trace):
    trace = small_trace().source().flow(1, data_packets=279, data_segments=2214, super_segments=195)
    ((severity, text),) = notes(report_on(trace))
    assert (severity, text.split(" (")[0]) == (
        "info",
        "195 of 279 data packets are longer than the wire carries",
    )
    assert "These flows have 2,214 data segments on the wire." in text


def test_a_clean_capture_has_no_caveats(small_trace):
    assert "caveats" not in keys(report_on(small_trace().source().flow(1)))


def test_a_report_on_nothing_still_says_so(small_trace):
    trace = small_trace().source(packets=0, wire_bytes=0, captured_bytes=0, start_ns=None, end_ns=None)
    report = report_on(trace)
    assert keys(report) == ["summary", "inputs", "definitions"]
    assert plain(section(report, "summary").paragraphs[0]) == "a.pcap holds 0 packets in 0 flows."


def test_packets_of_no_flow_are_listed_by_protocol(small_trace):
    trace = small_trace().source(packets=10, tcp_packets=0, non_ip_packets=7, other_ip_packets=3)
    report = build_report(trace.results(), title="t")
    assert report.sections[0].findings == (
        ("No packet belongs to a flow: 7 not IP, 3 IP, but neither TCP nor UDP nor DCCP.",),
    )


def test_no_input_that_could_be_read_leaves_the_error_in_the_report(small_trace):
    trace = small_trace().problem(
        severity="error", source="gone.pcap", message="no such file", packets_before=0
    )
    severity, text = notes(report_on(trace))[0]
    assert severity == "error"
    assert text == "gone.pcap: no such file. "


def test_an_input_that_is_no_capture_holds_nothing(small_trace):
    trace = small_trace().source().source(source="x.txt", format="", packets=0, start_ns=None, end_ns=None)
    paragraphs = section(report_on(trace.flow(1)), "summary").paragraphs
    assert plain(paragraphs[0]) == "a.pcap holds 10 packets in 1 flow: 1 TCP."


def test_a_problem_names_file_packet_byte_and_what_was_done(small_trace):
    trace = small_trace().source().flow(1)
    trace.problem(packet=11, byte=7340032, hint="copy it again")
    assert notes(report_on(trace)) == [
        (
            "warning",
            "a.pcap, packet 11 at byte 7340032: the file ends early. 10 packets before it were analysed. "
            "Copy it again.",
        )
    ]


def test_errors_come_before_warnings_and_notes(small_trace):
    trace = small_trace().source(captured_bytes=1).flow(1)
    trace.problem(severity="note").problem(severity="warning").problem(severity="error")
    assert [severity for severity, _ in notes(report_on(trace))] == ["error", "warning", "info", "info"]


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ({"captured_bytes": 96}, "packets were truncated by the capture."),
        ({"filtered_packets": 7}, "the filter excluded 7 packets."),
    ],
)
def test_limits_of_a_capture_are_stated(small_trace, fact, expected):
    found = notes(report_on(small_trace().source(**fact).flow(1)))
    assert len(found) == 1
    assert expected in found[0][1]


def test_notes_of_flows_are_counted_by_reason(small_trace):
    trace = small_trace().source().flow(1, notes="a reason; b reason").flow(2, notes="a reason")
    assert [text for _, text in notes(report_on(trace))] == [
        "In 2 directions of flows: a reason. ",
        "In 1 direction of flows: b reason. ",
    ]


def test_a_thousand_broken_files_do_not_bury_the_report(small_trace):
    trace = small_trace().source().flow(1)
    for number in range(1000):
        trace.problem(source=f"{number}.pcap", message=f"cut at {number}")
    found = notes(report_on(trace))
    assert len(found) == 51
    assert found[-1][1].startswith("950 more caveats")


def curves(report: Report, key: str = "throughput"):
    return section(report, key).figures[0].curves


def test_throughput_is_drawn_largest_first_and_acknowledgements_are_summed_up(two_flows):
    drawn = curves(report_on(two_flows))
    assert [(curve.label, curve.style) for curve in drawn] == [
        ("1: 10.0.0.1:40000 → 10.0.0.2:80", 1),
        ("2: 10.0.0.1:40000 → 10.0.0.2:80", 2),
        ("3: 10.0.0.1:40000 → 10.0.0.2:80", 3),
        ("the other direction", OTHER),
    ]
    # 4000 bytes in 100 ms
    assert drawn[0].values == (320e3,) * 10
    assert drawn[0].x == pytest.approx([0.05 + 0.1 * place for place in range(10)])


def test_silence_within_a_flow_is_drawn_as_zero(two_flows):
    assert curves(report_on(two_flows))[1].values[5] == 0.0


def test_retransmissions_are_marked_where_they_happened(two_flows):
    assert [curve.marked for curve in curves(report_on(two_flows))] == [(), (4,), (), ()]


def test_drawn_curves_together_hold_every_byte(small_trace):
    trace = small_trace().source()
    for flow in range(1, 30):
        trace.flow(flow, wire_bytes=1000 * flow)
        for place in range(flow % 4, 12):
            trace.bin(flow, place, wire_bytes=7 * flow)
    report = report_on(trace)
    assert len(curves(report)) == STYLES + 1
    drawn_bytes = sum(value * 0.1 / 8 for curve in curves(report) for value in curve.values)
    assert drawn_bytes == pytest.approx(trace.bins["wire_bytes"].sum())


@pytest.mark.parametrize(
    ("packets_in_bin", "bins", "width"),
    [(1, 100, "1.00 s"), (2, 200, "500 ms"), (50, 200, "500 ms")],
)
def test_a_long_trace_is_drawn_in_wider_bins_that_the_caption_names(small_trace, packets_in_bin, bins, width):
    trace = small_trace().source().flow(1)
    for place in range(1000):
        trace.bin(1, place, packets=packets_in_bin)
    figure = section(report_on(trace), "throughput").figures[0]
    assert len(figure.curves[0].values) == bins
    assert f"in bins of {width} ({1000 * packets_in_bin:,} packets)" in figure.caption


def test_a_trace_with_few_packets_is_still_drawn_over_time(small_trace):
    trace = small_trace().source().flow(1).bin(1, 0).bin(1, 999)
    assert len(curves(report_on(trace))[0].values) == 20


def test_an_rtt_spike_survives_wider_bins(small_trace):
    trace = small_trace().source().flow(1, rtt_samples=1000, rtt_min_ms=1.0, rtt_p50_ms=1.0, rtt_p95_ms=1.0)
    trace.flow_rows[0]["rtt_max_ms"] = 900.0
    for place in range(1000):
        high = 900.0 if place == 777 else 2.0
        trace.bin(1, place, rtt_samples=1, rtt_min_ms=1.0, rtt_mean_ms=high, rtt_max_ms=high)
    curve = curves(report_on(trace), "rtt")[0]
    assert max(curve.high) == 900.0
    assert min(curve.low) == 1.0


def test_a_line_of_rtt_breaks_where_a_flow_was_silent_for_long(small_trace):
    trace = small_trace().source().flow(1, rtt_samples=4)
    for place in (0, 3, 38, 39):
        trace.bin(1, place, rtt_samples=1, rtt_min_ms=5.0, rtt_mean_ms=5.0, rtt_max_ms=5.0)
    trace.flow_rows[0] |= dict.fromkeys(("rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms", "rtt_max_ms"), 5.0)
    (curve,) = curves(report_on(trace), "rtt")
    assert curve.values == (5.0, 5.0, None, 5.0, 5.0)
    # a script has one value at each time: with that of a sample the break would be lost
    assert sorted(set(curve.x)) == list(curve.x)


def test_figures_of_one_trace_have_one_time_axis(two_flows):
    report = report_on(two_flows)
    throughput, rtt = section(report, "throughput").figures[0], section(report, "rtt").figures[0]
    assert throughput.lasted_s == rtt.lasted_s == 1.0


def two_files(small_trace):
    later = {"start_ns": 1_700_000_003_000_000_000, "end_ns": 1_700_000_004_000_000_000}
    trace = small_trace().source().source(source="b.pcap", wire_bytes=20_000, **later)
    trace.flow(1).flow(2, source="b.pcap", start_ns=1_700_000_003_000_000_000)
    return trace.bin(1, 0).bin(2, 30)


def test_each_trace_has_its_own_figure_and_its_own_beginning(small_trace):
    report = report_on(two_files(small_trace))
    figures = section(report, "throughput").figures
    assert [figure.title for figure in figures] == [
        "Throughput over time: a.pcap",
        "Throughput over time: b.pcap",
    ]
    assert [figure.curves[0].x for figure in figures] == [(0.05,), (0.05,)]


def test_files_are_called_by_what_distinguishes_them(small_trace):
    trace = small_trace()
    for number, name in enumerate(["/data/run/a/snd.pcap", "/data/run/b/snd.pcap"], start=1):
        trace.source(source=name).problem(source=name, message=name).flow(number, source=name).bin(number, 0)
    report = report_on(trace)
    assert plain(section(report, "summary").paragraphs[0]).startswith(
        "a/snd.pcap and b/snd.pcap hold 20 packets"
    )
    assert [text.split(":")[0] for _, text in notes(report)] == ["a/snd.pcap", "b/snd.pcap"]
    assert [f.title for f in section(report, "throughput").figures][1] == "Throughput over time: b/snd.pcap"
    inputs = section(report, "inputs").tables[0]
    assert [row.cells[0].text for row in inputs.rows] == ["/data/run/a/snd.pcap", "/data/run/b/snd.pcap"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.pcap"], "a.pcap holds"),
        (["-"], "- holds"),
        (["/a.pcap"], "/a.pcap holds"),
        (["/data/a.pcap", "b.pcap"], "/data/a.pcap and b.pcap hold"),
        (["ab/x", "ac/x"], "ab/x and ac/x hold"),
        (["d/1", "d/2", "d/3", "d/4", "d/5"], "1, 2, 3, 4 and 1 more input hold"),
    ],
)
def test_names_of_inputs_are_enumerated(small_trace, paths, names):
    trace = small_trace()
    for path in paths:
        trace.source(source=path)
    assert plain(section(report_on(trace), "summary").paragraphs[0]).startswith(names)


def test_inputs_with_equal_problems_share_a_note(small_trace):
    trace = small_trace().flow(1)
    for name in ("a.pcap", "b.pcap", "c.pcap"):
        trace.source(source=name).problem(source=name, message="the clock stepped", packets_before=0)
    assert [text for _, text in notes(report_on(trace))] == ["a.pcap and 2 other inputs: the clock stepped. "]


def test_separate_traces_may_count_a_connection_twice_and_the_summary_says_so(small_trace):
    def opening(**options) -> str:
        return plain(section(report_on(two_files(small_trace), **options), "summary").paragraphs[0])

    assert "counts twice" in opening()
    assert "counts twice" not in opening(joined=True)


def test_joined_files_share_one_figure(small_trace):
    figures = section(report_on(two_files(small_trace), joined=True), "throughput").figures
    assert len(figures) == 1
    assert [curve.x for curve in figures[0].curves] == [(0.05,), (3.05,)]
    assert [
        row.cells[2].text
        for row in section(report_on(two_files(small_trace), joined=True), "flows").tables[0].rows
    ] == [
        "0 s",
        "3.00 s",
    ]


def test_many_traces_are_not_all_drawn_and_the_report_says_so(small_trace):
    trace = small_trace()
    for number in range(1, 10):
        trace.source(source=f"{number}.pcap", wire_bytes=number)
        trace.flow(number, source=f"{number}.pcap").bin(number, 0)
    throughput = section(report_on(trace), "throughput")
    assert len(throughput.figures) == MOST_TRACES
    assert plain(throughput.paragraphs[0]) == "No figures are drawn for the 3 traces with fewer bytes."
    assert throughput.figures[0].title.endswith("4.pcap")


def test_the_table_leads_with_the_heavier_direction(two_flows):
    rows = section(report_on(two_flows), "flows").tables[0].rows
    assert [row.key for row in rows] == ["flow-1", "flow-2", "flow-3"]
    bytes_cell = rows[0].cells[5]
    assert (bytes_cell.text, bytes_cell.back, bytes_cell.sort) == ("40.0 kB", "1.00 kB", 40_000.0)


def test_a_download_is_shown_in_the_direction_of_its_data(small_trace):
    trace = small_trace().source().flow(1, wire_bytes=100)
    trace.flow(
        1, wire_bytes=5_000, direction="rev", src="10.0.0.2", src_port=80, dst="10.0.0.1", dst_port=40000
    )
    assert (
        section(report_on(trace), "flows").tables[0].rows[0].cells[1].text == "10.0.0.2:80 → 10.0.0.1:40000"
    )


def test_what_cannot_be_known_is_a_dash_and_sorts_last(two_flows):
    udp = section(report_on(two_flows), "flows").tables[0].rows[2]
    assert (udp.cells[8].text, udp.cells[8].sort) == ("–", None)


def test_ipv6_addresses_with_a_port_are_bracketed(small_trace):
    trace = small_trace().source().flow(1, src="2001:db8::1", dst="fe80::2", dst_port=None)
    assert (
        section(report_on(trace), "flows").tables[0].rows[0].cells[1].text == "[2001:db8::1]:40000 → fe80::2"
    )


def test_a_label_of_the_user_is_shown_with_the_flow(small_trace):
    report = report_on(small_trace().source().flow(1, label="reno").bin(1, 0))
    assert curves(report)[0].label.startswith("1 reno: ")
    assert section(report, "flows").tables[0].rows[0].cells[1].back == "TCP, closed, reno"


def test_thousands_of_flows_are_cut_and_the_caption_says_how_to_get_all(small_trace):
    trace = small_trace().source()
    for flow in range(1, MOST_FLOWS + 101):
        trace.flow(flow, wire_bytes=1000 + flow)
    table = section(report_on(trace), "flows").tables[0]
    assert len(table.rows) == MOST_FLOWS
    assert table.rows[0].key == f"flow-{MOST_FLOWS + 100}"
    assert (
        "Shown are the 1,000 largest of 1,100 flows, 100 are left out; `tfrctrace flows --format csv`"
        in table.caption
    )


def test_the_order_of_rows_changes_nothing(two_flows):
    before = report_on(two_flows)
    two_flows.flow_rows.reverse()
    two_flows.bin_rows.reverse()
    assert report_on(two_flows) == before
