"""The surface of the Rust core, typed. Nothing here touches metrics, reports or the command line."""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Protocol, TypeAlias, TypedDict, final

import numpy.typing as npt

from tfrctrace.base.errors import Problem
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.parsers.schema import ColumnType

class SourceSummary(TypedDict):
    """What one input held."""

    source: str
    format: str
    """One of `input_formats`, or empty when it was not recognised."""
    compression: str
    """`gzip`, `zstd`, `lz4`, `xz`, or empty."""
    link_types: list[str]
    interfaces: list[dict[str, Any]]
    """`name`, `link_type`, `snap_length_bytes`, `packets`, `dropped_packets` (null when not recorded)."""
    start_ns: int | None
    end_ns: int | None
    packets: int
    filtered_packets: int
    """Packets that the filter left out (they are not in the other counts)."""
    outside_packets: int
    """Packets outside of the stretch of time that is read (they are not in the other counts)."""
    tcp_packets: int
    udp_packets: int
    dccp_packets: int
    tfrc_packets: int
    """Data and feedback of a simulator's TFRC."""
    other_ip_packets: int
    non_ip_packets: int
    undecoded_packets: int
    """Packets in which no IP header could be read."""
    untracked_packets: int
    """TCP and UDP packets of flows beyond the bound on their number."""
    portless_packets: int
    """TCP and UDP packets without readable ports, or fragments whose first is missing: in no flow."""
    repeated_packets: int
    """TCP and UDP packets in 802.11 frames that the capture had shown before: not counted in their flow."""
    decode_stops: list[dict[str, Any]]
    """`layer`, `reason`, `packets`, `first_packet`."""
    out_of_order_times: int
    """Packets with a time before their predecessor's."""
    clock_steps: list[dict[str, int]]
    """`packet`, `before_ns`, `after_ns`, `step_ns` of steps that TCP timestamps prove."""
    lines: int
    """Lines of a text, all of them."""
    other_lines: int
    """Lines that are understood and no packets."""
    bad_lines: int
    """Lines that are not understood."""
    wire_bytes: int
    captured_bytes: int

class Clock(TypedDict):
    """The clock of the second of two captures against that of the first."""

    is_given: bool
    """Whether the user gave the offset; the bounds are what the packets say all the same."""
    has_delays: bool
    """Whether the offset, and so delays, are known."""
    reference_ns: int
    """When, by the first clock, the second one was ahead by `offset_ns`."""
    offset_ns: int
    offset_low_ns: int | None
    """Smallest with which no packet arrives before it is sent; null without packets of that direction."""
    offset_high_ns: int | None
    """Largest, likewise."""
    drift_ppm: float | None
    """What the second clock gains on the first, in millionths; null if unknown, and 0 was assumed."""
    drift_low_ppm: float | None
    """Smallest drift that is possible, at most 500 ppm; null if none fits: the clock was set in between."""
    drift_high_ppm: float | None
    packets: int
    """Packets that both captures have."""

class ArrowStream(Protocol):
    """A table in Arrow memory (the Arrow PyCapsule interface), such as `Table` and Polars' `DataFrame`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Table:
    """A table in Arrow memory; `polars.DataFrame(table)` takes it over without a copy."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def columns(self) -> list[str]: ...
    def select(self, columns: Sequence[str]) -> Table:
        """Return the table with these columns only, in the order of the table."""
    def slice(self, start: int, stop: int) -> Table:
        """Return rows `start` to `stop` as a table, without a copy."""
    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return rows as dictionaries, for small tables."""
    def largest_flows(self, column: str, limit: int, *, total: bool) -> list[tuple[float, int, int]]:
        """Return value, first row and end of the flows with the largest sum or maximum of a column."""
    def csv(self, start: int = 0, stop: int | None = None, *, raw: bool = False) -> bytes:
        """Return rows as lines of CSV (RFC 4180), without the names of the columns.

        A missing value is an empty field, an empty text is quoted. Text is made safe unless `raw`.
        """
    def json(self, start: int = 0, stop: int | None = None) -> str:
        """Return rows as objects of JSON with `,` and a line feed between them, all ASCII."""

@final
class Progress:
    """Counters that another thread may read while an analysis runs."""

    def __init__(self, *, digests: bool = False) -> None: ...
    def digest(self, path: str) -> tuple[int, str] | None:
        """Return how many bytes of a file were read, and their XXH64, if `digests` are wanted."""
    @property
    def bytes_read(self) -> int:
        """Bytes read from disk or pipe (compressed bytes of a compressed input)."""
    @property
    def packets(self) -> int: ...
    def cancel(self) -> None:
        """Ask the analysis to stop at the next chunk; it then raises KeyboardInterrupt."""

@final
class Analysis:
    """The result of one pass over one input, or over several that were joined."""

    def table(self, name: str) -> Table:
        """Return a table by its name; it is empty if it was not collected."""
    def sequence_tiles(self) -> Table:
        """Return the tiles of the time-sequence graphs of chosen flows, level by level."""
    @property
    def clock(self) -> Clock | None:
        """How the clock of the second capture differs from that of the first; None without a pair."""
    @property
    def sources(self) -> list[SourceSummary]: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def cut_flows(self) -> tuple[int, int]:
        """Flows that began before the stretch of time, and those that went on behind it."""
    @property
    def spool(self) -> DirectionSpool | None:
        """What was kept for a replay, if a `spool` was given."""

    def numbered_from(self, first_flow: int) -> Analysis:
        """Return the same result with its flows numbered from `first_flow` (1 before)."""

FilterCompiler: TypeAlias = Callable[[int, int], Sequence[tuple[int, int, int, int]]]
"""Takes a link type (LINKTYPE_ number) and a snap length; gives the BPF program as (code, jt, jf, k)."""

OwnLayout: TypeAlias = tuple[tuple[int, int, bool], tuple[int, int, bool, int] | None]
"""Number of a datagram as offset, bytes and whether little-endian; the time likewise, with ns per tick."""

FieldPlace: TypeAlias = tuple[int, int, bool]
"""Offset, bytes and whether little-endian."""

TimePlace: TypeAlias = tuple[FieldPlace, int]
"""A time, and ns per tick."""

QuantityPlace: TypeAlias = tuple[FieldPlace, str, float]
"""A quantity, its form (`integer`, `float` or `inverse`), and its unit in seconds, bytes per second or 1."""

MarkPlace: TypeAlias = tuple[FieldPlace, int, int]
"""A field by which a kind of datagram is known, which of its bits, and what they are."""

class DataLayout(TypedDict):
    """Datagrams of data; `to_port` says whether they go to the port of the layout."""

    to_port: bool | None
    mark: MarkPlace | None
    sequence: FieldPlace
    send_time: TimePlace | None
    rtt: QuantityPlace | None

class FeedbackLayout(TypedDict):
    """Datagrams of reports."""

    to_port: bool | None
    mark: MarkPlace | None
    time_echo: FieldPlace | None
    elapsed: QuantityPlace | None
    receive_rate: QuantityPlace | None
    loss_event_rate: QuantityPlace | None
    sequence: FieldPlace | None

class TfrcLayout(TypedDict):
    """Headers of data and feedback of TFRC over UDP."""

    data: DataLayout
    feedback: FeedbackLayout | None

Layout: TypeAlias = str | OwnLayout | TfrcLayout
"""A layout by name, of numbered datagrams, or of TFRC."""

class ReadableFile(Protocol):
    """What the core needs of an open file."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""

Source: TypeAlias = str | tuple[str, str] | tuple[str, ReadableFile]
"""A path (`-` is standard input), or a name for messages with an open file."""

def analyse(
    sources: Sequence[Source],
    settings: ReadSettings,
    *,
    collect: Set[str] = ...,
    bin_ns: int | None = None,
    into: SpoolFile | Callable[[Table, list[bool]], None] | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Read `sources` as one trace and analyse their flows.

    Several files are ordered by their first packets, pipes are read in the order given.

    Nothing about an input raises: what went wrong is in `Analysis.problems`. `collect` names tables that take
    memory for each packet or sample, which are empty otherwise; bins are `bin_ns` wide, by default from 1 ms
    up, so that the table stays small. What a replay needs of each direction goes `into` a spool; a file
    that cannot be written raises OSError. A callable takes rows of groups as soon as their interval is over,
    and whether each replaces one that it had. A setting that cannot be raises ValueError; an exception that
    the filter raises passes through.
    """

def analyse_chain(
    sources: Sequence[Source],
    settings: ReadSettings,
    *,
    collect: Set[str],
    progress: Progress,
    resume: tuple[str, str] | None = None,
    save: tuple[str, str, int | None] | None = None,
) -> tuple[Analysis | None, str | None]:
    """Analyse `sources` as `analyse` does, behind the files of a checkpoint, and write one.

    A checkpoint is a path, and a text that names what it is made of: with another text, or if the files do
    not simply follow, nothing is analysed. The new one is behind all sources, or behind all but that of a
    number, which must be the last. The second value says why nothing was analysed, or no checkpoint written.
    """

def analyse_pair(
    sources: Sequence[str],
    settings: ReadSettings,
    *,
    collect: Set[str] = ...,
    bin_ns: int | None = None,
    clock_offset_ns: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Read two or more captures of one path, each twice, match their packets and analyse their flows.

    The second of two clocks is ahead by `clock_offset_ns`, which is estimated if it is not given; more
    captures have one clock.
    """

class CopyCounts(TypedDict):
    """What a capture that was written has, and what it has not."""

    written: int
    dropped: dict[str, int]
    """Packets whose headers could not be rewritten, by reason."""
    without_comment: int
    """Packets in blocks that have no place for a comment."""
    skipped_blocks: int
    """Blocks of unknown kinds that were too long."""

@final
class CaptureWriter:
    """Writes packets of one trace after the other, as they were recorded, in a capture file."""

    def __init__(
        self,
        form: str,
        compression: str = "",
        *,
        replace: Callable[[bytes], bytes] | None = None,
        section_comment: str | None = None,
    ) -> None:
        """Take `pcap` or `pcapng`, a compression, and what replaces addresses of 4, 6 and 16 bytes."""

    def open(
        self, sources: Sequence[Source], settings: ReadSettings, *, progress: Progress | None = None
    ) -> None:
        """Begin a trace. Joined files that overlap raise ValueError."""

    def copy(
        self, numbers: Sequence[int] | None = None, comments: Sequence[str | None] = ...
    ) -> bytes | None:
        """Return the next piece of all packets, None at the end of the trace.

        With `numbers`, which ascend, return all bytes up to the last of these packets, each with its comment;
        an empty list stands for the end of the trace. What the file cannot have raises ValueError.
        """

    def finish(self) -> bytes:
        """End the file, and return its last bytes."""
    @property
    def sources(self) -> list[SourceSummary]: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def counts(self) -> CopyCounts: ...

def tables() -> list[tuple[str, str, list[tuple[str, ColumnType, str, str, str]]]]:
    """Return every table: its name, what one row is, and the columns.

    A column has a name, a type, a unit, a meaning and when it is null.
    """

def empty_table(name: str) -> Table:
    """Return a table by its name without rows; an unknown name raises ValueError."""

def write_parquet(
    write: Callable[[bytes], object], schema: ArrowStream, tables: Iterable[ArrowStream]
) -> None:
    """Call `write` with the pieces of a Parquet file of all rows of `tables`, with the columns of `schema`.

    Row groups are encoded by threads while the next rows come, and have 32,768 rows but for the last.
    """

def write_arrow(write: Callable[[bytes], object], schema: ArrowStream, tables: Iterable[ArrowStream]) -> None:
    """Call `write` with the pieces of a file of Arrow's IPC format, as `write_parquet` does."""

def safe_csv_cell(text: str) -> str:
    """Return `text` as a cell of CSV that neither a spreadsheet nor a terminal obeys."""

def time_span(
    sources: Sequence[Source], settings: ReadSettings, *, whole: bool, progress: Progress | None = None
) -> tuple[int, int] | None:
    """Return the earliest and the latest time of a packet; unless `whole`, of the first packets."""

def is_trace(path: str) -> bool:
    """Return whether a file is of a known format by its content; raises OSError if it cannot be read."""

def capture_extent(path: str) -> tuple[SourceSummary, int | None, bool | None]:
    """Return the summary of the first packets of a trace, the time of its last one, and if that is whole.

    The file is not read in between. The last two are None for compressed files and texts.
    """

def file_digest(path: str) -> str:
    """Return the XXH64 of a file, as `Progress.digest` does of one that was read whole."""

def input_formats() -> list[str]:
    """Return the formats that `format` may name."""

def node_layers() -> list[str]:
    """Return the layers of a simulator's nodes that `layer` may name."""

def tfrc_parameters() -> list[str]:
    """Return the parameters of ns-2's TFRC agents that `tfrc` may name."""

def tfrc_takes(name: str, value: float) -> bool:
    """Return whether there is such a parameter that may have this value."""

def tfrc_profiles() -> list[str]:
    """Return the profiles that `tfrc_profile` may name."""

def vantage_points() -> list[str]:
    """Return the places that `vantage` may name."""

def probe_layouts() -> list[str]:
    """Return the layouts that `dissect` may name."""

def udp_tunnels() -> list[str]:
    """Return the encapsulations that `tunnel_port` may name."""

class ChosenSender(TypedDict):
    """A sender of TFRC: its profile (`replay_profiles`) and its variant (`replay_variants`)."""

    profile: str
    variant: str
    segment_bytes: float
    handshake_rtt_s: float | None
    parameters: Sequence[tuple[str, float | str]]

Array: TypeAlias = npt.NDArray[Any]
"""Numbers one after the other in memory."""

def replay_profiles() -> list[tuple[str, list[str]]]:
    """Return all profiles with their parameters."""

class LossIntervals:
    """Loss intervals in packets of such a sender's receiver, and p (RFC 5348 section 5)."""

    def __new__(cls, chosen: ChosenSender) -> LossIntervals: ...
    def begin(self, x_recv: float, rtt_s: float) -> None:
        """Begin with the first loss event; the interval before it follows from `x_recv` in bytes/s."""

    def close(self, packets: float) -> None:
        """Add a loss event `packets` after the previous one."""

    def p(self, open_packets: float) -> float:
        """Return the loss event rate `open_packets` after the last loss event; 0 before the first."""

def replay_receiver_parameters() -> list[tuple[str, list[str]]]:
    """Return all profiles with the parameters of their receivers."""

def replay_variants() -> list[str]:
    """Return all variants of TFRC."""

class RecordedFlow(TypedDict):
    """One direction of a flow: reports as they reached the sender, and its data packets, in order of time.

    `rtt_s`, `p` and `x_recv` (bytes/s) are float64, where NaN is unknown; times are int64, `is_data_limited`
    uint8, where 2 is unknown, `lost_packets` uint64, `sent_bytes` uint32.
    """

    start_ns: int
    end_ns: int
    time_ns: Array
    rtt_s: Array
    p: Array
    x_recv: Array
    is_data_limited: Array
    lost_packets: Array
    sent_ns: Array
    sent_bytes: Array

class NumberedPackets(TypedDict):
    """The packets of one direction in send order.

    Types are uint64, int64, int64 with -2^63 for packets that never arrived, uint32 and uint8.
    """

    number: Array
    sent_ns: Array
    arrived_ns: Array
    payload_bytes: Array
    is_marked: Array

class ReturnPath(TypedDict):
    """How reports get back to the sender.

    A simulated report takes as long as the trace's own report made nearest to it, or is lost with it;
    `made_ns` and `arrived_ns` are int64 with -2^63 for lost ones. Without any it takes `least_s`, unless the
    flow `reveals_arrivals`: ns-2's agent sends a packet at each report in slow start.
    """

    least_s: float
    made_ns: Array
    arrived_ns: Array
    reveals_arrivals: bool

class ObservedConnection(TypedDict):
    """One direction of a TCP connection; all arrays are float64, in order of time.

    `sent_end` is where a data packet ends in the stream, `loss_packet` where a lost one begins, in packets.
    """

    start_ns: int
    sent_s: Array
    sent_bytes: Array
    sent_end: Array
    loss_s: Array
    loss_packet: Array
    sample_s: Array
    sample_rtt_s: Array
    is_at_receiver: bool

def replay(chosen: ChosenSender, flow: RecordedFlow) -> Table:
    """Drive a sender through a recorded flow and return its steps.

    Unknown names, invalid values and arrays of different lengths raise ValueError.
    """

def simulate_reports(chosen: ChosenSender, packets: NumberedPackets, return_path: ReturnPath) -> Table:
    """Return the reports that the receiver of such a sender would make of packets, as they reach the sender.

    The table has `time_ns`, `rtt_ms`, `p`, `x_recv_bps` and `lost_packets`.
    """

def round_reports(chosen: ChosenSender, connection: ObservedConnection) -> Table:
    """Return what the receiver of such a sender would have reported of a TCP connection, once per round.

    The table has `time_ns`, `rtt_ms`, `p` and `x_recv_bps`.
    """

DecisionTuple: TypeAlias = tuple[float, float, str, str, float | None, float | None, float | None]
"""X, when the timer runs out, mode, reason, R, X_calc, limit; bytes/s and seconds."""

@final
class TfrcSender:
    """One sender of TFRC step by step; time 0 is its start."""

    def __init__(self, chosen: ChosenSender) -> None: ...
    def on_sent(self, time_s: float, payload_bytes: int) -> None: ...
    def on_report(
        self,
        time_s: float,
        rtt_s: float | None,
        p: float,
        x_recv: float,
        is_data_limited: bool,
        lost_packets: int,
    ) -> DecisionTuple: ...
    def on_no_feedback(self, is_idle: bool) -> DecisionTuple: ...

@final
class PacketReader:
    """Packets of one trace, decoded and given to their flows, in batches of bounded size."""

    def __init__(
        self,
        sources: Sequence[Source],
        settings: ReadSettings,
        *,
        first_flow: int = 1,
        progress: Progress | None = None,
    ) -> None: ...
    def next_batch(self, rows: int = 65_536) -> Table | None:
        """Return the next packets as a table with the columns of `schema.PACKETS`; None at the end."""
    @property
    def cut_flows(self) -> tuple[int, int]:
        """As of an analysis; known after the last batch."""

    @property
    def flow_count(self) -> int:
        """Number of flows so far."""
    @property
    def sources(self) -> list[SourceSummary]: ...
    @property
    def problems(self) -> list[Problem]: ...

@final
class SpoolFile:
    """A file of `folder` without a name, for spools; each has at most `most_buffered` bytes in memory."""

    def __init__(self, folder: str, most_buffered: int) -> None: ...

@final
class DirectionSpool:
    """What a replay needs of each direction of a flow."""

    @property
    def first_flow(self) -> int:
        """Number of the first flow."""
    def count(self, flow: int, direction: str) -> int:
        """Return how many packets with payload a direction has."""
    def is_simulated(self, flow: int, direction: str) -> bool:
        """Return whether any packet of a direction has a `uid`."""
    def packets(self, flow: int, direction: str) -> Table:
        """Return the packets with payload of a direction in the order of the trace.

        Columns are `time_ns`, `payload_bytes`, `sequence`, `seq_rel`, `ecn`, `uid`, `event`, `point` and
        `layer` of `schema.PACKETS`.
        """
    def round_trips(self, flow: int, direction: str) -> Table:
        """Return `time_ns` and `rtt_ns` of the RTT samples by acknowledgements of a TCP direction."""
    def rounds(self, flow: int, direction: str) -> Table:
        """Return `time_ns` of the rounds of a TCP direction, and `is_data_limited`, which is 0 or 1.

        It is empty where the capture does not show all of their flights.
        """
