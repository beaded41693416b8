"""Two hosts and what is between them, as network namespaces that exist only as long as a case runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cases import Case

OFFLOADS = ("tso", "gso", "gro", "tx")


def run(*command: str, check: bool = True) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Network:
    """snd --- between --- rcv: one subnet with a relay between, or two with a router."""

    def __init__(self, case: Case, here: Path, folder: Path) -> None:
        self.case, self.here, self.folder = case, here, folder
        self.names = {host: f"corpus{os.getpid()}-{host}" for host in ("snd", "mid", "rcv")}
        far_net = "2" if case.routed else "1"
        if case.ipv6:
            self.near, self.far = "fd00:77::1", "fd00:77::2"
        else:
            self.near, self.far = "10.77.1.1", f"10.77.{far_net}.2"
        self.relay: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Network:
        """Make the namespaces and connect them."""
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._wire("snd", "s0", "r0")
        self._wire("rcv", "d0", "r1")
        for setting in self.case.sysctl:
            for host in ("snd", "rcv"):
                run(*self.inside(host), "sysctl", "-qw", setting)
        self._address()
        if self.case.routed:
            run(*self.inside("mid"), "tc", "qdisc", "add", "dev", "r1", "root", *self.case.routed.split())
            if self.case.router_loss:
                self._lose(self.case.router_loss)
        else:
            self.relay = self._start_relay()
        return self

    def __exit__(self, *_: object) -> None:
        """Take all of it away."""
        if self.relay is not None:
            self.relay.terminate()
            self.relay.wait()
        for name in self.names.values():
            run("ip", "netns", "del", name)

    def inside(self, host: str) -> tuple[str, ...]:
        """Return the beginning of a command that runs in a host's namespace."""
        return ("ip", "netns", "exec", self.names[host])

    def start(self, host: str, *command: str, output: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a command on a host."""
        if output is None:
            return subprocess.Popen((*self.inside(host), *command), stderr=subprocess.DEVNULL)
        with output.open("wb") as file:
            return subprocess.Popen((*self.inside(host), *command), stdout=file)

    def _wire(self, host: str, end: str, middle: str) -> None:
        run("ip", "link", "add", end, "netns", self.names[host], "type", "veth", "peer", "name", middle,
            "netns", self.names["mid"])  # fmt: skip
        for place, device in ((host, end), ("mid", middle)):
            # neighbour discovery and MLD are no part of a case
            run(*self.inside(place), "sysctl", "-qw", f"net.ipv6.conf.{device}.accept_dad=0")
            run("ip", "-n", self.names[place], "link", "set", device, "up")
            for offload in OFFLOADS:
                state = "on" if self.case.offload else "off"
                run(*self.inside(place), "ethtool", "-K", device, offload, state, check=False)

    def _address(self) -> None:
        bits = "64" if self.case.ipv6 else "24"
        run("ip", "-n", self.names["snd"], "addr", "add", f"{self.near}/{bits}", "dev", "s0")
        run("ip", "-n", self.names["rcv"], "addr", "add", f"{self.far}/{bits}", "dev", "d0")
        if self.case.routed:
            for device, host, net in (("r0", "snd", "1"), ("r1", "rcv", "2")):
                run("ip", "-n", self.names["mid"], "addr", "add", f"10.77.{net}.254/24", "dev", device)
                run("ip", "-n", self.names[host], "route", "add", "default", "via", f"10.77.{net}.254")
            run(*self.inside("mid"), "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def _lose(self, share: float) -> None:
        chain = "{ type filter hook forward priority 0; }"
        random_drop = f"numgen random mod 10000 < {round(share * 10_000)} drop"
        for rule in ("table ip loss", f"chain ip loss forward {chain}"):
            run(*self.inside("mid"), "nft", "add", *rule.split())
        run(*self.inside("mid"), "nft", "add", "rule", "ip", "loss", "forward", "oifname", "r1",
            *random_drop.split())  # fmt: skip

    def _start_relay(self) -> subprocess.Popen[bytes]:
        files = (str(self.folder / name) for name in ("case.json", "mid.pcap", "harmed.json"))
        return subprocess.Popen(
            (*self.inside("mid"), sys.executable, str(self.here / "relay.py"), "r0", "r1", *files)
        )
