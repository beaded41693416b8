//! What fuzzing runs on any bytes. Each target panics if an invariant does not hold.
//!
//! libFuzzer runs them in `parsers/native/fuzz`; `testing/fuzz_seeds.rs` replays seeds and past crashes.

mod choices;
mod files;
mod filter;
mod packets;
mod replay;

pub struct FuzzTarget {
    /// Also that of its folder of seeds and of its dictionary.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

impl FuzzTarget {
    pub const ALL: [Self; 26] = [
        Self { name: "capture", run: files::capture },
        Self { name: "datagram", run: packets::datagram },
        Self { name: "dccp", run: packets::dccp },
        Self { name: "filter", run: filter::filter },
        Self { name: "flowmon", run: |bytes| files::named(bytes, "flowmon") },
        Self { name: "frame", run: packets::frame },
        Self { name: "iperf", run: |bytes| files::named(bytes, "iperf") },
        Self { name: "iperf3", run: |bytes| files::named(bytes, "iperf3") },
        Self { name: "joined", run: files::joined },
        Self { name: "kernel_events", run: |bytes| files::named(bytes, "kernel_events") },
        Self { name: "layout", run: packets::layout },
        Self { name: "ns2", run: |bytes| files::named(bytes, "ns2") },
        Self { name: "ns3", run: |bytes| files::named(bytes, "ns3") },
        Self { name: "opening", run: packets::opening },
        Self { name: "packet", run: packets::packet },
        Self { name: "packets", run: |bytes| files::named(bytes, "packets") },
        Self { name: "pair", run: files::pair },
        Self { name: "qlog", run: |bytes| files::named(bytes, "qlog") },
        Self { name: "quic", run: packets::quic },
        Self { name: "replay", run: replay::replay },
        Self { name: "rtp", run: packets::rtp },
        Self { name: "ss", run: |bytes| files::named(bytes, "ss") },
        Self { name: "tcp_info", run: |bytes| files::named(bytes, "tcp_info") },
        Self { name: "tcpdump", run: |bytes| files::named(bytes, "tcpdump") },
        Self { name: "tcpvars", run: |bytes| files::named(bytes, "tcpvars") },
        Self { name: "tunnel", run: packets::tunnel },
    ];

    pub fn by_name(name: &str) -> Option<&'static Self> {
        const { &Self::ALL }.iter().find(|target| target.name == name)
    }
}
