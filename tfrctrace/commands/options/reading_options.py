"""How traces are read: the options that every command with traces has, and the trace they describe."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from tfrctrace.api import Trace
from tfrctrace.commands.options.common import Hidden, Quiet, Strict, Timezone
from tfrctrace.commands.options.grouped_help import reading_option
from tfrctrace.parsers.reading_settings import MAX_FLOWS, MAX_SAMPLES
from tfrctrace.parsers.remote import StoreAccess

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.commands.console import Console
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.reading import Pass

NOT_OF_CHAINS: Final = Hidden(("join", "pair", "clock_offset"))
"""What a batch decides by itself, or cannot do."""

NodeLayer = Literal["agent", "routing", "ip", "queue", "mac", "phy", "link"]
VantagePoint = Literal["auto", "sender", "receiver", "middle"]

Format = Annotated[
    str | None,
    reading_option(
        "--input-format",
        metavar="NAME",
        help="Format of inputs that cannot be recognized: pcap, ns2, ns3, tcpdump, ...",
    ),
]
Layer = Annotated[
    NodeLayer | None,
    reading_option(
        "--layer",
        help="Layer at which simulated packets count as sent and received; default: the highest one.",
    ),
]
Filter = Annotated[
    str | None,
    reading_option(
        "--filter",
        "-f",
        metavar="EXPRESSION",
        help="Read only packets that match this tcpdump expression (captures only).",
    ),
]
Since = Annotated[
    str | None,
    reading_option(
        "--since",
        metavar="TIME",
        help="Leave out packets before a date ('2026-11-23 14:05'), a time of day (14:05) or a time since "
        "the start (90s).",
    ),
]
Until = Annotated[
    str | None, reading_option("--until", metavar="TIME", help="Leave out packets from this time on.")
]
Last = Annotated[
    str | None,
    reading_option("--last", metavar="TIME", help="Read only the last TIME of each trace, e.g. 10min."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How the inputs are read, whichever command reads them."""

    filter: Filter = None
    input_format: Format = None
    layer: Layer = None
    vantage: Annotated[
        VantagePoint,
        reading_option(
            "--vantage",
            help="Where captures were taken, relative to the direction with more payload; auto infers it.",
        ),
    ] = "auto"
    dissect: Annotated[
        list[str] | None,
        reading_option(
            "--dissect",
            metavar="udp:PORT=LAYOUT",
            help="Header of UDP datagrams on PORT: iperf2, iperf3, iperf3-64, ns3, twamp, irtt, srt, rtp, "
            "rtp/CLOCKRATE, a TFRC layout as FILE.toml or by name (cmb, tinycontrol), or a scapy class as "
            "module:Class.",
        ),
    ] = None
    tfrc: Annotated[
        list[str] | None,
        reading_option(
            "--tfrc",
            metavar="NAME=VALUE",
            help="TFRC parameters. Captures: profile=rfc5348, rfc3448 or linux; rtt=50ms for flows without "
            "an RTT. ns-2: parameters set by the script, e.g. df=0.9 or tcp_tick=0.01.",
        ),
    ] = None
    log_of: Annotated[
        list[str] | None,
        reading_option(
            "--log-of",
            metavar="FILE=FROM,TO",
            help="Connection of a log of TCP variables that does not name it, e.g. "
            "tcp_7_1130000000.txt=10.0.0.1:5000,10.0.0.2:80; FROM is the sender that has the variables.",
        ),
    ] = None
    tunnel_port: Annotated[
        list[str] | None,
        reading_option(
            "--tunnel-port",
            metavar="NAME=PORT",
            help="Further UDP port of an encapsulation, e.g. vxlan=8472: vxlan, vxlan-gpe, geneve, gtp-u, "
            "l2tp, teredo, mpls, gre or esp.",
        ),
    ] = None
    join: Annotated[
        bool,
        reading_option("--join", help="Read all captures as the parts of one, in the order of their times."),
    ] = False
    pair: Annotated[
        bool,
        reading_option(
            "--pair",
            help="Match packets between captures of one path, near the sender and near the receiver, to "
            "measure delay and loss; more than two must have one clock.",
        ),
    ] = False
    clock_offset: Annotated[
        str | None,
        reading_option(
            "--clock-offset",
            metavar="TIME",
            show_default="estimated",
            help="How far the second capture's clock is ahead, e.g. -2.5s; 0s if both share a clock.",
        ),
    ] = None
    since: Since = None
    until: Until = None
    last: Last = None
    timezone: Timezone = "UTC"
    idle_timeout: Annotated[
        str | None,
        reading_option(
            "--idle-timeout",
            metavar="TIME",
            show_default="UDP 5min, half-open TCP 4min, else 124min",
            help="End a flow that has no packet for this long; later packets are another flow.",
        ),
    ] = None
    max_flows: Annotated[
        int,
        reading_option(
            "--max-flows",
            min=1,
            metavar="N",
            show_default=f"{MAX_FLOWS:,}",
            help="Follow at most N flows at a time per trace.",
        ),
    ] = MAX_FLOWS
    endpoint: Annotated[
        str | None,
        reading_option(
            "--endpoint",
            metavar="URL",
            help="Store that speaks S3, e.g. http://minio:9000, for s3:// inputs.",
        ),
    ] = None
    no_credentials: Annotated[
        bool, reading_option("--no-credentials", help="Read public objects of stores without credentials.")
    ] = False
    max_decompressed_bytes: Annotated[
        int | None,
        reading_option(
            "--max-decompressed",
            min=1,
            metavar="N",
            show_default="1,000 times the input beyond 1 GiB",
            help="Stop after N decompressed bytes of an input.",
        ),
    ] = None
    strict: Strict = False
    quiet: Quiet = False

    @property
    def zone(self) -> TimeZone | None:
        """The time zone of what is printed; None for UTC, which needs no rules."""
        if self.timezone == "UTC":
            return None
        from tfrctrace.base.timezones import TimeZone

        return TimeZone.named(self.timezone)

    def open(
        self,
        traces: list[str],
        console: Console,
        *,
        max_samples: int = MAX_SAMPLES,
        bin_ns: int | None = None,
        anonymizer: Anonymizer | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Trace:
        """Return the trace, which reports to `console` while it is read.

        `meanwhile` is called once the core is at work: the place to load what is needed afterwards.
        """
        from tfrctrace.parsers.logs import check_logs
        from tfrctrace.parsers.reading_settings import read_settings
        from tfrctrace.parsers.sources import find_inputs

        arguments: Any = self.arguments() | {"max_samples": max_samples}
        settings = read_settings(arguments, anonymizer, spelled=_flag)
        inputs = find_inputs(traces, join=self.join, store=settings.store)
        check_logs(settings.log_of, inputs.names)
        if settings.pair is not None:
            from tfrctrace.parsers.pairing import check_pair

            check_pair(inputs.names, settings.pair)

        def watch(running: Pass) -> None:
            if meanwhile:
                meanwhile()
            console.watch(running)

        return Trace(inputs, settings, bin_ns=bin_ns, watch=watch, on_problems=console.print_problems)

    @property
    def store(self) -> StoreAccess:
        """How objects of stores are reached."""
        return StoreAccess(self.endpoint, self.no_credentials)

    def arguments(self) -> Any:  # noqa: ANN401  `ReadingArguments`, by construction
        """Return the options as keywords of `tfrctrace.open`."""
        from tfrctrace.parsers.logs import parse_log_owner
        from tfrctrace.parsers.tfrc import parse_parameter

        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del own["strict"], own["quiet"]
        return own | {
            "vantage": None if self.vantage == "auto" else self.vantage,
            "dissect": self.dissect or (),
            "tfrc": dict(map(parse_parameter, self.tfrc or ())),
            "log_of": dict(map(parse_log_owner, self.log_of or ())),
            "tunnel_port": self.tunnel_port or (),
        }


def _flag(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"
