"""PCAP over IP as an input: `tcp://127.0.0.1:57012` sends a capture as if it were a file, and then closes.

Arkime, PolarProxy and `tcpdump -w - | nc -l` serve it, Wireshark and NetworkMiner read it. There is no
protocol but TCP: https://www.netresec.com/?page=Blog&month=2022-08&post=What-is-PCAP-over-IP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    import socket

_SCHEME: Final = "tcp://"

_CONNECT_TIMEOUT_S: Final = 20


def is_pcap_over_ip(name: str) -> bool:
    """Return whether an input is a server that sends a capture."""
    return name.lower().startswith(_SCHEME)


def host_and_port(url: str) -> tuple[str, int]:
    """Return host and port of a URL. Raises `UsageError` if it has more or less than these."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        has_more = bool("@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment)
    except ValueError:
        host, port, has_more = None, None, False
    if not host or not port or has_more:
        raise UsageError(
            f"`{url}` is no server of PCAP over IP", hint="write host and port, as in `tcp://127.0.0.1:57012`"
        )
    return host, port


class CaptureServer:
    """A capture that a server sends, read from its start to the end of the connection.

    A server that is silent is waited for, as a pipe is: it may serve live traffic.
    """

    def __init__(self, url: str) -> None:
        """Name a server; the connection is made by the first read, whose thread can be interrupted."""
        self._address = host_and_port(url)
        self._socket: socket.socket | None = None
        self._is_over = False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end, however often. Raises OSError with a sentence."""
        if self._is_over:
            return b""
        try:
            if self._socket is None:
                import socket

                self._socket = socket.create_connection(self._address, timeout=_CONNECT_TIMEOUT_S)
                self._socket.settimeout(None)
                # a server whose machine is gone closes nothing
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            received = self._socket.recv(size)
        except OSError as error:
            done = "connect" if self._socket is None else "read"
            raise OSError(f"cannot {done}: {(error.strerror or str(error)).lower()}") from None
        if not received:
            self._is_over = True
            self._socket.close()
        return received
