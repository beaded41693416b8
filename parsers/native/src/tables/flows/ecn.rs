//! Columns of congestion marks: in the IP headers of a direction, and as the other side reports them.

use super::FlowRow;
use crate::flow::tcp::accurate_ecn::{CeFeedback, ReportedBytes};
use crate::flow::tcp::ecn::{Ecn, EcnMode};
use crate::packet::key::Side;
use crate::tables::Column;
use crate::tables::column::column;

impl<'a> FlowRow<'a> {
    pub(super) const ECN: &'a [Column<Self>] = &[
        column("ecn_mode", "", "how both sides agreed to feed back congestion marks")
            .one_of(|| EcnMode::ALL.map(EcnMode::name).to_vec())
            .null_when(
                "not TCP, or the SYNs that agree on it are not in the capture or contradict each other or the \
                 server's flags",
            )
            .name(|row| Some(row.connection?.ecn_mode()?.name())),
        column("ect_packets", "", "packets whose IP header announces an ECN-capable transport (RFC 3168)")
            .null_when("no packet's transport header was whole, or the trace shows no IP headers")
            .u64(|row| Some(row.marks()?.ect_packets())),
        column("ect0_packets", "", "packets with ECT(0)")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ect0_packets.into())),
        column("ect1_packets", "", "packets with ECT(1), which asks for the service of L4S (RFC 9331)")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ect1_packets.into())),
        column(
            "ce_packets",
            "",
            "ECT packets that arrived at the capture with a congestion mark; where a trace shows both ends, at \
             their receiver",
        )
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ce_packets.into())),
        column("not_ect_share", "", "packets without an ECN-capable transport, of all of this direction")
            .null_when("as ect_packets, no packets, or a flow other than TCP without any ECN-capable packet")
            .f64(|row| row.share(|marks, packets| packets.saturating_sub(marks.ect_packets()))),
        column("ect0_share", "", "packets with ECT(0), likewise")
            .null_when("as not_ect_share")
            .f64(|row| row.share(|marks, _| marks.ect0_packets.into())),
        column("ect1_share", "", "packets with ECT(1), likewise")
            .null_when("as not_ect_share")
            .f64(|row| row.share(|marks, _| marks.ect1_packets.into())),
        column("ce_share", "", "packets with a congestion mark, likewise")
            .null_when("as not_ect_share")
            .f64(|row| row.share(|marks, _| marks.ce_packets.into())),
        column("ece_packets", "", "packets that echo a congestion mark")
            .null_when(
                "as retransmitted_packets, or the flag is part of a counter: with accurate ECN, or if AE is \
                 set and ecn_mode unknown",
            )
            .u64(|row| Some(row.flags()?.ece_packets.into())),
        column("cwr_packets", "", "packets that announce a reduced congestion window")
            .null_when("as ece_packets")
            .u64(|row| Some(row.flags()?.cwr_packets.into())),
        column(
            "reported_ce_packets",
            "",
            "packets of this direction that arrived with a congestion mark, by the counter of the other \
             side; where the counter may have cycled between two acknowledgements, as many as the option's \
             bytes say, else the safest number (RFC 9768 section A.2)",
        )
        .null_when(
            "no accurate ECN, nothing was acknowledged, or the counter is always 0: cleared on the path; if \
             acknowledgements usually cover so many packets that it cycles in them, without the option",
        )
        .u64(|row| row.ce_feedback()?.ce_packets()),
        column("reported_ce_packets_min", "", "the same if the counter never cycled: a lower bound")
            .null_when("no accurate ECN, nothing was acknowledged, or the counter is always 0")
            .u64(|row| row.ce_feedback()?.least_ce_packets()),
        column(
            "reported_ce_bytes",
            "bytes",
            "payload that arrived with a congestion mark, by the option of the other side (RFC 9768 \
             section 3.2.3)",
        )
        .null_when("no accurate ECN, or no such option")
        .u64(|row| Some(row.reported_bytes()?.ce)),
        column("reported_ect0_bytes", "bytes", "payload that arrived with ECT(0), likewise")
            .null_when("as reported_ce_bytes")
            .u64(|row| Some(row.reported_bytes()?.ect0)),
        column("reported_ect1_bytes", "bytes", "payload that arrived with ECT(1), likewise")
            .null_when("as reported_ce_bytes")
            .u64(|row| Some(row.reported_bytes()?.ect1)),
    ];

    fn marks(&self) -> Option<Ecn> {
        self.flow.marks(self.side)
    }

    fn share(&self, count: fn(Ecn, u64) -> u64) -> Option<f64> {
        let (marks, packets) = (self.marks()?, self.direction.packets);
        let is_capable =
            || [Side::Low, Side::High].iter().any(|&side| self.flow.transport.ecn(side).ect_packets() > 0);
        if self.connection.is_none() && !is_capable() {
            // Of most datagrams; a flood of flows would need memory for them.
            return None;
        }
        self.seen(()).map(|()| count(marks, packets) as f64 / packets as f64)
    }

    /// Flags of RFC 3168.
    fn flags(&self) -> Option<Ecn> {
        let ecn = self.half?.ecn();
        let is_counter = match self.connection?.ecn_mode() {
            None => ecn.has_ae,
            Some(mode) => mode == EcnMode::Accurate,
        };
        (!is_counter).then_some(ecn)
    }

    fn ce_feedback(&self) -> Option<&'a CeFeedback> {
        let is_accurate = self.connection?.ecn_mode() == Some(EcnMode::Accurate);
        self.half?.ce_feedback().filter(|_| is_accurate)
    }

    fn reported_bytes(&self) -> Option<ReportedBytes> {
        self.ce_feedback()?.bytes()
    }
}
