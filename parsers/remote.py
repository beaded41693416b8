"""Objects of stores as inputs: `s3://`, `gs://`, `az://` and `https://`, by obstore.

An object is fetched in ranges, several ahead, all under the ETag of the first answer: one that changes while
it is read is an error, not a mixture. Without an ETag, or from a server without ranges, one answer is all.

A query of a URL may be a signature: it is taken off where the URL comes in, and kept for requests. What a
store answers to a request that failed is not shown: it may repeat the signature or the name of a key.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
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

_queries: dict[str, str] = {}
"""Queries of URLs, which may be signatures, by the URL without them."""


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """How stores are reached, beside what the environment says."""

    endpoint: str | None = None
    """Of a store that speaks S3, as `http://minio:9000`."""
    anonymous: bool = False
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
    return bool(colon) and scheme in _SCHEMES


def public_url(url: str) -> str:
    """Return a URL without its query and password, which are kept for requests."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    shown = urlunsplit(parts._replace(query="", fragment="", netloc=parts.netloc.rpartition("@")[2]))
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

    import obstore  # pyright: ignore[reportMissingImports]

    if urlsplit(prefix).scheme in {"http", "https"}:
        raise UsageError(
            f"`{prefix}` cannot be listed: a web server has no folders", hint="name the URL of each file"
        )
    root, path = _bucket_and_path(prefix)
    with _plain_errors(prefix):
        found = [one for part in obstore.list(_store(root, access or StoreAccess()), path) for one in part]
    return [RemoteObject(f"{root}/{one['path']}", one["size"], one["e_tag"]) for one in found]


def described_object(url: str, access: StoreAccess) -> RemoteObject:
    """Return size and ETag of an object."""
    import obstore  # pyright: ignore[reportMissingImports]

    root, path = _bucket_and_path(url)
    with _plain_errors(url):
        found = obstore.head(_store(root, access), path)
    return RemoteObject(url, found["size"], found["e_tag"])


class RemoteFile:
    """An object that is read from its start to its end."""

    def __init__(self, url: str, access: StoreAccess, *, etag: str | None = None) -> None:
        """Open `url`; with `etag` it must be that version. Raises OSError if the store refuses."""
        self._url = public_url(url)
        root, self._path = _bucket_and_path(self._url)
        self._store = _store(root, access)
        self._etag = etag
        self._parts: Iterator[bytes] | None = None
        self._part = memoryview(b"")
        self.has_failed = False
        """Whether the store did not give all of it, whatever a decompressor makes of that."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        try:
            with _plain_errors(self._url):
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
        import obstore  # pyright: ignore[reportMissingImports]

        found = obstore.head(self._store, self._path)
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
        for part in obstore.get(self._store, self._path, options=options).stream(min_chunk_size=2**20):
            yield bytes(part)

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
        import obstore  # pyright: ignore[reportMissingImports]
        from obstore.exceptions import GenericError  # pyright: ignore[reportMissingImports]

        options: Any = {"range": (start, end), "if_match": self._etag}
        for _ in range(_TRIES - 1):
            try:
                return bytes(obstore.get(self._store, self._path, options=options).bytes())
            except GenericError:
                continue
        return bytes(obstore.get(self._store, self._path, options=options).bytes())


def _bucket_and_path(url: str) -> tuple[str, str]:
    """Return the store of a URL and the path in it; of a web server the store is the folder of the file."""
    from urllib.parse import unquote, urlsplit, urlunsplit

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        return f"{parts.scheme}://{parts.netloc}", unquote(parts.path.lstrip("/"))
    folder, _, name = parts.path.rpartition("/")
    return urlunsplit(parts._replace(path=folder, query=_queries.get(url, ""))), unquote(name)


def _store(root: str, access: StoreAccess) -> Any:  # noqa: ANN401  one of obstore's
    from datetime import timedelta
    from urllib.parse import urlsplit

    from obstore.store import HTTPStore, from_url  # pyright: ignore[reportMissingImports]

    client: Any = {
        # of one range, or of the whole of an object that has to be one answer
        "timeout": timedelta(hours=12),
        "read_timeout": timedelta(seconds=_seconds("TFRCTRACE_STORE_TIMEOUT", 60)),
        "connect_timeout": timedelta(seconds=20),
        "allow_http": True,
    }
    retry: Any = {"max_retries": _RETRIES, "retry_timeout": timedelta(minutes=2)}
    scheme = urlsplit(root).scheme
    if scheme in {"http", "https"}:
        return HTTPStore.from_url(root, client_options=client, retry_config=retry)
    config: dict[str, Any] = {"skip_signature": True} if access.anonymous else {}
    if scheme == "s3" and access.endpoint is not None:
        config["endpoint"] = access.endpoint
    return from_url(root, client_options=client, retry_config=retry, **config)


def _seconds(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else otherwise


class _plain_errors:  # noqa: N801  a context manager
    """Turns errors of obstore, which may repeat signatures, into sentences of our own."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        if not _has_obstore():
            raise UsageError(
                f"`{self._url}` needs the package obstore",
                hint="install it with `pip install 'tfrctrace[cloud]'`",
            )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        is_of_store = type(error).__module__.startswith("obstore") or isinstance(error, OSError)
        if is_of_store:
            raise OSError(_SENTENCES.get(type(error).__name__, _OTHERWISE)) from None


def _has_obstore() -> bool:
    from importlib.util import find_spec

    return find_spec("obstore") is not None


_OTHERWISE: Final = "the store did not answer as it should"

_SENTENCES: Final = {
    "NotFoundError": "there is no such object",
    "FileNotFoundError": "there is no such object",
    "PreconditionError": "the object changed while it was read: its ETag is another",
    "PermissionDeniedError": "the store denies access",
    "UnauthenticatedError": "the store does not accept the credentials",
}
