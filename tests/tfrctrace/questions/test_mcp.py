"""Questions of programs, by the client of the protocol's own project; answers against tshark and tables."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.questions.folders import Folders
from tfrctrace.questions.questions import Questions
from tfrctrace.questions.short_answer import from_offset, short_answer
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.reports.why_words import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
TWO_FLOWS = "two-flows.pcapng.gz"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Return a folder with two captures."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for name in (TWO_FLOWS, "mixed.pcap.zst"):
        shutil.copy(SAMPLES / name, folder)
    return folder


@pytest.fixture
def ask(samples: Path, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that asks a question in this process."""
    questions = Questions(Folders([str(samples)]), tmp_path)
    return lambda name, *args, **options: json.loads(getattr(questions, name)(*args, **options))


def test_a_client_of_the_protocol_gets_answers_and_reasons(samples: Path) -> None:
    async def talk() -> tuple[set[str], str, str]:
        server = StdioServerParameters(command=sys.executable, args=["-m", "tfrctrace", "mcp", str(samples)])
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            flows = await session.call_tool("flows", {"capture": TWO_FLOWS, "sort": "retransmitted"})
            refused = await session.call_tool("flows", {"capture": "../secret.pcap"})
            assert refused.is_error
            return {tool.name for tool in tools}, flows.content[0].text, refused.content[0].text

    names, flows, refused = asyncio.run(talk())
    assert names == {"captures", "flows", "explain", "losses", "packets", "compare", "incidents"}
    first = json.loads(flows)["flows"][0]
    assert (
        first["retransmitted_segments"]
        == tfrctrace.open(SAMPLES / TWO_FLOWS).flows["retransmitted_segments"].max()
    )
    assert "no file `../secret.pcap` is in the folders that may be read" in refused


def test_without_the_package_of_the_protocol_a_hint_says_what_to_install(
    samples: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    for name in [name for name in sys.modules if name.startswith(("mcp.", "tfrctrace.questions.server"))]:
        monkeypatch.delitem(sys.modules, name)
    outcome = run("mcp", samples)
    assert (outcome.status, outcome.out) == (2, "")
    assert "pip install 'tfrctrace[mcp]'" in outcome.err


def test_captures_and_flows_are_those_of_the_folder(ask: Callable[..., Any], samples: Path) -> None:
    assert ask("captures")["captures"] == [
        {"capture": name, "bytes": (samples / name).stat().st_size} for name in ("mixed.pcap.zst", TWO_FLOWS)
    ]
    table = tfrctrace.open(SAMPLES / TWO_FLOWS).flows
    found, offset = [], 0
    while offset is not None:
        page = ask("flows", TWO_FLOWS, offset=offset)
        found += [(row["flow"], row["direction"], row["packets"]) for row in page["flows"]]
        offset = page.get("next_offset")
    assert len(found) == page["total"] == table.height
    assert sorted(found) == sorted(table.select("flow", "direction", "packets").rows())
    one = ask("flows", TWO_FLOWS, port=35250)["flows"]
    assert [(row["src_port"], row["dst_port"]) for row in one] == [(35250, 5201), (5201, 35250)]
    assert not ask("flows", TWO_FLOWS, address="203.0.113.9")["flows"]


def test_an_explanation_is_that_of_why(ask: Callable[..., Any]) -> None:
    every = tfrctrace.open(SAMPLES / TWO_FLOWS).why()
    own = [one for one in every if one.flow == 2]
    found = ask("explain", TWO_FLOWS, 2)
    assert [row["fwd"] for row in found["sentences"]] == sentences(own[0], every)
    assert found["causes"][0]["main_cause"] == own[0].main_cause
    with pytest.raises(UsageError, match="there is no flow 99"):
        ask("explain", TWO_FLOWS, 99)


def test_losses_near_a_time_are_those_of_the_table(ask: Callable[..., Any]) -> None:
    trace = tfrctrace.open(SAMPLES / TWO_FLOWS)
    since_begin = (trace.losses["time_ns"] - trace.zero_ns) / 1e9
    near = since_begin.is_between(1.5, 2.0)
    found = ask("losses", TWO_FLOWS, at_s=1.75, within_s=0.25, max_bytes=100_000)
    assert found["total"] == len(found["losses"]) == near.sum() > 0
    assert [row["packet"] for row in found["losses"]] == trace.losses.filter(near).sort("time_ns")[
        "packet"
    ].to_list()
    assert sum(found["by_class"].values()) == found["total"]


@pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark")
def test_packets_have_the_numbers_and_lengths_of_tshark(ask: Callable[..., Any]) -> None:
    command = [
        "tshark",
        "-r",
        str(SAMPLES / TWO_FLOWS),
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "frame.len",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expected = [tuple(map(int, line.split())) for line in told.splitlines()]
    found, first = [], 1
    while first is not None:
        page = ask("packets", TWO_FLOWS, first, 200, max_bytes=4_000)
        found += [(row["packet"], row["wire_bytes"]) for row in page["packets"]]
        first = page.get("next_packet")
    assert found == expected[:200]


def test_a_comparison_is_that_of_the_command(
    ask: Callable[..., Any], run: Callable[..., Any], samples: Path
) -> None:
    found = ask("compare", TWO_FLOWS, "mixed.pcap.zst", metric=["jain"], max_bytes=100_000)
    told = json.loads(
        run(
            "compare", samples / TWO_FLOWS, samples / "mixed.pcap.zst", "--metric", "jain", "--format", "json"
        ).out
    )
    assert found["verdict"] == told["verdict"]
    assert [row["metric"] for row in found["differences"]] == [row["metric"] for row in told["differences"]]


def test_a_comparison_is_measured_once_and_needs_metrics_that_there_are(
    ask: Any, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask("compare", ".", TWO_FLOWS, metric=["jain"])
    monkeypatch.setattr("tfrctrace.study.run_record.StudyTask.measure", None)
    assert ask("compare", ".", TWO_FLOWS, metric=["jain"]) == first
    with pytest.raises(UsageError, match="there is no metric `jan`"):
        ask("compare", ".", TWO_FLOWS, metric=["jan"])


def test_traces_beyond_what_may_be_kept_make_room(
    ask: Any, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrctrace.questions.kept_traces._MOST_BYTES", (samples / TWO_FLOWS).stat().st_size)
    ask("packets", TWO_FLOWS, 1, 2)
    ask("packets", "mixed.pcap.zst", 1, 2)
    assert len(list(samples.parent.glob("*.parquet"))) == 1


def test_incidents_are_those_of_the_audit(
    ask: Callable[..., Any], run: Callable[..., Any], samples: Path
) -> None:
    run("audit", samples / TWO_FLOWS, "-o", samples / "audit", "--quiet")
    document = json.loads((samples / "audit" / "audit.json").read_text())
    found = ask("incidents", "audit", max_bytes=100_000)
    assert found["total"] == len(document["incidents"])
    assert [row["reason"] for row in found["incidents"]] == [one["reason"] for one in document["incidents"]]
    (samples / "audit" / "audit.json").write_text("{}")
    with pytest.raises(tfrctrace.InputError, match="not an audit of this release"):
        ask("incidents", "audit")


def test_nothing_outside_the_folders_is_read(ask: Callable[..., Any], samples: Path) -> None:
    secret = samples.parent / "secret.pcap"
    shutil.copy(SAMPLES / TWO_FLOWS, secret)
    (samples / "link.pcap").symlink_to(secret)
    (samples / "away").symlink_to(samples.parent)
    names = [
        "../secret.pcap",
        str(secret),
        "link.pcap",
        "away/secret.pcap",
        "x" * 5_000,
        "a\0b",
        "tcp://127.0.0.1:1",
    ]
    for name in names:
        with pytest.raises(UsageError, match="in the folders that may be read"):
            ask("flows", name)
    assert [row["capture"] for row in ask("captures")["captures"]] == ["mixed.pcap.zst", TWO_FLOWS]
    with pytest.raises(UsageError, match=r"`\.` has links to captures outside of the folders"):
        ask("compare", ".", TWO_FLOWS)


def test_a_capture_that_changed_is_read_again(ask: Any, conversation: Any, write_capture: Any) -> None:
    write_capture("captures/a.pcap", conversation(data_packets=1))
    before = ask("packets", "a.pcap", 1, 100, max_bytes=9_000)["packets"]
    write_capture("captures/a.pcap", conversation(data_packets=2))
    assert len(ask("packets", "a.pcap", 1, 100, max_bytes=9_000)["packets"]) == len(before) + 2


def test_what_is_wrong_with_a_capture_is_in_each_answer(
    ask: Any, conversation: Any, write_capture: Any
) -> None:
    write_capture("captures/cut.pcap", conversation(), cut=3)
    for found in (ask("flows", "cut.pcap"), ask("explain", "cut.pcap", 1), ask("losses", "cut.pcap")):
        assert "cut.pcap" in found["caveats"][0]


def test_an_anonymized_answer_has_no_address_and_no_name(samples: Path, tmp_path: Path) -> None:
    (samples / TWO_FLOWS).rename(samples / "secret-name.pcapng.gz")
    (samples / "damaged-name.pcap").write_bytes(b"no capture at all, but a text")
    questions = Questions(Folders([str(samples)], hides_names=True), tmp_path, b"k" * 16)
    named = [row["capture"] for row in json.loads(questions.captures())["captures"]]
    assert named == ["capture-1", "capture-2", "capture-3"]
    answers = [questions.captures(), questions.compare(*named[1:])]
    for name in named[1:]:
        answers += [questions.flows(name), questions.explain(name, 1), questions.losses(name)]
        answers.append(questions.packets(name, 1, 20))
    with pytest.raises(tfrctrace.InputError) as refused:
        questions.flows("capture-1")
    answers.append(questions.reasons_of(refused.value))
    with pytest.raises(UsageError, match="an audit has addresses"):
        questions.incidents("audit")
    with pytest.raises(UsageError, match=r"no file `secret-name\.pcapng\.gz`"):
        questions.flows("secret-name.pcapng.gz")
    for text in answers:
        assert "192.0.2" not in text
        assert "2001:db8" not in text
        assert "-name" not in text


NAMES = st.sampled_from(["src", "dst", "server_name", "rtt_ms"])
TEXTS = st.text(max_size=600)


@given(st.lists(st.dictionaries(NAMES, TEXTS | st.floats() | st.none(), max_size=4)), st.integers(200, 3_000))
def test_an_answer_is_json_of_bounded_length_without_control_characters(
    rows: list[dict[str, Any]], most: int
) -> None:
    text = short_answer(
        {"capture": "x"}, rows, called="rows", total=len(rows), next_of=from_offset(0), max_bytes=most
    )
    found = json.loads(text)
    assert len(found["rows"]) <= 1 or len(text.encode()) <= most
    assert found.get("next_offset", len(rows)) == len(found["rows"])
    assert plain_text(text) == text
