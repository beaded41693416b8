//! The time-sequence graphs of chosen directions, in tiles that are compressed while packets are read: segments of
//! one direction with their classes, the acknowledgements, SACK blocks and receive windows of the other, the data in
//! flight after each of them, and the round-trip times that they give.
//!
//! The lowest level has every point. Each level above sums up a fixed number of neighbours, so that a stretch
//! of time has as many as there are packets in it, and the highest level is one tile.

mod columns;
mod points;
mod summaries;

use std::collections::BTreeMap;

use super::{Connection, Outcome};
use crate::packet::event::{Packet, TcpFlags};
use crate::packet::key::Side;
pub use columns::Tile;
use points::{Content, Point};
use summaries::{Levels, POINTS, Summary};

/// Points in a tile.
const IN_TILE: usize = 8_192;

/// Graphs by the numbers of their flows.
#[derive(Debug)]
pub struct SequenceGraphs {
    graphs: BTreeMap<u32, Vec<Graph>>,
    /// Points for which there is room.
    room: usize,
    /// Points beyond it, which only summaries show.
    pub left_out: u64,
    /// The tiles of all graphs with the numbers of their flows, level by level, after the end of a pass.
    pub tiles: Vec<(u32, Tile)>,
}

/// The graph of one direction.
#[derive(Debug, Default)]
struct Graph {
    /// Whether it is that of the side that opened the conversation.
    is_forward: bool,
    /// The side whose data are drawn, known from the first packet on.
    side: Option<Side>,
    points: Vec<Point>,
    summary: Summary,
    levels: Levels,
    tiles: Vec<Tile>,
}

impl SequenceGraphs {
    /// Empty graphs of these directions, with every point up to a limit; None for no directions.
    pub fn new(directions: &[(u32, bool)], limit: usize) -> Option<Self> {
        let mut graphs: BTreeMap<u32, Vec<Graph>> = BTreeMap::new();
        for &(flow, is_forward) in directions {
            graphs.entry(flow).or_default().push(Graph { is_forward, ..Graph::default() });
        }
        (!graphs.is_empty()).then(|| Self { graphs, room: limit, left_out: 0, tiles: Vec::new() })
    }

    /// Add a segment from `side` of a flow, after it was followed.
    pub fn on_segment(
        &mut self,
        (flow, side): (u32, Side),
        connection: &Connection,
        packet: (&Packet, &[(u32, u32)]),
        outcome: &Outcome,
    ) {
        let Some(graphs) = self.graphs.get_mut(&flow) else { return };
        for graph in graphs {
            let sender = *graph.side.get_or_insert_with(|| {
                let forward = connection.opener().unwrap_or(side);
                if graph.is_forward { forward } else { forward.other() }
            });
            let content = if side == sender {
                segment(side, connection, packet.0, outcome)
            } else {
                acknowledgement(side, connection, packet, outcome)
            };
            if let Some(content) = content {
                let is_kept = self.room > 0;
                self.room -= usize::from(is_kept);
                self.left_out += u64::from(!is_kept);
                graph.add(point(connection, sender, packet.0, content), sender, is_kept);
            }
        }
    }

    /// Complete the tiles, at the end of a pass.
    pub fn finish(&mut self) {
        for (flow, graphs) in std::mem::take(&mut self.graphs) {
            for mut graph in graphs {
                graph.finish();
                self.tiles.extend(graph.tiles.into_iter().map(|tile| (flow, tile)));
            }
        }
    }
}

impl Graph {
    fn add(&mut self, point: Point, side: Side, is_kept: bool) {
        self.summary.add(&point);
        if self.summary.points == POINTS {
            self.levels.add(std::mem::take(&mut self.summary), side, &mut self.tiles);
        }
        if is_kept {
            self.points.push(point);
        }
        if self.points.len() == IN_TILE {
            self.tiles.push(points::tile(&self.points, side));
            self.points.clear();
        }
    }

    fn finish(&mut self) {
        let Some(side) = self.side else { return };
        if !self.points.is_empty() {
            self.tiles.push(points::tile(&std::mem::take(&mut self.points), side));
        }
        if self.summary.points > 0 {
            self.levels.add(std::mem::take(&mut self.summary), side, &mut self.tiles);
        }
        self.levels.finish(side, &mut self.tiles);
        self.tiles.sort_by_key(|tile| tile.level);
    }
}

/// The point of a packet, after it was followed.
fn point(connection: &Connection, sender: Side, packet: &Packet, content: Content) -> Point {
    let flags = packet.network.tcp().map_or(TcpFlags::default(), |tcp| tcp.flags);
    let flight_bytes = connection.half(sender).outstanding_bytes();
    Point { time_ns: packet.time_ns, packet: packet.number, flags, flight_bytes, content }
}

/// What a packet of the sender shows, if it has data, begins or ends something, or repeats.
fn segment(side: Side, connection: &Connection, packet: &Packet, outcome: &Outcome) -> Option<Content> {
    let tcp = packet.network.tcp()?;
    let bytes = packet.network.payload_bytes.unwrap_or(0);
    let class = outcome.finding.map(|finding| finding.class);
    let is_control = tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
    if bytes == 0 && !is_control && class.is_none() {
        return None;
    }
    let position = connection.half(side).sent.position(tcp.seq)?;
    Some(Content::Segment { position, bytes, class })
}

/// What a packet of the receiver shows, if it acknowledges.
fn acknowledgement(
    side: Side,
    connection: &Connection,
    (packet, sack): (&Packet, &[(u32, u32)]),
    outcome: &Outcome,
) -> Option<Content> {
    let tcp = packet.network.tcp()?;
    if !tcp.flags.has(TcpFlags::ACK) {
        return None;
    }
    let (mine, sender) = (connection.half(side), connection.half(side.other()));
    let position = sender.sent.position(tcp.ack)?;
    // A SYN's window is never scaled (RFC 7323 section 2.2), and a reset announces none.
    let window = match tcp.flags {
        flags if flags.has(TcpFlags::RST) => None,
        flags if flags.has(TcpFlags::SYN) => Some(u32::from(tcp.window)),
        _ => mine.scaled(tcp.window, sender),
    };
    let placed =
        |&(start, end): &(u32, u32)| Some((sender.sent.position(start)?, sender.sent.position(end)?));
    let sacked = sack.iter().filter_map(placed).filter(|(start, end)| start < end).collect();
    let rtt_ns = outcome.rtt.map(|rtt| i64::try_from(rtt.ns).unwrap_or(i64::MAX));
    Some(Content::Acknowledgement { position, window, sacked, rtt_ns })
}
