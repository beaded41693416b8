//! The text before the headers: event, time, and where in which node.

use super::scanner::Scanner;
use crate::input::text::number::time_ns;
use crate::packet::event::{Code, Event, NodeLayer};

/// A device or an interface of the IP layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinePlace {
    pub node: u32,
    /// Number of the device, or of the interface.
    pub device: u32,
    /// Whether it is an interface of the IP layer.
    pub is_ip: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Prefix<'a> {
    pub event: Event,
    pub time_ns: i64,
    /// The time as printed.
    pub time: &'a [u8],
    /// None in the file of a single device, which only its name identifies.
    pub place: Option<LinePlace>,
    /// The trace source after the device, such as `TxQueue/Enqueue`; empty without place.
    pub trace_source: &'a [u8],
    /// The headers, from the first `ns3::` on; empty if the packet has none.
    pub headers: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// Read it; `headers_at` is the offset of the blank before the first header, if there is one.
    #[inline]
    pub fn read(line: &'a [u8], headers_at: Option<usize>) -> Result<Self, &'static str> {
        let event = event_of(line).ok_or("expected `+`, `-`, `d`, `r` or `t`")?;
        let mut scanner = Scanner::new(line.get(2..).unwrap_or_default());
        let time = scanner.until(b' ').unwrap_or(scanner.rest());
        let time_ns = time_ns(time).ok_or("expected a time in seconds after the event")?;
        let end = headers_at.unwrap_or(line.len()).max(2 + time.len());
        let headers = line.get(end + 1..).unwrap_or_default();
        let mut context = Scanner::new(line.get(2 + time.len()..end).unwrap_or_default());
        let (place, trace_source) = match context.after(b"/NodeList/") {
            Some(path) => {
                let (place, trace_source) = place_of(path).ok_or("expected numbers of node and device")?;
                (Some(place), trace_source)
            }
            None => (None, &b""[..]),
        };
        Ok(Self { event, time_ns, time, place, trace_source, headers })
    }

    pub fn layer(&self) -> NodeLayer {
        match self.place {
            Some(LinePlace { is_ip: true, .. }) => NodeLayer::Ip,
            // Trace sources of devices with a radio are in its layers.
            _ if self.trace_source.starts_with(b"Phy/") => NodeLayer::Phy,
            _ => NodeLayer::Link,
        }
    }

    /// Whether the packet is on its way out of the node.
    pub fn is_outgoing(&self) -> bool {
        match self.event {
            Event::Sent | Event::Enqueued | Event::Dequeued => true,
            Event::Dropped => ["TxQueue", "MacTx", "PhyTx"].iter().any(|start| self.starts_with(start)),
            Event::Received | Event::Forwarded => false,
        }
    }

    /// Why it was dropped: `queue`, else the trace source without `Drop`.
    pub fn reason(&self) -> Code {
        if self.event != Event::Dropped {
            return Code::default();
        }
        if self.starts_with("TxQueue") {
            return Code::new(b"queue");
        }
        let end = self.trace_source.iter().position(|&byte| byte == b'(').unwrap_or(self.trace_source.len());
        let name = self.trace_source.get(..end).unwrap_or_default();
        let name = name.strip_suffix(b"Drop").unwrap_or(name);
        let mut letters = [0; 8];
        for (to, from) in letters.iter_mut().zip(name) {
            *to = from.to_ascii_lowercase();
        }
        Code::new(letters.get(..name.len().min(8)).unwrap_or_default())
    }

    fn starts_with(&self, start: &str) -> bool {
        self.trace_source.starts_with(start.as_bytes())
    }
}

fn event_of(line: &[u8]) -> Option<Event> {
    match line {
        [b'+', b' ', ..] => Some(Event::Enqueued),
        [b'-', b' ', ..] => Some(Event::Dequeued),
        [b'd', b' ', ..] => Some(Event::Dropped),
        [b'r', b' ', ..] => Some(Event::Received),
        [b't', b' ', ..] => Some(Event::Sent),
        _ => None,
    }
}

/// Read `1/DeviceList/2/$ns3::X/TxQueue/Drop` or `1/$ns3::Ipv4L3Protocol/Tx(2)`. A radio's mode may
/// follow after a blank.
fn place_of<'a>(path: &mut Scanner<'a>) -> Option<(LinePlace, &'a [u8])> {
    let node = path.small()?;
    let is_device = path.passes(b"/DeviceList/");
    let device = if is_device { path.small()? } else { 0 };
    let mut trace_source = Scanner::new(path.until(b' ').unwrap_or(path.rest()));
    trace_source.passes(b"/");
    trace_source.after(b"/");
    let trace_source = trace_source.rest();
    if is_device {
        return Some((LinePlace { node, device, is_ip: false }, trace_source));
    }
    let mut interface = Scanner::new(trace_source);
    let interface = interface.after(b"(").and_then(Scanner::small).unwrap_or(0);
    Some((LinePlace { node, device: interface, is_ip: true }, trace_source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Prefix<'_> {
        Prefix::read(line.as_bytes(), line.find(" ns3::")).unwrap()
    }

    #[test]
    fn test_places_of_every_form() {
        for (line, place, trace_source, layer) in [
            (
                "+ 0.5 /NodeList/3/DeviceList/1/$ns3::PointToPointNetDevice/TxQueue/Enqueue ns3::PppHeader (",
                Some((3, 1, false)),
                "TxQueue/Enqueue",
                NodeLayer::Link,
            ),
            (
                "t 0.5 /NodeList/7/DeviceList/2/$ns3::WifiNetDevice/Phy/State/Tx DsssRate11Mbps ns3::WifiMacHeader (",
                Some((7, 2, false)),
                "Phy/State/Tx",
                NodeLayer::Phy,
            ),
            (
                "r 0.5 DsssRate11Mbps /NodeList/7/DeviceList/2/$ns3::WifiNetDevice/Phy/State/RxOk ns3::WifiMacHeader (",
                Some((7, 2, false)),
                "Phy/State/RxOk",
                NodeLayer::Phy,
            ),
            (
                "r 0.5 DsssRate11Mbps/NodeList/7/DeviceList/2/$ns3::WifiNetDevice/Phy/State/RxOk ns3::WifiMacHeader (",
                Some((7, 2, false)),
                "Phy/State/RxOk",
                NodeLayer::Phy,
            ),
            (
                "t 0.5 /NodeList/0/$ns3::Ipv4L3Protocol/Tx(1) ns3::Ipv4Header (",
                Some((0, 1, true)),
                "Tx(1)",
                NodeLayer::Ip,
            ),
            ("- 0.5 ns3::PppHeader (", None, "", NodeLayer::Link),
            ("t 0.5 DsssRate1Mbps ns3::WifiMacHeader (", None, "", NodeLayer::Link),
        ] {
            let prefix = read(line);
            assert_eq!(prefix.place.map(|it| (it.node, it.device, it.is_ip)), place, "{line}");
            assert_eq!(prefix.trace_source, trace_source.as_bytes(), "{line}");
            assert_eq!(prefix.layer(), layer, "{line}");
            assert_eq!(prefix.time_ns, 500_000_000);
            assert!(prefix.headers.starts_with(b"ns3::"), "{line}");
        }
    }

    #[test]
    fn test_reasons_are_the_trace_source_in_short() {
        let reason = |source: &str| {
            let line = format!("d 1 /NodeList/3/DeviceList/1/$ns3::X/{source}");
            Prefix::read(line.as_bytes(), None).unwrap().reason().text().to_owned()
        };
        assert_eq!(reason("TxQueue/Drop"), "queue");
        assert_eq!(reason("PhyRxDrop"), "phyrx");
        assert_eq!(reason("MacTxDrop"), "mactx");
        assert_eq!(reason("Drop"), "");
        let line = b"d 1 /NodeList/0/$ns3::Ipv4L3Protocol/Drop(1) ns3::Ipv4Header (";
        assert_eq!(Prefix::read(line, None).unwrap().reason().text(), "");
    }

    #[test]
    fn test_lines_that_are_none() {
        for line in [
            "",
            "x 1 a",
            "+1",
            "+ abc ns3::",
            "r 1 /NodeList/x/DeviceList/1/",
            "r 1 /NodeList/1/DeviceList/99999999999/",
        ] {
            assert!(Prefix::read(line.as_bytes(), line.find(" ns3::")).is_err(), "{line}");
        }
    }
}
