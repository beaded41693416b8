"""Captures that a server sends, against files of the same bytes, and tshark as another client."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tfrctrace.base.errors import UsageError
from tfrctrace.parsers.pcap_over_ip import host_and_port

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_traces" / "two-flows.pcapng.gz"

NOT_READ, USAGE = 3, 2


@pytest.fixture
def serve():
    """Return a function that serves bytes to each client, in parts with pauses, and returns the URL."""
    listeners = []

    def start(*parts, pause_s=0.0):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def answer():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    for part in parts:
                        client.sendall(part)
                        time.sleep(pause_s)

        threading.Thread(target=answer, daemon=True).start()
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def flows(run, *arguments):
    outcome = run("flows", *arguments, "--format", "json")
    return outcome, json.loads(outcome.out)["flows"]


def without_source(rows):
    return [{name: value for name, value in row.items() if name != "source"} for row in rows]


def test_flows_are_those_of_the_file(run, serve):
    content = SAMPLE.read_bytes()
    outcome, served = flows(run, serve(content[:1000], content[1000:], pause_s=0.05))
    assert outcome.status == 0, outcome.err
    assert without_source(served) == without_source(flows(run, SAMPLE)[1])
    assert {row["source"].partition(":")[0] for row in served} == {"tcp"}


@pytest.mark.parametrize(
    "command",
    ["report -o page.html", "metrics", "replay", "why", "groups", "convert -o packets.csv"],
)
def test_commands_read_it_once(run, serve, command, tmp_path):
    name, *options = command.split()
    outcome = run(name, serve(SAMPLE.read_bytes()), *options)
    assert outcome.status == 0, outcome.err
    assert str(tmp_path) not in outcome.out


def test_a_report_is_not_named_by_host_and_port(run, serve, tmp_path):
    url = serve(SAMPLE.read_bytes())
    assert run("report", url, "--results", "saved").status == 0
    assert url in (tmp_path / "report.html").read_text()


def test_of_several_servers_each_is_an_input(run, serve):
    first, second = serve(SAMPLE.read_bytes()), serve(SAMPLE.read_bytes())
    outcome, served = flows(run, first, second)
    assert outcome.status == 0, outcome.err
    assert [row["source"] for row in served] == [first] * (len(served) // 2) + [second] * (len(served) // 2)


def test_what_came_before_a_cut_is_analysed(run, serve):
    content = gzip.decompress(SAMPLE.read_bytes())
    outcome, served = flows(run, serve(content[: len(content) // 2]))
    assert outcome.status == 0, outcome.err
    assert "the file ends inside" in outcome.err
    assert sum(row["packets"] for row in served) > 0


def test_a_server_that_is_not_there_is_named(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = run("flows", f"tcp://127.0.0.1:{port}")
    assert outcome.status == NOT_READ
    assert f"`tcp://127.0.0.1:{port}`" in outcome.err
    assert "refused" in outcome.err.lower()
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "url",
    [
        "tcp://",
        "tcp://host",
        "tcp://host:0",
        "tcp://host:x",
        "tcp://u@host:1",
        "tcp://host:1/x",
        "tcp://host:99999",
    ],
)
def test_a_url_without_host_and_port_is_refused(run, url):
    with pytest.raises(UsageError):
        host_and_port(url)
    outcome = run("flows", url)
    assert outcome.status == USAGE
    assert "tcp://127.0.0.1:57012" in outcome.err


def test_an_ipv6_host_is_written_in_brackets():
    assert host_and_port("tcp://[::1]:57012") == ("::1", 57012)


@pytest.mark.parametrize(
    "command",
    [
        ["batch", "{}", "-o", "results"],
        ["compare", "{}", "{}"],
        ["flows", "--pair", "{}", "{}"],
        ["flows", "{}", "--last", "1s"],
    ],
    ids=" ".join,
)
def test_what_reads_twice_refuses_it(run, serve, command):
    url = serve(SAMPLE.read_bytes())
    outcome = run(*(word.format(url) for word in command))
    assert outcome.status == USAGE, outcome.err
    assert "file" in outcome.err


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_the_same_packets(run, serve, tmp_path):
    url = serve(gzip.decompress(SAMPLE.read_bytes()))
    done = subprocess.run(
        ["tshark", "-Q", "-i", f"TCP@{url.removeprefix('tcp://')}", "-w", "-"],
        capture_output=True,
        check=False,
    )
    if not done.stdout:
        pytest.skip("tshark cannot capture from a socket here: " + done.stderr.decode()[-200:])
    (tmp_path / "seen.pcapng").write_bytes(done.stdout)
    assert without_source(flows(run, "seen.pcapng")[1]) == without_source(flows(run, url)[1])
