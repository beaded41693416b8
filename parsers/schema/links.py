"""Columns of `links` and `link_samples`: what 802.11 shows of its stations."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

LINKS: Final = (
    Column("transmitter", "string", "", "station whose radio sent", "frames of this kind do not say"),
    Column("receiver", "string", "", "station they were for; `ff:ff:ff:ff:ff:ff` is everybody"),
    Column("bssid", "string", "", "the network of the last frame that names one", "none does"),
    Column("start_ns", "int64", "ns", "first frame"),
    Column("end_ns", "int64", "ns", "last frame"),
    Column("frames", "uint64", "", "frames of every kind, repeats included"),
    Column("data_frames", "uint64", "", "data frames among them"),
    Column("retry_frames", "uint64", "", "frames with the retry bit"),
    Column(
        "repeated_frames",
        "uint64",
        "",
        "frames that the capture had already shown: retry bit and sequence number (802.11's rule)",
    ),
    Column("bytes", "uint64", "bytes", "whole frames"),
    Column("signal_min_dbm", "float64", "dBm", "weakest signal at the capturing radio", "not recorded"),
    Column("signal_mean_dbm", "float64", "dBm", "mean of the frames, in dBm", "not recorded"),
    Column("signal_max_dbm", "float64", "dBm", "strongest signal", "not recorded"),
    Column("noise_mean_dbm", "float64", "dBm", "mean noise at the capturing radio", "not recorded"),
    Column("rate_mean_mbps", "float64", "Mbit/s", "mean rate of the frames", "not recorded"),
    Column("channel_mhz", "uint32", "MHz", "centre of the channel of the last frame", "not recorded"),
)

LINK_SAMPLES: Final = (
    Column("time_ns", "int64", "ns", "when the frame was seen"),
    Column("packet", "uint64", "", "its number in the source"),
    Column("transmitter", "string", "", "station whose radio sent", "frames of this kind do not say"),
    Column("receiver", "string", "", "station it was for"),
    Column("bssid", "string", "", "its network", "frames of this kind do not say"),
    Column("kind", "string", "", "type of the frame, such as `data`, `beacon`, `ack`"),
    Column("retry", "uint32", "", "1 if it has the retry bit"),
    Column("repeated", "uint32", "", "1 if the capture had already shown it"),
    Column("bytes", "uint32", "bytes", "the whole frame"),
    Column("rate_mbps", "float64", "Mbit/s", "rate at which it was sent", "not recorded"),
    Column("signal_dbm", "int64", "dBm", "signal at the capturing radio", "not recorded"),
    Column("noise_dbm", "int64", "dBm", "noise there", "not recorded"),
    Column("channel_mhz", "uint32", "MHz", "centre of its channel", "not recorded"),
    Column("antenna", "uint32", "", "antenna of the capturing radio", "not recorded"),
)
