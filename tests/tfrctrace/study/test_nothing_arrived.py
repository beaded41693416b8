"""Runs in which nothing arrived: ns-2's agents sent packets, and their sinks counted 0 bytes."""

from __future__ import annotations

import pytest

from tfrctrace.base.errors import InputError
from tfrctrace.study import perform_study

# Of simulations of ns-2.35 with the routing DSDV whose sender never had a route (six nodes, placement 2 of
# the study of Sreenivasa Rao and others), without the lines of movement. The agents counted: TFRC sent 10
# packets, TCP 6, of which it repeated 5, and both sinks 0 bytes.
TFRC = """\
s 0.956000000 _0_ AGT  --- 4 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
s 2.622666667 _0_ AGT  --- 7 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
s 4.289333333 _0_ AGT  --- 8 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
s 7.622666667 _0_ AGT  --- 9 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
s 10.956000000 _0_ AGT  --- 10 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
s 17.622666667 _0_ AGT  --- 23 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
D 17.622666667 _0_ RTR  IFQ 4 tcpFriend 552 [0 0 0 0] ------- [0:10 3:10 32 0]
s 24.289333333 _0_ AGT  --- 26 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
D 24.289333333 _0_ RTR  IFQ 7 tcpFriend 552 [0 0 0 0] ------- [0:10 3:10 32 0]
s 37.622666667 _0_ AGT  --- 39 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
D 37.622666667 _0_ RTR  IFQ 8 tcpFriend 552 [0 0 0 0] ------- [0:10 3:10 32 0]
s 50.956000000 _0_ AGT  --- 52 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
D 50.956000000 _0_ RTR  IFQ 9 tcpFriend 552 [0 0 0 0] ------- [0:10 3:10 32 0]
s 77.622666667 _0_ AGT  --- 73 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0]
D 77.622666667 _0_ RTR  IFQ 10 tcpFriend 552 [0 0 0 0] ------- [0:10 3:10 32 0]
"""
TCP = """\
s 0.956000000 _0_ AGT  --- 3 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
s 3.956000000 _0_ AGT  --- 7 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
s 9.956000000 _0_ AGT  --- 8 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
s 21.956000000 _0_ AGT  --- 21 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
s 45.956000000 _0_ AGT  --- 48 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
s 93.956000000 _0_ AGT  --- 82 tcp 40 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
D 93.956000000 _0_ RTR  IFQ 3 tcp 60 [0 0 0 0] ------- [0:11 3:11 32 0] [0 0] 0 0
"""
ARRIVED = """\
r 1.000000000 _3_ AGT  --- 4 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0] 1 0
r 3.000000000 _3_ AGT  --- 7 tcpFriend 532 [0 0 0 0] ------- [0:10 3:10 32 0] 1 0
"""
"""What the sink's node would write."""

STUDY = """
[runs]
files = "*.tr"
pattern = "{protocol}-{run}.tr"
repetition = "run"

[measure]
basis = "received"
least_packets = 0
both_ends = BOTH

[labels]
tfrc = "port 10"
tcp = "port 11"

[[quantity]]
name = "sent"
column = "sent_packets"
"""
STUDY += "".join(
    f'[[quantity]]\nname = "{name}"\nmetric = "{name}"\n' for name in ("pdr", "plr", "delay_mean_ms")
)
STUDY += (
    '[[quantity]]\nname = "rate"\nmetric = "rate_bps"\n[[quantity]]\nname = "over_time"\nseries = "rate"\n'
)
STUDY += '[[quantity]]\nname = "received"\ncolumn = "received_packets"\n'


def performed(folder, *, both_ends, **traces):
    for name, lines in traces.items():
        (folder / f"{name.replace('_', '-')}.tr").write_text(lines)
    (folder / "study.toml").write_text(STUDY.replace("BOTH", "true" if both_ends else "false"))
    return perform_study(folder / "study.toml", cache=folder / "cache")


def values(results, group):
    rows = results.values().rows(named=True)
    return {row["quantity"]: row["value"] for row in rows if row["group"] == group and row["reason"] is None}


@pytest.mark.parametrize(("group", "lines", "sent"), [("tfrc", TFRC, 10), ("tcp", TCP, 6)])
def test_where_nothing_arrived_the_rate_and_the_delivery_are_0(tmp_path, group, lines, sent):
    results = performed(tmp_path, both_ends=True, **{f"{group}_1": lines})
    assert values(results, group) == {
        "sent": sent, "received": 0, "pdr": 0, "plr": 1, "rate": 0, "over_time": 0,
    }  # fmt: skip
    (delay,) = results.summary().filter(quantity="delay_mean_ms", group=group)["reason"]
    assert delay == "nothing arrived"


def test_a_flow_beside_one_that_arrives_counts_as_0_too(tmp_path):
    results = performed(
        tmp_path,
        both_ends=True,
        both_1="".join(
            sorted(
                [*TFRC.splitlines(True), *TCP.splitlines(True), *ARRIVED.splitlines(True)],
                key=lambda line: float(line.split()[1]),
            )
        ),
    )
    assert values(results, "tfrc")["received"] == 2
    assert {name: values(results, "tcp").get(name) for name in ("received", "pdr", "plr")} == {
        "received": 0, "pdr": 0, "plr": 1,
    }  # fmt: skip
    assert values(results, "tcp")["rate"] == 0


def test_without_a_word_of_the_study_such_a_run_fails_by_itself(tmp_path):
    results = performed(tmp_path, both_ends=False, tfrc_1=TFRC, tfrc_2=TFRC + ARRIVED)
    assert [record is None for record in results.records] == [True, False]
    (problem,) = [one for one in results.problems if one["severity"] == "error"]
    assert "no packet of the trace is shown at its destination" in problem["message"]
    assert "both_ends" in problem["hint"]
    (tmp_path / "tfrc-2.tr").unlink()
    with pytest.raises(InputError):
        performed(tmp_path, both_ends=False)
