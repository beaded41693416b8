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

/// What has this name, or the error that no `kind` has it.
pub(super) fn named<T>(kind: &str, name: &str, by_name: fn(&str) -> Option<T>) -> PyResult<T> {
    by_name(name).ok_or_else(|| PyValueError::new_err(format!("no {kind} `{name}`")))
}

/// The same of a name that may be None.
pub(super) fn named_option<T>(
    kind: &str,
    name: &Bound<'_, PyAny>,
    by_name: fn(&str) -> Option<T>,
) -> PyResult<Option<T>> {
    name.extract::<Option<String>>()?.map(|name| named(kind, &name, by_name)).transpose()
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
