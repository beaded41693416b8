"""Logs of variables that do not say whose they are: `FILE=FROM,TO` names the connection."""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tfrctrace.base.errors import UsageError

_END: Final = re.compile(r"(?:\[([^]]+)\]|([^:]+)):([0-9]{1,5})", re.ASCII)
_HINT: Final = (
    "write FILE=FROM,TO, as `tcp_7_1130000000.txt=10.0.0.1:5000,10.0.0.2:80`: FROM has the variables"
)

LogOwner = tuple[str, str, str]
"""A log, the sender whose variables it has, and the peer."""


def parse_log_owner(text: str) -> tuple[str, str]:
    """Return the file and the connection of `FILE=FROM,TO`. Raises `UsageError` for others."""
    file, _, connection = text.rpartition("=")
    log_owners({file: connection})
    return file, connection


def log_owners(connections: Mapping[str, str] | None) -> tuple[LogOwner, ...]:
    """Return the logs with their ends. Raises `UsageError` for what is no connection."""
    return tuple(_owner(file, connection) for file, connection in (connections or {}).items())


def _owner(file: str, connection: str) -> LogOwner:
    ends = [end.strip() for end in connection.split(",")]
    versions = {_version(end) for end in ends}
    if not file or len(ends) != 2 or len(versions) != 1 or None in versions:
        raise UsageError(f"`{file}={connection}` does not name a log and its connection", hint=_HINT)
    return file, ends[0], ends[1]


def _version(end: str) -> int | None:
    """Return the version of IP of `10.0.0.1:5000` or `[fe80::1]:5000`; None if it is neither."""
    match = _END.fullmatch(end)
    try:
        return ipaddress.ip_address(match[1] or match[2]).version if match and int(match[3]) < 2**16 else None
    except ValueError:
        return None


def check_logs(owners: Sequence[LogOwner], names: Iterable[str]) -> None:
    """Raise `UsageError` if a log that has a connection is none of the inputs."""
    inputs = [f"/{name}" for name in names]
    for file, _, _ in owners:
        if not any(name.endswith(f"/{file}") for name in inputs):
            raise UsageError(f"`{file}` has a connection, and is none of the inputs", hint="add it to them")
