"""Objects of stores: S3's protocol and plain HTTP, with connections that break and objects that change."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from zlib import crc32

import pytest
from patience import PATIENCE_S

pytest.importorskip("obstore")

ROOT = Path(__file__).parents[2]
NOT_READ = 3
SECRET = "X-Amz-Signature=5ecret5ecret"


@dataclass
class Store:
    """Objects by path, and how the server misbehaves."""

    objects: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    cuts: int = 0
    """Answers that end in the middle."""
    etags: list[str] = field(default_factory=lambda: ["one"])
    """Version of the objects at each answer; the last one at all later ones."""
    has_ranges: bool = True
    has_etag: bool = True
    denies: bool = False
    stalls: bool = False
    drips: bool = False
    """Answers come a byte at a time, each before a client loses its patience."""
    shortens: bool = False
    """Answers have half of their range, with the length of that half."""
    requests: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)


def etag_of(path, version):
    return f'"{version}-{crc32(path.encode())}"'


class Server(ThreadingHTTPServer):
    """Says nothing of clients that went away."""

    def handle_error(self, *_):
        pass


class Handler(BaseHTTPRequestHandler):
    """Answers as S3 does with path-style names, or as a web server."""

    store: Store
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        store, parts = self.store, urlsplit(self.path)
        store.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}")
        if store.denies:
            return self.send(
                403,
                b"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>",
            )
        query = parse_qs(parts.query)
        if "list-type" in query:
            return self.send(200, self.listing(parts.path, query.get("prefix", [""])[0]))
        content = store.objects.get(parts.path)
        if content is None:
            return self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        etag = etag_of(parts.path, store.etags.pop(0) if len(store.etags) > 1 else store.etags[0])
        if self.headers.get("If-Match") not in {None, etag}:
            return self.send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        if store.stalls and self.command == "GET":
            store.is_over.wait(PATIENCE_S)
        status, start, stop = 200, 0, len(content)
        wanted = self.headers.get("Range")
        if wanted and store.has_ranges:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            status, start, stop = 206, int(first), min(int(last) + 1, len(content))
        more = {"ETag": etag} if store.has_etag else {}
        if status == 206:
            more["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
        if store.shortens and self.command == "GET":
            content = content[: (start + stop) // 2]
        return self.send(status, content[start:stop], more)

    def send(self, status, content, more=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Mon, 05 Jan 2026 00:00:00 GMT")
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.store.cuts and status in {200, 206} and len(content) > 100:
            self.store.cuts -= 1
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        if self.store.drips:
            for place in range(len(content)):
                self.wfile.write(content[place : place + 1])
                time.sleep(0.02)
        self.wfile.write(content)

    def listing(self, bucket, prefix):
        bucket = bucket.rstrip("/")
        found = [
            f"<Contents><Key>{path[len(bucket) + 1 :]}</Key><Size>{len(content)}</Size>"
            f"<ETag>{etag_of(path, self.store.etags[-1])}</ETag>"
            "<LastModified>2026-01-05T00:00:00.000Z</LastModified></Contents>"
            for path, content in self.store.objects.items()
            if path.startswith(f"{bucket}/{prefix}")
        ]
        return (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>".encode()
        )


@pytest.fixture
def store(monkeypatch):
    """Start a server, which S3's environment names."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    served = Store()
    server = Server(("127.0.0.1", 0), type("Own", (Handler,), {"store": served}))
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield served
    served.is_over.set()
    server.shutdown()
    server.server_close()


SAMPLE = (ROOT / "sample_traces" / "two-flows.pcapng.gz").read_bytes()


def flows_of(run, *arguments):
    outcome = run("flows", "--format", "json", *arguments)
    return outcome, json.loads(outcome.out) if outcome.out else None


@pytest.fixture
def expected(run):
    _, document = flows_of(run, ROOT / "sample_traces" / "two-flows.pcapng.gz")
    return [{**flow, "source": ""} for flow in document["flows"]]


@pytest.mark.parametrize(
    "trouble",
    [{}, {"cuts": 2}, {"has_ranges": False}, {"has_etag": False}, {"has_ranges": False, "has_etag": False}],
    ids=str,
)
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_an_object_is_read_as_a_file_is(run, store, expected, scheme, trouble):
    store.objects["/bucket/link.pcapng.gz"] = SAMPLE
    for name, value in trouble.items():
        setattr(store, name, value)
    url = "s3://bucket/link.pcapng.gz" if scheme == "s3" else f"{store.url}/bucket/link.pcapng.gz"
    outcome, document = flows_of(run, url, *(["--endpoint", store.url] if scheme == "s3" else []))
    assert outcome.status == 0, outcome.err
    assert [{**flow, "source": ""} for flow in document["flows"]] == expected
    assert document["sources"][0]["source"] == url


def test_ranges_are_fetched_in_order_under_one_etag(run, store, monkeypatch, expected):
    monkeypatch.setattr("tfrctrace.parsers.remote._FIRST_RANGE", 10_000)
    store.objects["/bucket/link.pcapng.gz"] = SAMPLE
    _, document = flows_of(run, "s3://bucket/link.pcapng.gz", "--endpoint", store.url)
    assert [{**flow, "source": ""} for flow in document["flows"]] == expected
    ranges = [line.split("bytes=")[1] for line in store.requests if "bytes=" in line]
    assert ranges[0] == "0-9999"
    assert len(ranges) > 4
    assert max(int(one.split("-")[1]) for one in ranges) == len(SAMPLE) - 1


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"etags": ["one", "one", "two"]}, "changed while it was read: its ETag is another"),
        ({"denies": True}, "the store denies access"),
        ({"cuts": 1_000}, "the store did not answer as it should"),
        ({"shortens": True}, "the store did not answer as it should"),
        ({"shortens": True, "has_ranges": False}, "the store did not answer as it should"),
        ({"stalls": True}, "the store did not answer as it should"),
        ({"drips": True}, "the store sends fewer than 1,000 bytes a second"),
        ({"objects": {}}, "there is no such object"),
    ],
    ids=str,
)
def test_what_goes_wrong_is_said_without_secrets(run, store, trouble, words, monkeypatch):
    monkeypatch.setattr("tfrctrace.parsers.remote._FIRST_RANGE", 10_000)
    monkeypatch.setattr("tfrctrace.parsers.remote._RETRIES", 1)
    monkeypatch.setattr("tfrctrace.parsers.remote._TRIES", 2)
    store.objects["/bucket/link.pcapng.gz"] = SAMPLE
    for name, value in trouble.items():
        setattr(store, name, value)
    if store.stalls:
        monkeypatch.setenv("TFRCTRACE_STORE_TIMEOUT", "1")
    if store.drips:
        monkeypatch.setenv("TFRCTRACE_STORE_TIMEOUT", "3")
    outcome, _ = flows_of(run, f"{store.url}/bucket/link.pcapng.gz?{SECRET}")
    assert outcome.status == NOT_READ
    assert words in outcome.err
    assert f"`{store.url}/bucket/link.pcapng.gz`" in outcome.err
    assert SECRET not in outcome.err + outcome.out
    assert "AKIASECRET" not in outcome.err + outcome.out
    assert any(SECRET in line for line in store.requests)


def test_a_signature_is_in_no_result(run, store, tmp_path):
    store.objects["/bucket/link.pcapng.gz"] = SAMPLE
    url = f"{store.url}/bucket/link.pcapng.gz?{SECRET}"
    assert run("report", url, "-o", "link.html", "--results", "saved").status == 0
    assert run("batch", url, "-o", "results", "-j", "1").status == 0
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"5ecret" not in path.read_bytes(), path


def test_a_batch_reads_a_bucket_once(run, store, tmp_path, write_capture, conversation):
    for number in range(3):
        path = write_capture(
            f"link-{number}.pcap", conversation(port=40_000 + number), start_s=1_700_000_000 + number
        )
        store.objects[f"/bucket/night/link-{number}.pcap"] = path.read_bytes()
    store.objects["/bucket/night/readme.txt"] = b"no capture"
    line = ["batch", "s3://bucket/night/", "-o", "results", "--endpoint", store.url, "-j", "1"]
    outcome = run(*line, "--chains", "none")
    assert outcome.status == 0, outcome.err
    index = json.loads((tmp_path / "results" / "index.json").read_text())
    assert [one["name"] for one in index["chains"]] == [
        f"bucket/night/link-{number}.pcap" for number in range(3)
    ]
    store.requests.clear()
    assert "3 done before" in run(*line, "--chains", "none").err
    assert all("list-type" in line for line in store.requests)
    store.etags = ["two"]
    assert "0 done before" in run(*line, "--chains", "none").err
    outcome = run(*line)
    assert "1 chain, 1 of several files" in outcome.err


def test_an_object_that_cannot_be_read_to_its_end_has_no_result(run, store, tmp_path, monkeypatch):
    monkeypatch.setattr("tfrctrace.parsers.remote._FIRST_RANGE", 10_000)
    store.objects["/bucket/link.pcapng.gz"] = SAMPLE
    line = ["batch", "s3://bucket/link.pcapng.gz", "-o", "results", "--endpoint", store.url, "-j", "1"]
    store.etags = ["one", "one", "one", "two", "one"]
    outcome = run(*line)
    assert (outcome.status, "1 chain, 0 done before, 1 failed" in outcome.err) == (NOT_READ, True), (
        outcome.err
    )
    assert not list((tmp_path / "results").rglob("*.parquet"))
    outcome = run(*line, "--retry-failed")
    assert (outcome.status, "1 chain, 0 done before; results" in outcome.err) == (0, True), outcome.err


def test_what_needs_a_file_refuses_an_object(run, store):
    outcome = run("flows", "--pair", f"{store.url}/a.pcap", f"{store.url}/b.pcap")
    assert "is no file, but a pair is read twice" in outcome.err
    outcome = run("batch", f"{store.url}/folder/", "-o", "results")
    assert "cannot be listed: a web server has no folders" in outcome.err


PASSWORD, SIGNATURE = "hunter2", "5ecret5ecret"


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "s3"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["flows", "URL"],
        ["batch", "URL", "-o", "out"],
        ["audit", "URL", "-o", "out"],
        ["compare", "URL", "URL"],
        ["compare", "TRACE", "TRACE", "--cache", "URL"],
        ["check", "TRACE", "-r", "packets > 0", "--baseline", "URL"],
        ["check", "TRACE", "--limits", "URL"],
        ["lake", "URL", "-o", "out"],
        ["merge", "URL", "-o", "out"],
        ["experiment", "URL"],
        ["report", "--from", "URL", "-o", "x.html"],
        ["report", "TRACE", "-o", "URL"],
        ["report", "TRACE", "--anonymize-key", "URL"],
        ["convert", "TRACE", "-w", "rtt", "-o", "URL"],
        ["plot", "TRACE", "-k", "rtt", "-o", "URL"],
        ["capacity", "--scenario", "URL"],
        ["flows", "TRACE", "--dissect", "URL"],
        ["flows", "s3://bucket/x", "--endpoint", "URL"],
    ],
    ids=" ".join,
)
def test_no_command_shows_a_password_or_a_signature_of_any_url(run, tmp_path, arguments, scheme):
    url = f"{scheme}://Bob:{PASSWORD}@host.invalid/x.pcap?Sig={SIGNATURE}"
    named = {"URL": url, "TRACE": str(ROOT / "sample_traces" / "two-flows.pcapng.gz")}
    outcome = run(*(named.get(word, word) for word in arguments))
    assert outcome.status in {2, NOT_READ}
    assert "host.invalid" in outcome.err.lower()
    for secret in (PASSWORD, SIGNATURE):
        assert secret not in outcome.err + outcome.out
        assert not [path for path in tmp_path.rglob("*") if secret in str(path)]


@pytest.mark.parametrize("command", [["flows"], ["batch", "-o", "out"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    "url",
    [
        f"https://[::1/x?{SIGNATURE}",
        f"https://host:99999/x?{SIGNATURE}",
        f"http://?{SIGNATURE}",
        f"s3:///x?{SIGNATURE}",
        f"https://bob:{PASSWORD}@/x",
    ],
)
def test_a_malformed_url_is_refused(run, command, url):
    outcome = run(*command, url)
    assert outcome.status == 2
    assert "is no URL" in outcome.err
    assert SIGNATURE not in outcome.err
    assert PASSWORD not in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [["flows", "https://host/x"], ["flows", "s3://bucket/"], ["batch", "s3://bucket/x", "-o", "out"]],
    ids=" ".join,
)
def test_without_the_extra_a_sentence_names_it(run, monkeypatch, arguments):
    monkeypatch.setitem(sys.modules, "obstore", None)
    outcome = run(*arguments)
    assert outcome.status == 2
    assert "needs the package obstore\nhint:  install it with `pip install 'tfrctrace[cloud]'`" in outcome.err


@pytest.mark.parametrize("content", [b"", b"<html>no capture</html>"])
def test_what_is_no_capture_at_a_url_is_said(run, store, content):
    store.objects["/page"] = content
    outcome = run("flows", f"{store.url}/page?{SECRET}")
    assert outcome.status == NOT_READ
    assert outcome.err.startswith(f"error: `{store.url}/page`")
