"""Which flows, or pairs of hosts, had most of the bytes, of rows written out."""

import polars as pl

from tfrctrace.metrics.audit.queue_fillers import loaded_bytes, queue_fillers, with_control

TYPES = {"flow": pl.UInt32, "direction": pl.String, "src": pl.String, "src_port": pl.UInt16}
TYPES |= {"dst": pl.String, "dst_port": pl.UInt16, "wire_bytes": pl.UInt64}


def sent(*rows):
    return pl.DataFrame(rows, TYPES, orient="row")


def between(flow, client, server, up, down):
    return [
        (flow, "fwd", client, 5000 + flow, server, 443, up),
        (flow, "rev", server, 443, client, 5000 + flow, down),
    ]


ROWS = sent(*between(1, "a", "x", 10, 700), *between(2, "b", "x", 500, 250), *between(3, "b", "y", 9, 50))


def shares(load):
    return [(one.src, one.dst, one.dst_port, round(one.share, 3)) for one in queue_fillers(load)]


def test_the_largest_flows_of_the_loaded_direction_are_named():
    down = loaded_bytes(ROWS, ["a", "b"], (), ["down"])
    assert shares(down) == [("x", "a", 5001, 0.7), ("x", "b", 5002, 0.25)]
    assert shares(loaded_bytes(ROWS, ["a", "b"], (), ["up"]))[0] == ("b", "x", 443, round(500 / 519, 3))


def test_of_named_hosts_only_their_bytes_count():
    assert shares(loaded_bytes(ROWS, ["a", "b"], ["b"], ["down"])) == [
        ("x", "b", 5002, round(250 / 300, 3)),
        ("y", "b", 5003, round(50 / 300, 3)),
    ]


def test_without_sides_both_directions_count():
    assert loaded_bytes(ROWS, None, (), ["up"]).height == len(ROWS)
    assert shares(loaded_bytes(ROWS, ["a", "b"], (), ["up", "down"]))[0][:2] == ("x", "a")


def test_many_small_flows_count_by_their_hosts():
    many = sent(
        *(row for flow in range(1, 21) for row in between(flow, "a" if flow < 16 else "b", "x", 0, 5))
    )
    found = queue_fillers(many)
    assert [(one.src, one.dst, one.src_port, one.flows) for one in found] == [
        ("x", "a", None, 15),
        ("x", "b", None, 5),
    ]
    assert [one.share for one in found] == [0.75, 0.25]


def test_without_bytes_nobody_is_named():
    assert queue_fillers(ROWS.clear()) == []
    assert queue_fillers(sent(*between(1, "a", "x", 0, 0))) == []


def test_a_congestion_control_comes_with_its_share_of_predicted_rounds_or_the_reason():
    filler = queue_fillers(ROWS)[0]
    assert with_control(filler, None) == filler
    facts = {"compared_rounds": 100, "predicted_rounds": 98, "congestion_control_reason": None}
    named = with_control(filler, {**facts, "congestion_control": "cubic"})
    assert (named.congestion_control, named.predicted_share) == ("cubic", 0.98)
    facts |= {"congestion_control": None, "congestion_control_reason": "few_rounds"}
    unknown = with_control(filler, facts)
    assert (unknown.predicted_share, unknown.reason) == (None, "few_rounds")
