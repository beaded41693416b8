"""Short TCP connections: a server that sends what it is asked for, and a client that asks.

`short_flows.py serve ADDRESS PORT` runs until SIGTERM; `short_flows.py ask ADDRESS PORT SIZE...`
opens one connection for each SIZE and prints, as JSON, what it received and what the kernel says
of each connection (`TCP_INFO`).
"""

from __future__ import annotations

import json
import socket
import struct
import sys

# struct tcp_info of linux/tcp.h: tcpi_total_retrans is the 32-bit word at this offset
TOTAL_RETRANS_OFFSET = 100


def serve(address: str, port: int) -> None:
    """Answer each connection with as many bytes as its four-byte request asks for."""
    with socket.create_server((address, port), family=_family(address)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                (wanted,) = struct.unpack("!I", connection.recv(4))
                connection.sendall(bytes(wanted))


def ask(address: str, port: int, size: int) -> dict[str, int]:
    """Fetch `size` bytes and return what happened."""
    with socket.create_connection((address, port)) as connection:
        local_port = connection.getsockname()[1]
        connection.sendall(struct.pack("!I", size))
        received = 0
        while chunk := connection.recv(65_536):
            received += len(chunk)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        (retransmitted,) = struct.unpack_from("=I", info, TOTAL_RETRANS_OFFSET)
    return {
        "client_port": local_port,
        "server_port": port,
        "bytes_received": received,
        "client_retransmissions": retransmitted,
    }


def knock(address: str, port: int) -> dict[str, int | str]:
    """Try a TCP port and a UDP port where nobody listens."""
    with socket.socket(_family(address), socket.SOCK_STREAM) as connection:
        outcome = connection.connect_ex((address, port))
    with socket.socket(_family(address), socket.SOCK_DGRAM) as datagram:
        datagram.sendto(b"anybody there?", (address, port))
    return {"port": port, "connect_errno": outcome}


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def main() -> None:
    """Run the part that the first argument names."""
    role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if role == "serve":
        serve(address, port)
    elif role == "ask":
        print(json.dumps([ask(address, port, int(size)) for size in sys.argv[4:]]))
    elif role == "knock":
        print(json.dumps(knock(address, port)))
    else:
        sys.exit(f"unknown part `{role}`")


if __name__ == "__main__":
    main()
