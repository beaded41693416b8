"""A web server, and a store that speaks S3, that lie: about sizes, ranges, versions, lists and themselves."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from case import Case, NotHereError
from program import NOT_READ, lay
from traces import content

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from program import Program

TRACE: Final = "sample_traces/two-flows.pcapng.gz"
SECRET: Final = "X-Amz-Signature=5ecret5ecret"
KEY: Final = "AKIA5ECRETKEY"
MOST_LISTED: Final = 3_000
"""Answers after which a list that never ends is ended by its server."""
QUIET_S: Final = 2
"""What the environment gives stores to answer."""

LIES: Final = (
    *(
        "nothing",
        "longer",
        "shorter",
        "cut",
        "other range",
        "all for a range",
        "another version",
        "no version",
    ),
    *("error page", "status 500", "status 418", "no status", "to itself", "to a file", "silent", "drips"),
    *("negative length", "two lengths", "wrong chunks", "claims gzip", "endless head"),
)
OF_LISTS: Final = ("nothing", "for ever", "no XML", "strange keys", "huge sizes", "cut")
HARMLESS: Final = frozenset({"nothing", "all for a range", "no version"})
"""With which the result is that of the file."""


class LyingStores:
    """A lie ends in a sentence or the right result, never in another result, a secret, or a hang."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Read the trace as a file."""
        if find_spec("obstore") is None:
            raise NotHereError("obstore is not installed: pip install 'tfrctrace[cloud]'")
        lay(folder / "link.pcapng", content(TRACE, 20_000))
        self.trace = (folder / "link.pcapng").read_bytes()
        ended = program.run(["flows", "--format", "json", "link.pcapng"], folder)
        self.flows = flows_of(ended.out)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command, a scheme, a lie, and at which answer it begins."""
        what = chance.choice(("flows", "flows", "list"))
        lie = chance.choice(OF_LISTS if what == "list" else LIES)
        setting: dict[str, int | str] = {"lie": lie, "from": chance.choice((0, 0, 1, 2))}
        if what == "list":
            return Case(
                ("batch", "s3://bucket/night/", "-o", "out", "-j", "1", "--endpoint", "SERVER"),
                setting=setting,
            )
        by_s3 = ("flows", "--format", "json", "s3://bucket/link.pcapng", "--endpoint", "SERVER")
        by_web = ("flows", "--format", "json", f"SERVER/bucket/link.pcapng?{SECRET}")
        return Case(chance.choice((by_s3, by_web)), setting=setting)

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command against a server of its own."""
        lie = str(case.setting["lie"])
        server = Server(("127.0.0.1", 0), Handler)
        server.lie, server.honest, server.trace = lie, int(case.setting["from"]), self.trace
        url = f"http://127.0.0.1:{server.server_address[1]}"
        child = os.fork()
        if not child:
            serve(server)
        server.server_close()
        environment = {
            "TFRCTRACE_STORE_TIMEOUT": str(QUIET_S),
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": f"{KEY}-5ecret",
            "AWS_REGION": "eu-central-1",
        }
        try:
            line = [word.replace("SERVER", url) for word in case.line()]
            ended = program.run(line, folder, before=partial(os.environ.update, environment))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        wrong = ended.wrong()
        if "5ecret" in ended.err or b"5ecret" in ended.out or KEY in ended.err:
            wrong.append("a secret is printed")
        wrong += [
            f"a secret is in {path.name}"
            for path in folder.rglob("*")
            if path.is_file() and b"5ecret" in path.read_bytes()
        ]
        is_whole = case.command[0] == "flows" and ended.out and ended.status != NOT_READ
        if is_whole and flows_of(ended.out) != self.flows:
            wrong.append(f"another result without an error: {ended.err}")
        if lie in HARMLESS and case.command[0] == "flows" and ended.status:
            wrong.append(f"exit status {ended.status} without a lie: {ended.err}")
        return wrong


def flows_of(output: bytes) -> list[dict[str, Any]]:
    """Return the flows of a document, without the names of their sources."""
    return [{**flow, "source": ""} for flow in json.loads(output)["flows"]] if output else []


def serve(server: Server) -> None:
    """Serve in this process, which ends."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        server.serve_forever(0.05)
    finally:
        os._exit(0)


class Server(ThreadingHTTPServer):
    """Lies from some answer on."""

    lie = "nothing"
    honest = 0
    """Answers that are still honest."""
    trace = b""
    listed = 0


class Handler(BaseHTTPRequestHandler):
    """Answers as S3 does with path-style names, or as a web server, and lies."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        """Give one answer."""
        server = self.server
        server.honest -= 1
        lie = server.lie if server.honest < 0 else "nothing"
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            server.listed += 1
            lie = "nothing" if server.listed > MOST_LISTED else lie
            return self.send(200, listing(lie, server.listed, len(server.trace)), {}, lie)
        body, status, more = (
            server.trace,
            200,
            {"ETag": '"one"', "Last-Modified": "Mon, 05 Jan 2026 00:00:00 GMT"},
        )
        wanted = self.headers.get("Range")
        if wanted and lie != "all for a range":
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or len(body)) + 1, len(body))
            if lie == "other range":
                start, stop = start + 100, stop + 100
            more["Content-Range"] = f"bytes {start}-{stop - 1}/{len(body)}"
            body, status = body[start:stop], 206
        if lie == "no version":
            del more["ETag"]
        if lie == "another version":
            more["ETag"] = f'"{time.monotonic_ns()}"'
        return self.send(status, body, more, lie)

    def send(self, status: int, body: bytes, more: dict[str, str], lie: str) -> None:
        """Write an answer as the lie has it."""
        self.close_connection = True
        known: dict[str, Callable[[], tuple[int, bytes, dict[str, str]]]] = {
            "error page": lambda: (200, b"<html>log in</html>", {}),
            "status 500": lambda: (500, f"<Error>{KEY}</Error>".encode(), {}),
            "status 418": lambda: (418, b"", {}),
            "to itself": lambda: (302, b"", {"Location": self.path}),
            "to a file": lambda: (302, b"", {"Location": "file:///etc/passwd"}),
            "claims gzip": lambda: (status, body, {**more, "Content-Encoding": "gzip"}),
        }
        status, body, more = known[lie]() if lie in known else (status, body, more)
        if lie == "silent":
            time.sleep(60)
        if lie == "no status":
            self.wfile.write(b"\xff\x00 what?\r\n\r\n")
            return
        lengths = {"longer": [len(body) + 999], "shorter": [len(body) // 2], "negative length": [-5]}
        lengths["two lengths"] = [len(body), 7]
        self.send_response(status)
        if lie == "wrong chunks":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"zz\r\n" + body
        else:
            for length in lengths.get(lie, [len(body)]):
                self.send_header("Content-Length", str(length))
        for name, value in more.items():
            self.send_header(name, value)
        if lie == "endless head":
            for number in range(100_000):
                self.send_header(f"X-{number}", "x" * 1_000)
        self.end_headers()
        if self.command == "HEAD":
            return
        if lie == "drips":
            for byte in body[:200]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.1)
            return
        self.wfile.write(body[: len(body) // 2] if lie == "cut" else body)


def listing(lie: str, number: int, size: int) -> bytes:
    """Return a part of the list of a bucket."""
    if lie == "no XML":
        return b"<html><body>log in"
    keys = ["night/link.pcapng"]
    if lie == "strange keys":
        keys += [
            "../../etc/passwd",
            "night//x.pcap",
            "night/" + "x" * 2_000 + ".pcap",
            "night/\u202e.pcap",
            "",
        ]
    if lie == "huge sizes":
        size = 2**63 - 1
    found = "".join(
        f'<Contents><Key>{key}</Key><Size>{size}</Size><ETag>"one"</ETag>'
        "<LastModified>2026-01-05T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    )
    more = f"<NextContinuationToken>{number}</NextContinuationToken>" if lie == "for ever" else ""
    ends = "true" if more else "false"
    return f"<ListBucketResult><IsTruncated>{ends}</IsTruncated>{more}{found}</ListBucketResult>".encode()
