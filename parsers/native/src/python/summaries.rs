//! The summaries of sources as dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{Hint, Problem};
use crate::input::source_summary::SourceSummary;
use crate::packet::link_type::LinkType;
use crate::pass::CapturePair;

pub(super) fn sources_to_python<'py>(
    py: Python<'py>,
    sources: &[SourceSummary],
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for source in sources {
        list.append(source_to_python(py, source)?)?;
    }
    Ok(list)
}

pub(super) fn source_to_python<'py>(py: Python<'py>, source: &SourceSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let mut link_types: Vec<String> = Vec::new();
    let interfaces = PyList::empty(py);
    for (interface, packets) in &source.interfaces {
        let link_type = interface.link_type.name();
        let entry = PyDict::new(py);
        entry.set_item("name", &interface.name)?;
        entry.set_item("link_type", &link_type)?;
        entry.set_item("snap_length_bytes", interface.snap_length)?;
        entry.set_item("is_filtered", interface.is_filtered)?;
        entry.set_item("packets", packets)?;
        let counters = &interface.counters;
        entry.set_item("dropped_packets", counters.dropped)?;
        entry.set_item("received_packets", counters.received)?;
        entry.set_item("accepted_packets", counters.accepted)?;
        entry.set_item("capture_start_ns", counters.start_ns)?;
        entry.set_item("capture_end_ns", counters.end_ns)?;
        interfaces.append(entry)?;
        if interface.link_type != LinkType::None && !link_types.contains(&link_type) {
            link_types.push(link_type);
        }
    }
    dict.set_item("source", &source.source)?;
    dict.set_item("format", &*source.format)?;
    dict.set_item("compression", &*source.compression)?;
    dict.set_item("link_types", link_types)?;
    dict.set_item("interfaces", interfaces)?;
    let seen = |time_ns: i64| (source.packets > 0).then_some(time_ns);
    dict.set_item("start_ns", seen(source.start_ns))?;
    dict.set_item("end_ns", seen(source.end_ns))?;
    for (name, count) in [
        ("packets", source.packets),
        ("filtered_packets", source.filtered_packets),
        ("outside_packets", source.outside_packets),
        ("tcp_packets", source.tcp_packets),
        ("udp_packets", source.udp_packets),
        ("dccp_packets", source.dccp_packets),
        ("tfrc_packets", source.tfrc_packets),
        ("other_ip_packets", source.other_ip_packets),
        ("non_ip_packets", source.non_ip_packets),
        ("undecoded_packets", source.undecoded_packets),
        ("untracked_packets", source.untracked_packets),
        ("portless_packets", source.portless_packets),
        ("repeated_packets", source.repeated_packets),
        ("out_of_order_times", source.time_order.back.count),
        ("lines", source.lines),
        ("other_lines", source.other_lines),
        ("bad_lines", source.bad_lines),
        ("wire_bytes", source.wire_bytes),
        ("captured_bytes", source.captured_bytes),
    ] {
        dict.set_item(name, count)?;
    }
    dict.set_item("decode_stops", stops_to_python(py, source)?)?;
    dict.set_item("clock_steps", clock_steps_to_python(py, source)?)?;
    Ok(dict)
}

fn clock_steps_to_python<'py>(py: Python<'py>, source: &SourceSummary) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for step in &source.clock.steps {
        let entry = PyDict::new(py);
        entry.set_item("packet", step.packet)?;
        entry.set_item("before_ns", step.before_ns)?;
        entry.set_item("after_ns", step.after_ns)?;
        entry.set_item("step_ns", step.step_ns)?;
        list.append(entry)?;
    }
    Ok(list)
}

pub(super) fn stops_to_python<'py>(py: Python<'py>, source: &SourceSummary) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let add = |layer: &str, reason: String, packets: u64, first: Option<u64>| -> PyResult<()> {
        let entry = PyDict::new(py);
        entry.set_item("layer", layer)?;
        entry.set_item("reason", reason)?;
        entry.set_item("packets", packets)?;
        entry.set_item("first_packet", first)?;
        list.append(entry)
    };
    for (stop, packets, first) in &source.stops {
        add(stop.layer.name(), stop.reason.words(stop.layer), *packets, Some(*first))?;
    }
    if source.other_stops > 0 {
        add("any", "of further kinds".into(), source.other_stops, None)?;
    }
    Ok(list)
}

/// The estimated difference of two captures' clocks.
pub(super) fn clock_to_python<'py>(py: Python<'py>, pairing: &CapturePair) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let ppm = |drift: f64| drift * 1e6;
    let bounds_ns = pairing.estimate.map_or((None, None), |estimate| estimate.offset_bounds_ns);
    let drift_bounds = pairing.estimate.and_then(|estimate| estimate.drift_bounds);
    dict.set_item("is_given", pairing.is_given)?;
    dict.set_item("has_delays", pairing.has_delays())?;
    dict.set_item("reference_ns", pairing.clock.reference_ns)?;
    dict.set_item("offset_ns", pairing.clock.offset_ns)?;
    dict.set_item("offset_low_ns", bounds_ns.0)?;
    dict.set_item("offset_high_ns", bounds_ns.1)?;
    let drift = pairing.estimate.and_then(|estimate| estimate.drift).filter(|_| !pairing.is_given);
    dict.set_item("drift_ppm", drift.map(ppm))?;
    dict.set_item("drift_low_ppm", drift_bounds.map(|bounds| ppm(bounds.0)))?;
    dict.set_item("drift_high_ppm", drift_bounds.map(|bounds| ppm(bounds.1)))?;
    dict.set_item("packets", pairing.met)?;
    Ok(dict)
}

/// `first_flow` is the number of flow 0.
pub(super) fn problems_to_python<'py>(
    py: Python<'py>,
    problems: &[Problem],
    first_flow: u32,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for problem in problems {
        let error = &problem.error;
        let dict = PyDict::new(py);
        dict.set_item("severity", error.kind.severity().name())?;
        dict.set_item("kind", error.kind.name())?;
        dict.set_item("source", &problem.source)?;
        dict.set_item("flows", problem.flows.iter().map(|flow| flow + first_flow).collect::<Vec<_>>())?;
        dict.set_item("packet", problem.packet)?;
        dict.set_item("byte", error.byte)?;
        dict.set_item("line", error.line)?;
        dict.set_item("message", &error.message)?;
        dict.set_item("hint", error.hint.map(Hint::name))?;
        dict.set_item("packets_before", problem.packets_before)?;
        list.append(dict)?;
    }
    Ok(list)
}
