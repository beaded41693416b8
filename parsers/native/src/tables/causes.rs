//! The table of causes: why the senders of TCP connections were no faster.

use std::io;

use super::column::column;
use super::rounds::ms;
use super::shown::{Shown, each_flow};
use super::{Column, PassTable, Row};
use crate::flow::direction_name;
use crate::flow::tcp::causes::{Bottleneck, Cause, Hops, Sign, Stretch, View, Waits, hidden, ledger};
use crate::flow::tcp::vantage::{BELIEVED, Vantage};
use crate::packet::key::Side;
use crate::pass::Analysis;

/// What held a direction with data back.
pub(super) struct OfDirection<'a> {
    pub flow: u32,
    pub side: Side,
    pub name: &'static str,
    pub base_rtt_ns: Option<i64>,
    pub hops: Hops,
    start_ns: i64,
    stretches: Vec<Stretch>,
    /// What it waited for, or why that does not show.
    waits: Result<&'a Waits, Sign>,
}

impl OfDirection<'_> {
    /// What it shows of the bottleneck of its path, or why it shows nothing.
    pub fn bottleneck(&self) -> Result<Bottleneck, Sign> {
        self.waits.map(|waits| Bottleneck::of(waits, &self.stretches))
    }

    /// Its stretches in order, each with the time at which it began.
    pub fn stretches(&self) -> impl Iterator<Item = (i64, Stretch)> {
        let mut start_ns = self.start_ns;
        self.stretches.iter().map(move |&stretch| (std::mem::replace(&mut start_ns, stretch.end_ns), stretch))
    }
}

/// Give what held each direction with data back, by flow and side, to `take`.
pub(super) fn each_direction(
    analysis: &Analysis,
    mut take: impl FnMut(Shown<'_>, OfDirection<'_>),
) -> io::Result<()> {
    let Some(ledgers) = &analysis.results.ledgers else { return Ok(()) };
    each_flow(analysis, |shown, flow| {
        let forward = shown.flow(flow).forward();
        for side in [forward, forward.other()] {
            let Some(view) = ledgers.get(flow, side) else { continue };
            let (waits, hides) = (&view.waits, hidden_by(shown, flow, side, view));
            take(
                shown,
                OfDirection {
                    flow,
                    side,
                    name: direction_name(side, forward),
                    base_rtt_ns: waits.path.base_rtt_ns().filter(|_| hides.is_none()),
                    hops: view.hops,
                    start_ns: waits.start_ns.unwrap_or(0),
                    stretches: hides.map_or_else(|| ledger(waits), |sign| hidden(waits, sign)),
                    waits: hides.map_or(Ok(waits), Err),
                },
            );
        }
    })
}

/// A stretch of a direction.
struct OfFlow {
    flow: u32,
    direction: &'static str,
    start_ns: i64,
    base_rtt_ns: Option<i64>,
    stretch: Stretch,
}

pub(super) struct Causes {
    /// By flow, side and time.
    rows: Vec<OfFlow>,
}

/// A row of the table, with the number of its flow.
pub struct CauseRow<'a> {
    flow: u32,
    of: &'a OfFlow,
}

impl PassTable for Causes {
    type Row<'a> = CauseRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut rows = Vec::new();
        each_direction(analysis, |_, of| {
            let OfDirection { flow, name: direction, base_rtt_ns, .. } = of;
            let row = |(start_ns, stretch)| OfFlow { flow, direction, start_ns, base_rtt_ns, stretch };
            rows.extend(of.stretches().map(row));
        })?;
        Ok(Self { rows })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.rows.len()
    }

    fn row<'a>(&'a self, _: Shown<'a>, row: usize, first_flow: u32) -> Option<CauseRow<'a>> {
        let of = self.rows.get(row)?;
        Some(CauseRow { flow: of.flow + first_flow, of })
    }
}

/// Why the waits of a side show nothing, if so.
fn hidden_by(shown: Shown<'_>, number: u32, side: Side, view: &View) -> Option<Sign> {
    let flow = shown.flow(number);
    let half = flow.transport.tcp.as_deref()?.half(side);
    // A doubtful place is not taken for the sender's: from another one a wrong cause looks certain. But where
    // the sender's distance is known, the view is the sender's.
    let vantage = shown.options.vantage_of(flow, side);
    let is_seen_from = |(place, confidence)| match view.is_known() {
        true => place == Vantage::Sender || confidence < 1.0 || view.waits.is_estimated,
        false => place == Vantage::Sender && confidence >= BELIEVED,
    };
    if !vantage.is_none_or(is_seen_from) {
        Some(Sign::AwayFromSender)
    } else if half.gap_bytes() > 0 || half.ends_unseen() {
        Some(Sign::MissingData)
    } else if flow.direction(side.other()).packets == 0 {
        Some(Sign::NoAcknowledgements)
    } else {
        view.waits.has_stepped.then_some(Sign::ClockStep)
    }
}

impl<'a> Row<'a> for CauseRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data that were held back")
            .name(|row| Some(row.of.direction)),
        column(
            "start_ns",
            "ns",
            "when the stretch began; the first of a direction with the flow's first packet",
        )
        .i64(|row| Some(row.of.start_ns)),
        column("end_ns", "ns", "when it ended, and the next began; the last with the flow's last packet")
            .i64(|row| Some(row.of.stretch.end_ns)),
        column("cause", "", "what held the sender back")
            .one_of(|| Cause::ALL.map(Cause::name).to_vec())
            .name(|row| Some(row.of.stretch.cause.name())),
        column("sign", "", "the sign that decided, or why the cause is unknown")
            .one_of(|| Sign::ALL.map(Sign::name).to_vec())
            .name(|row| Some(row.of.stretch.sign.name())),
        column("second_cause", "", "what it is if not `cause`; of a repair, what the losses came from")
            .null_when("nothing else is near")
            .name(|row| row.of.stretch.second.map(Cause::name)),
        column("flight_bytes", "bytes", "most data in flight in the stretch, after a packet was sent")
            .u64(|row| Some(row.of.stretch.flight.into())),
        column(
            "flight_error_bytes",
            "bytes",
            "by how much it may be larger or smaller: of these, an estimate away from the sender cannot tell \
             whether their acknowledgement had come; 0 at the sender",
        )
        .null_when("the cause is unknown for the whole flow")
        .u64(|row| row.of.stretch.flight_error.map(u64::from)),
        column("window_bytes", "bytes", "receive window at its newest data, scaled")
            .null_when("the scale is not known (no SYN), or no data yet")
            .u64(|row| row.of.stretch.window.map(u64::from)),
        column("rtt_ms", "ms", "shortest round-trip time of the lap at its end")
            .null_when("no lap of one round-trip time is over, or the cause is unknown for the whole flow")
            .f64(|row| row.of.stretch.rtt_ns.map(ms)),
        column("base_rtt_ms", "ms", "shortest round-trip time between sender and receiver")
            .null_when("no RTT sample, or the cause is unknown for the whole flow")
            .f64(|row| row.of.base_rtt_ns.map(ms)),
    ]];
}
