"""Objects of stores as inputs: `s3://`, `gs://`, `az://` and `https://`, by obstore.

An object is fetched in ranges, several ahead, all under the ETag of the first answer: one that changes while
it is read is an error, not a mixture. Without an ETag, or from a server without ranges, one answer is all.

A query of a URL may be a signature: it is taken off where the URL comes in, and kept for requests. What a
store answers to a request that failed is not shown: it may repeat the signature or the name of a key.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

_SCHEMES: Final = frozenset({"s3", "gs", "az", "https", "http"})

_FIRST_RANGE: Final = 2**20
"""The first ranges are short, as many objects are; each is twice as long as the one before."""

_LONGEST_RANGE: Final = 16 * 2**20

_AHEAD: Final = 8
"""Ranges that are fetched at one time: one request gives a part of what a store can."""

_RETRIES: Final = 4
"""How often a request is repeated that failed or was not answered."""

_TRIES: Final = 3
"""How often a range is asked for whose answer was cut."""

_LEAST_RATE: Final = 1_000
"""Bytes per second of an answer, over as long as a store may be silent."""

_LONGEST_ANSWER: Final = timedelta(minutes=5)
"""Of a list, or the description of an object."""

_LONGEST_OBJECT: Final = timedelta(hours=12)
"""Of a range, or of the whole of an object that has to be one answer."""

_queries: dict[str, str] = {}
"""Queries of URLs, which may be signatures, by the URL without them."""


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """How stores are reached, beside what the environment says."""

    endpoint: str | None = None
    """Of a store that speaks S3, as `http://minio:9000`."""
    no_credentials: bool = False
    """Whether requests are not signed, as for public buckets."""


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """One object of a store."""

    url: str
    size: int
    etag: str | None


def is_remote(name: str) -> bool:
    """Return whether an input is an object of a store, and no file."""
    scheme, colon, _ = name.partition("://")
    return bool(colon) and scheme.lower() in _SCHEMES


def public_url(url: str) -> str:
    """Return a URL without its query, which is kept for requests.

    Raises `UsageError` for one that names no object, or a user: who reads is said by the query, or by the
    environment of the store.
    """
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(url)
        names_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        names_host = False
    if not names_host:
        raise UsageError(f"`{url}` is no URL", hint="write such as `https://example.org/link.pcap`")
    if "@" in parts.netloc:
        raise UsageError(
            f"`{url}` has a user or a password, which are not used",
            hint="a signature in its query, or the environment of the store, gives access",
        )
    shown = urlunsplit(parts._replace(query="", fragment=""))
    if parts.query:
        _queries[shown] = parts.query
    return shown


def url_with_query(url: str) -> str:
    """Return the URL for requests, for a process that has not seen it come in."""
    query = _queries.get(url)
    return f"{url}?{query}" if query else url


def listed_objects(prefix: str, access: StoreAccess | None) -> list[RemoteObject]:
    """Return the objects whose URLs begin with `prefix`, which ends in `/`."""
    from urllib.parse import urlsplit

    prefix = public_url(prefix)
    if urlsplit(prefix).scheme in {"http", "https"}:
        raise UsageError(
            f"`{prefix}` cannot be listed: a web server has no folders", hint="name the URL of each file"
        )
    obstore = _obstore(prefix)
    root, path = _bucket_and_path(prefix)
    store = _store(root, access or StoreAccess(), _LONGEST_ANSWER)
    with _plain_errors():
        found = [one for part in obstore.list(store, path) for one in part]
    return [RemoteObject(f"{root}/{one['path']}", one["size"], one["e_tag"]) for one in found]


def described_object(url: str, access: StoreAccess) -> RemoteObject:
    """Return size and ETag of an object."""
    obstore = _obstore(url)
    root, path = _bucket_and_path(url)
    store = _store(root, access, _LONGEST_ANSWER)
    with _plain_errors():
        found = obstore.head(store, path)
    return RemoteObject(url, found["size"], found["e_tag"])


class RemoteFile:
    """An object that is read from its start to its end."""

    def __init__(self, url: str, access: StoreAccess, *, etag: str | None = None) -> None:
        """Open `url`; with `etag` it must be that version. Raises OSError if the store refuses."""
        url = public_url(url)
        self._obstore = _obstore(url)
        root, self._path = _bucket_and_path(url)
        self._store = _store(root, access, _LONGEST_OBJECT)
        self._etag = etag
        self._parts: Iterator[bytes] | None = None
        self._part = memoryview(b"")
        self.has_failed = False
        """Whether the store did not give all of it, whatever a decompressor makes of that."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        try:
            with _plain_errors():
                if self._parts is None:
                    self._parts = self._fetched()
                while not self._part:
                    part = next(self._parts, None)
                    if part is None:
                        return b""
                    self._part = memoryview(part)
        except OSError:
            self.has_failed = True
            raise
        taken, self._part = self._part[:size], self._part[size:]
        return bytes(taken)

    def _fetched(self) -> Iterator[bytes]:
        """Give the content in parts."""
        found = self._obstore.head(self._store, self._path)
        self._etag = self._etag or found["e_tag"]
        if self._etag is not None and found["size"]:
            from obstore.exceptions import (  # pyright: ignore[reportMissingImports]
                GenericError,
                NotSupportedError,
            )

            try:
                first = self._range(0, min(_FIRST_RANGE, found["size"]))
            except (NotSupportedError, GenericError):
                pass  # a server without ranges
            else:
                yield first
                yield from self._ranges(len(first), found["size"])
                return
        options: Any = {"if_match": self._etag} if self._etag else {}
        yield from self._answer(options, found["size"])

    def _ranges(self, start: int, size: int) -> Iterator[bytes]:
        """Give the ranges in order, of which some are fetched ahead."""
        from concurrent.futures import ThreadPoolExecutor

        waiting: deque[Future[bytes]] = deque()
        length = _FIRST_RANGE
        with ThreadPoolExecutor(_AHEAD, thread_name_prefix="tfrctrace-store") as pool:
            try:
                while start < size or waiting:
                    while start < size and len(waiting) < _AHEAD:
                        length = min(2 * length, _LONGEST_RANGE)
                        end = min(start + length, size)
                        waiting.append(pool.submit(self._range, start, end))
                        start = end
                    yield waiting.popleft().result()
            finally:
                for one in waiting:
                    one.cancel()

    def _range(self, start: int, end: int) -> bytes:
        """Return the bytes of one range, asked for again if the answer is cut."""
        from obstore.exceptions import GenericError  # pyright: ignore[reportMissingImports]

        options: Any = {"range": (start, end), "if_match": self._etag}
        for _ in range(_TRIES - 1):
            try:
                return b"".join(self._answer(options, end - start))
            except (GenericError, _CutError):
                continue
        return b"".join(self._answer(options, end - start))

    def _answer(self, options: Any, size: int) -> Iterator[bytes]:  # noqa: ANN401  obstore's
        """Give one answer of `size` bytes in parts.

        Raises `_CutError` if they are fewer, and `_SlowError` if they come below the least rate.
        The time between two bytes is not enough: a server that sends one each second would never end.
        """
        period_s = _seconds("TFRCTRACE_STORE_TIMEOUT", 60)
        parts = iter(self._obstore.get(self._store, self._path, options=options).stream(min_chunk_size=1))
        received, waited_s, in_period = 0, 0.0, 0
        while True:
            asked = time.monotonic()
            part = next(parts, None)
            if part is None:
                if received < size:
                    raise _CutError
                return
            # only the time of waiting: between the parts they are analysed
            waited_s += time.monotonic() - asked
            received += len(part)
            in_period += len(part)
            if waited_s >= period_s:
                if in_period < _LEAST_RATE * waited_s and received < size:
                    raise _SlowError
                waited_s, in_period = 0.0, 0
            yield bytes(part)


class _CutError(OSError):
    """An answer has fewer bytes than it is about: what comes next would stand at a wrong place."""


class _SlowError(OSError):
    """An answer comes too slowly."""


def _bucket_and_path(url: str) -> tuple[str, str]:
    """Return the store of a URL and the path in it; of a web server the store is the folder of the file."""
    from urllib.parse import unquote, urlsplit, urlunsplit

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        return f"{parts.scheme}://{parts.netloc}", unquote(parts.path.lstrip("/"))
    folder, _, name = parts.path.rpartition("/")
    return urlunsplit(parts._replace(path=folder, query=_queries.get(url, ""))), unquote(name)


def _store(root: str, access: StoreAccess, longest: timedelta) -> Any:  # noqa: ANN401  one of obstore's
    """Return the store; an answer of it takes at most `longest`."""
    from urllib.parse import urlsplit

    from obstore.exceptions import BaseError  # pyright: ignore[reportMissingImports]
    from obstore.store import HTTPStore, from_url  # pyright: ignore[reportMissingImports]

    client: Any = {
        "timeout": longest,
        "read_timeout": timedelta(seconds=_seconds("TFRCTRACE_STORE_TIMEOUT", 60)),
        "connect_timeout": timedelta(seconds=20),
        "allow_http": True,
    }
    retry: Any = {"max_retries": _RETRIES, "retry_timeout": timedelta(minutes=2)}
    scheme = urlsplit(root).scheme
    config: dict[str, Any] = {"skip_signature": True} if access.no_credentials else {}
    if scheme == "s3" and access.endpoint is not None:
        config["endpoint"] = public_url(access.endpoint)
    try:
        if scheme in {"http", "https"}:
            return HTTPStore.from_url(root, client_options=client, retry_config=retry)
        return from_url(root, client_options=client, retry_config=retry, **config)
    except (ValueError, BaseError):
        raise UsageError(
            f"`{root}` names no store that can be asked",
            hint="look at the URL, at `--endpoint`, and at the environment of the store",
        ) from None  # its words may have a key


def _seconds(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else otherwise


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn errors of obstore, which may repeat signatures, into sentences of our own."""
    try:
        yield
    except Exception as error:
        if not (type(error).__module__.startswith("obstore") or isinstance(error, OSError)):
            raise
        raise OSError(_SENTENCES.get(type(error).__name__, _OTHERWISE)) from None


def _obstore(url: str) -> Any:  # noqa: ANN401  a module that may be missing
    try:
        import obstore  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UsageError(
            f"`{url}` needs the package obstore", hint="install it with `pip install 'tfrctrace[cloud]'`"
        ) from None
    return obstore


_OTHERWISE: Final = "the store did not answer as it should"

_SENTENCES: Final = {
    "NotFoundError": "there is no such object",
    "FileNotFoundError": "there is no such object",
    "PreconditionError": "the object changed while it was read: its ETag is another",
    "PermissionDeniedError": "the store denies access",
    "UnauthenticatedError": "the store does not accept the credentials",
    "_SlowError": "the store sends fewer than 1,000 bytes a second",
}
