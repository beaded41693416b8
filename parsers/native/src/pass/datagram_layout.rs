//! User-defined layouts of the datagrams of a port.

use crate::flow::rtp::GivenRtp;
use crate::wire::probe::ProbeLayout;
use crate::wire::tfrc_layout::Layout;

/// The name of RTP in options.
const RTP: &str = "rtp";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DatagramLayout {
    /// With a number, and possibly a time.
    Numbers(ProbeLayout),
    Rtp(GivenRtp),
    /// TFRC data and reports.
    Tfrc(Layout),
}

impl DatagramLayout {
    pub fn names() -> impl Iterator<Item = &'static str> {
        ProbeLayout::ALL.into_iter().map(ProbeLayout::name).chain([RTP])
    }

    /// The layout with this name; RTP may be followed by its clock rate, as `rtp/48000`.
    pub fn by_name(name: &str) -> Option<Self> {
        if let Some(layout) = ProbeLayout::by_name(name) {
            return Some(Self::Numbers(layout));
        }
        let rate = name.strip_prefix(RTP)?;
        let clock_rate = match rate.strip_prefix('/') {
            Some(rate) => Some(rate.parse().ok().filter(|&rate: &u32| rate > 0)?),
            None if rate.is_empty() => None,
            None => return None,
        };
        Some(Self::Rtp(GivenRtp { clock_rate }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names() {
        assert!(DatagramLayout::names().all(|name| DatagramLayout::by_name(name).is_some()));
        let rtp = |clock_rate| Some(DatagramLayout::Rtp(GivenRtp { clock_rate }));
        assert_eq!(DatagramLayout::by_name("rtp"), rtp(None));
        assert_eq!(DatagramLayout::by_name("rtp/48000"), rtp(Some(48_000)));
        for wrong in ["rtpx", "rtp/", "rtp/0", "rtp/x", "own"] {
            assert_eq!(DatagramLayout::by_name(wrong), None, "{wrong}");
        }
    }
}
