"""The table of flows on a terminal and in a pipe."""

import io
import re

import pytest
from inline_snapshot import snapshot

from tfrctrace.reports.printers.flows import write_flows

ROW = {
    "flow": 1,
    "direction": "fwd",
    "transport": "tcp",
    "label": None,
    "src": "10.0.0.1",
    "src_port": 40000,
    "dst": "10.0.0.2",
    "dst_port": 5201,
    "state": "half_closed",
    "packets": 12345,
    "wire_bytes": 17_800_000,
    "goodput_bps": 4_910_000.0,
    "retransmitted_segments": 28,
    "rtt_p50_ms": 32.1,
    "rtt_p95_ms": 45.0,
    "handshake_rtt_ms": 30.0,
    "vantage": "sender",
    "pdr": None,
    "delay_mean_ms": None,
    "delay_p95_ms": None,
}
BACK = ROW | {
    "direction": "rev",
    "src": "10.0.0.2",
    "src_port": 5201,
    "dst": "10.0.0.1",
    "dst_port": 40000,
    "packets": 6210,
    "wire_bytes": 414_000,
    "goodput_bps": None,
    "retransmitted_segments": 0,
    "rtt_p50_ms": None,
    "rtt_p95_ms": None,
}
SOURCE = {
    "source": "link.pcapng",
    "format": "pcapng",
    "compression": "zstd",
    "link_types": ["Ethernet"],
    "packets": 18555,
    "filtered_packets": 0,
    "lines": 0,
    "wire_bytes": 18_214_000,
    "start_ns": 1_700_000_000_000_000_000,
    "end_ns": 1_700_000_060_000_000_000,
}


def shown(
    flows=((ROW, BACK),), sources=(SOURCE,), *, width=None, total=None, order="in order of first packet"
):
    file = io.StringIO()
    write_flows(file, flows, sources, total=len(flows) if total is None else total, order=order, width=width)
    return file.getvalue()


def test_the_table_reads_as_a_person_expects():
    assert shown().splitlines() == snapshot(
        [
            "`link.pcapng`: pcapng in zstd, Ethernet, 18,555 packets with 18.2 MB, "
            "from 2023-11-14 22:13:20.000 UTC for 1 min 00 s",
            "",
            "flow  from → to                       packets    bytes      goodput  retrans.   RTT p50 / p95",
            "─" * 93,
            "   1  10.0.0.1:40000 → 10.0.0.2:5201   12,345  17.8 MB  4.91 Mbit/s        28  32.1 / 45.0 ms",
            "        ← tcp, half closed              6,210   414 kB            –         0               –",
            "",
            "1 flow",
        ]
    )


def test_where_a_trace_shows_both_ends_delivery_stands_in_two_more_columns():
    delivered = {"pdr": 0.9771, "delay_mean_ms": 128.2, "delay_p95_ms": 190.4}
    trace = {"format": "ns2", "compression": "", "link_types": [], "lines": 61_020, "start_ns": 0}
    source = SOURCE | trace | {"end_ns": 10**9}
    lines = shown(((ROW | delivered, BACK),), (source,)).splitlines()
    assert lines[0] == ("`link.pcapng`: ns2, 61,020 lines, from 0.000 s for 1.00 s")
    assert re.split(r"  +", lines[2])[-3:] == ["RTT p50 / p95", "PDR", "delay mean / p95"]
    assert re.split(r"  +", lines[4])[-3:] == ["32.1 / 45.0 ms", "97.7 %", "128 / 190 ms"]
    assert re.split(r"  +", lines[5])[-3:] == ["–", "–", "–"]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_terminal_is_never_overrun_and_nothing_is_cut(width):
    long = {"src": "2001:db8:1234:5678:9abc:def0:1234:5678", "dst": "2001:db8:8765:4321:9abc:def0:1234:5678"}
    text = shown(((ROW | long, BACK),), width=width)
    table = text[text.index("flow ") :].splitlines()[:-1]
    assert max(map(len, table)) <= width
    assert "…" not in text
    for address, port in zip(long.values(), (40000, 5201), strict=True):
        assert f"[{address}]:{port}" in text
    for number in ("12,345", "17.8 MB", "4.91 Mbit/s", "28", "32.1"):
        assert number in text


def test_a_narrow_terminal_gets_the_ends_above_the_directions():
    assert shown(width=80).splitlines()[2:8] == snapshot(
        [
            "flow     packets    bytes      goodput  retrans.   RTT p50 / p95",
            "─" * 64,
            "   1  10.0.0.1:40000 → 10.0.0.2:5201 (tcp, half closed)",
            "      →   12,345  17.8 MB  4.91 Mbit/s        28  32.1 / 45.0 ms",
            "      ←    6,210   414 kB            –         0               –",
            "",
        ]
    )
    assert "  32.1 ms\n" in shown(width=60)


def test_columns_that_a_terminal_does_not_hold_are_named():
    delivered = {"pdr": 0.9771, "delay_mean_ms": 128.2, "delay_p95_ms": 190.4}
    flows = ((ROW | delivered, BACK),)
    hint = "PDR and delay need a wider terminal"
    assert hint in shown(flows, width=60)
    for width in (80, 100, 120):
        assert hint not in shown(flows, width=width)
        assert "97.7 %" in shown(flows, width=width)


def test_the_direction_with_more_bytes_leads():
    download = shown(((BACK, ROW),), width=80).splitlines()
    assert download[4:7] == shown(width=80).splitlines()[4:7]


def test_a_pipe_gets_each_flow_in_two_lines_however_long_the_addresses_are():
    long = {"src": "2001:db8:1234:5678:9abc:def0:1234:5678", "dst": "2001:db8:8765:4321:9abc:def0:1234:5678"}
    text = shown(((ROW | long, BACK),) * 2)
    assert len(text.splitlines()) == 2 + 2 + 4 + 2


def test_a_line_says_which_columns_mean_less_near_the_receiver():
    near = ((ROW | {"vantage": "receiver"}, BACK | {"vantage": "sender"}),)
    assert shown(near).splitlines()[-2].startswith("1 flow captured near the receiver: RTT is")
    assert shown(near * 2).splitlines()[-2].startswith("2 flows captured near the receiver: ")


def test_the_acknowledgements_of_a_sender_are_not_what_a_flow_is_about():
    assert shown(((ROW, BACK | {"vantage": "receiver"}),)) == shown()


def test_flows_that_are_left_out_are_counted():
    assert shown(total=340, order="by bytes, largest first").splitlines()[-1] == (
        "1 of 340 flows, by bytes, largest first; "
        "`--rows 0` shows all, `--format csv` writes every column of all"
    )


def test_a_capture_without_flows_has_no_table():
    assert shown(()).splitlines()[1:] == ["no TCP or UDP flow"]


def test_what_the_filter_left_out_is_reported():
    assert "1,234 left out by the filter" in shown(sources=(SOURCE | {"filtered_packets": 1234},))


def test_of_many_inputs_the_first_are_listed_and_the_rest_is_counted():
    lines = shown(sources=(SOURCE,) * 12).splitlines()
    assert lines[5] == "and 7 more; 222,660 packets in all"


def test_a_label_stands_beside_the_state():
    assert "← tcp, half closed, reno" in shown(((ROW | {"label": "reno"}, BACK),))


def test_an_input_cannot_write_to_the_terminal_by_its_name():
    text = shown(sources=(SOURCE | {"source": "a\x1b]0;owned\x07\n.pcap"},))
    assert r"`a\x1b]0;owned\x07\n.pcap`" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_markup_in_a_name_is_shown_as_it_is():
    assert "`[red]a[/red].pcap`" in shown(sources=(SOURCE | {"source": "[red]a[/red].pcap"},))
    assert "reno[bold]" in shown(((ROW | {"label": "reno[bold]"}, BACK),))
