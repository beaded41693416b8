//! `parsers/reading_settings.py` as options of the core.

use std::collections::HashSet;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::PythonCompiler;
use super::layout::{GivenLayout, layouts};
use super::names::{named, named_option, parameters};
use crate::flow::bins::BinWidth;
use crate::flow::ends::idle_times::IdleTimes;
use crate::flow::ends::packed_flows::Packing;
use crate::flow::intervals::IntervalWidth;
use crate::flow::tcp::vantage::Vantage;
use crate::groups::{GroupBy, Grouping};
use crate::input::source::InputFormat;
use crate::input::stretch::Stretch;
use crate::packet::address;
use crate::packet::event::NodeLayer;
use crate::pass::Options;
use crate::pass::chosen_flows::ChosenFlows;
use crate::pass::log_owners::LogOwner;
use crate::tables::Table;
use crate::tfrc::profile::Profile;
use crate::wire::layers::TunnelPorts;
use crate::wire::layers::udp_port::UdpTunnel;

/// Options, and the compiler of the user's filter.
pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) filter: Option<PythonCompiler>,
}

impl<'py> FromPyObject<'_, 'py> for Settings {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given = |name: &str| object.getattr(name);
        let tfrc = given("tfrc")?;
        let grouping = given("grouping")?.extract::<Option<GivenGrouping>>()?;
        let idle = given("idle_timeout_ns")?.extract::<Option<i64>>()?;
        let (few, silence_ns) = given("packing")?.extract()?;
        let chosen = |name: &str| {
            let flows = given(name)?.extract::<Option<Vec<u32>>>()?;
            PyResult::Ok(flows.map_or_else(ChosenFlows::default, |flows| ChosenFlows::only(&flows)))
        };
        let options = Options {
            format: named_option("input format", &given("format")?, InputFormat::by_name)?,
            layer: named_option("layer", &given("layer")?, NodeLayer::by_name)?,
            vantage: named_option("vantage point", &given("vantage")?, Vantage::by_name)?,
            stretch: given("span")?.extract::<Option<GivenStretch>>()?.map(GivenStretch::bounded),
            log_owners: log_owners(given("log_of")?.extract()?)?,
            dissect: layouts(&given("dissect")?.extract::<Vec<(u16, GivenLayout)>>()?)?,
            tfrc: parameters(&tfrc.getattr("agents")?.extract::<Vec<_>>()?)?,
            tfrc_profile: named_option("profile of TFRC", &tfrc.getattr("profile")?, Profile::by_name)?
                .unwrap_or_default(),
            rtt_s: tfrc.getattr("rtt_s")?.extract()?,
            tunnel_ports: tunnel_ports(given("tunnel_port")?.extract()?)?,
            grouping: grouping.map(GivenGrouping::checked).transpose()?,
            idle: idle.map_or_else(IdleTimes::default, IdleTimes::all),
            packing: Packing { few, silence_ns },
            max_flows: given("max_flows")?.extract()?,
            max_samples: given("max_samples")?.extract()?,
            sampled_flows: chosen("sampled_flows")?,
            explained_flows: chosen("explained_flows")?,
            graphed_flows: given("graphed_flows")?.extract()?,
            max_decompressed_bytes: given("max_decompressed_bytes")?.extract()?,
            ..Options::default()
        };
        let filter = given("filter")?.extract::<Option<Py<PyAny>>>()?;
        Ok(Self { options, filter: filter.map(PythonCompiler::new) })
    }
}

/// What is read: `(since_ns, until_ns, whether they count from the first packet)`.
#[derive(FromPyObject)]
struct GivenStretch(Option<i64>, Option<i64>, bool);

impl GivenStretch {
    fn bounded(self) -> Stretch {
        let Self(since_ns, until_ns, is_from_first) = self;
        let (since_ns, until_ns) = (since_ns.unwrap_or(i64::MIN), until_ns.unwrap_or(i64::MAX));
        Stretch { since_ns, until_ns, is_from_first }
    }
}

/// How flows are grouped: `(by, (IPv4 prefix, IPv6 prefix), every_ns, max_rows)`.
#[derive(FromPyObject)]
struct GivenGrouping(String, (u8, u8), Option<i64>, usize);

impl GivenGrouping {
    fn checked(self) -> PyResult<Grouping> {
        let Self(by, (v4, v6), every_ns, max_rows) = self;
        if v4 > 32 || v6 > 128 || every_ns.is_some_and(|every_ns| every_ns <= 0) {
            return Err(PyValueError::new_err("a prefix is too long, or an interval not positive"));
        }
        let by = GroupBy::named(&by, (v4, v6))
            .ok_or_else(|| PyValueError::new_err(format!("flows are not grouped by `{by}`")))?;
        let every = every_ns.map_or(IntervalWidth::Whole, IntervalWidth::Ns);
        Ok(Grouping { by, every, max_rows: max_rows.min(u32::MAX as usize) })
    }
}

/// Logs, each with the sender of its variables and the peer, as `10.0.0.1:5000`.
fn log_owners(given: Vec<(String, String, String)>) -> PyResult<Vec<LogOwner>> {
    const TCP: u8 = 6;
    let end = |text: &str| {
        let wrong = || PyValueError::new_err(format!("`{text}` is not an address with a port"));
        address::end_with_port(text.as_bytes()).ok_or_else(wrong)
    };
    let owner = |(source, from, to): (String, String, String)| {
        let wrong = || PyValueError::new_err(format!("`{from}` and `{to}` are not of one family"));
        let endpoints = end(&from)?.sending_to(end(&to)?, TCP).ok_or_else(wrong)?;
        Ok(LogOwner { source, endpoints })
    };
    given.into_iter().map(owner).collect()
}

/// Encapsulations and the ports to which they are sent.
fn tunnel_ports(given: Vec<(String, u16)>) -> PyResult<TunnelPorts> {
    let known = |(name, port): (String, u16)| Ok((port, named("encapsulation", &name, UdpTunnel::by_name)?));
    Ok(TunnelPorts::with(&given.into_iter().map(known).collect::<PyResult<Vec<_>>>()?))
}

impl Settings {
    /// The same, with the tables to `collect` and the width of bins.
    pub(super) fn collecting(mut self, collect: HashSet<String>, bin_ns: Option<i64>) -> PyResult<Self> {
        let is_known = |name: &String| Table::by_name(name).is_some_and(Table::is_of_pass);
        if let Some(name) = collect.iter().find(|name| !is_known(name)) {
            return Err(PyValueError::new_err(format!("a pass has no table `{name}`")));
        }
        if bin_ns.is_some_and(|width| width <= 0) {
            return Err(PyValueError::new_err("bin_ns must be positive"));
        }
        self.options = self.options.with_tables(collect);
        self.options.bin_width = bin_ns.map_or(BinWidth::Adaptive, BinWidth::Fixed);
        Ok(self)
    }
}
