//! Names that Python may pass, and the values that they stand for.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::flow::tcp::vantage::Vantage;
use crate::input::source::InputFormat;
use crate::packet::event::NodeLayer;
use crate::pass::datagram_layout::DatagramLayout;
use crate::tfrc::ns2::Parameters;
use crate::tfrc::profile::Profile;
use crate::wire::layers::udp_port::UdpTunnel;

/// ns-2's parameters, with the given ones set.
pub(super) fn parameters(given: &[(String, f64)]) -> PyResult<Parameters> {
    let mut parameters = Parameters::default();
    for (name, value) in given {
        if !parameters.set(name, *value) {
            return Err(PyValueError::new_err(format!("ns-2's TFRC has no parameter `{name}` of {value}")));
        }
    }
    Ok(parameters)
}

pub(super) fn profile_by_name(name: &str) -> PyResult<Profile> {
    let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no profile of TFRC `{name}`")))
}

/// The values of `tfrc_profile`.
#[pyfunction]
fn tfrc_profiles() -> Vec<&'static str> {
    Profile::ALL.into_iter().map(Profile::name).collect()
}

/// The values of `format`.
#[pyfunction]
fn input_formats() -> Vec<&'static str> {
    InputFormat::all().map(|(name, _)| name).collect()
}

/// The values of `layer`.
#[pyfunction]
fn node_layers() -> Vec<&'static str> {
    NodeLayer::ALL.into_iter().map(NodeLayer::name).collect()
}

/// The names in `tfrc`.
#[pyfunction]
fn tfrc_parameters() -> Vec<&'static str> {
    Parameters::names().collect()
}

/// Whether `tfrc` accepts this.
#[pyfunction]
fn tfrc_takes(name: &str, value: f64) -> bool {
    Parameters::default().set(name, value)
}

/// The values of `vantage`.
#[pyfunction]
fn vantage_points() -> Vec<&'static str> {
    Vantage::ALL.into_iter().map(Vantage::name).collect()
}

/// The names in `dissect`.
#[pyfunction]
fn probe_layouts() -> Vec<&'static str> {
    DatagramLayout::names().collect()
}

/// The names in `tunnel_port`.
#[pyfunction]
fn udp_tunnels() -> Vec<&'static str> {
    UdpTunnel::ALL.into_iter().map(UdpTunnel::name).collect()
}

pub(super) fn format_by_name(name: &str) -> PyResult<InputFormat> {
    InputFormat::by_name(name).ok_or_else(|| PyValueError::new_err(format!("no input format `{name}`")))
}

pub(super) fn layer_by_name(name: &str) -> PyResult<NodeLayer> {
    let found = NodeLayer::ALL.into_iter().find(|layer| layer.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no layer `{name}`")))
}

pub(super) fn vantage_by_name(name: &str) -> PyResult<Vantage> {
    let found = Vantage::ALL.into_iter().find(|vantage| vantage.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no vantage point `{name}`")))
}

pub(super) fn udp_tunnel_by_name(name: &str) -> PyResult<UdpTunnel> {
    let found = UdpTunnel::ALL.into_iter().find(|tunnel| tunnel.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no encapsulation `{name}`")))
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(input_formats, module)?)?;
    module.add_function(wrap_pyfunction!(node_layers, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_takes, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(vantage_points, module)?)?;
    module.add_function(wrap_pyfunction!(probe_layouts, module)?)?;
    module.add_function(wrap_pyfunction!(udp_tunnels, module)?)
}
