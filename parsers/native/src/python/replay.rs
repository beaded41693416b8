//! The replay of rate algorithms for Python: arrays in, tables out, and one sender step by step.

use std::sync::{Mutex, PoisonError};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::names::named;
use super::table::Table;
use crate::tables::replay::{ReportRow, RoundReportRow};
use crate::tfrc::Report;
use crate::tfrc::loss_intervals::LossHistory;
use crate::tfrc::profile::ReceiverProfile;
use crate::tfrc::replay::drive_sender::{RecordedReport, Recording, run};
use crate::tfrc::replay::inferred_feedback::{
    Loss, ObservedDirection, Sample, SentSegment, round_reports as reports_of,
};
use crate::tfrc::replay::nanoseconds;
use crate::tfrc::replay::rfc_parameters::{EndParameters, ParameterProfile, Refusal, Value, Variant, ends};
use crate::tfrc::replay::sender_variant::{Decision, SenderVariant};
use crate::tfrc::replay::simulate::{Packet, ReturnPath, simulate};

/// A whole number that stands for an unknown time or flag.
const UNKNOWN_TIME: i64 = i64::MIN;
const UNKNOWN_FLAG: u8 = 2;

/// A column of numbers, copied from an array of Python.
struct Numbers<T>(Vec<T>);

impl<'py, T: Element> FromPyObject<'_, 'py> for Numbers<T> {
    type Error = PyErr;

    fn extract(array: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(PyBuffer::<T>::get(&array)?.to_vec(array.py())?))
    }
}

/// Fail unless columns that belong together have equal lengths.
fn refuse_uneven<const N: usize>(lengths: [usize; N]) -> PyResult<()> {
    if lengths.windows(2).all(|pair| pair.first() == pair.last()) {
        Ok(())
    } else {
        Err(PyValueError::new_err("arrays of different lengths"))
    }
}

/// The rules, parameters and packet size of a sender.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ChosenSender {
    profile: String,
    variant: String,
    segment_bytes: f64,
    handshake_rtt_s: Option<f64>,
    parameters: Vec<(String, Setting)>,
}

/// The value of a parameter.
#[derive(FromPyObject)]
enum Setting {
    Number(f64),
    Word(String),
}

impl ChosenSender {
    fn profile(&self) -> PyResult<ParameterProfile> {
        named("profile", &self.profile, ParameterProfile::by_name)
    }

    fn ends(&self) -> PyResult<EndParameters> {
        let variant = named("algorithm", &self.variant, Variant::by_name)?;
        if !(self.segment_bytes > 0.0 && self.segment_bytes.is_finite()) {
            return Err(PyValueError::new_err("packets must have a payload"));
        }
        let profile = self.profile()?;
        let parameters = self.parameters.iter().map(|(name, setting)| {
            let value = match setting {
                Setting::Number(number) => Value::Number(*number),
                Setting::Word(word) => Value::Word(word.clone()),
            };
            (name.clone(), value)
        });
        let parameters: Vec<_> = parameters.collect();
        ends(profile, variant, self.segment_bytes, self.handshake_rtt_s, &parameters).map_err(|refusal| {
            PyValueError::new_err(match refusal {
                Refusal::Variant => format!("the profile `{}` has no `{}`", self.profile, self.variant),
                Refusal::Name(name) => format!("the profile `{}` has no parameter `{name}`", self.profile),
                Refusal::Value(name) => format!("the parameter `{name}` cannot have this value"),
            })
        })
    }
}

/// All profiles with their parameters.
#[pyfunction]
fn replay_profiles() -> Vec<(&'static str, Vec<&'static str>)> {
    ParameterProfile::ALL.into_iter().map(|profile| (profile.name(), profile.parameters())).collect()
}

/// All profiles with the parameters of their receivers.
#[pyfunction]
fn replay_receiver_parameters() -> Vec<(&'static str, Vec<&'static str>)> {
    ParameterProfile::ALL
        .into_iter()
        .map(|profile| (profile.name(), profile.receiver_parameters().to_vec()))
        .collect()
}

/// All variants of TFRC.
#[pyfunction]
fn replay_variants() -> Vec<&'static str> {
    Variant::ALL.into_iter().map(Variant::name).collect()
}

/// One direction of a flow: reports as they reached the sender, and its data packets.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RecordedFlow {
    start_ns: i64,
    end_ns: i64,
    time_ns: Numbers<i64>,
    rtt_s: Numbers<f64>,
    p: Numbers<f64>,
    x_recv: Numbers<f64>,
    is_data_limited: Numbers<u8>,
    lost_packets: Numbers<u64>,
    sent_ns: Numbers<i64>,
    sent_bytes: Numbers<u32>,
}

impl RecordedFlow {
    fn recording(self) -> PyResult<Recording> {
        let (rtts, shares, rates) = (self.rtt_s.0, self.p.0, self.x_recv.0);
        let (limited, losses) = (self.is_data_limited.0, self.lost_packets.0);
        let times = self.time_ns.0;
        let lengths = [times.len(), rtts.len(), shares.len(), rates.len(), limited.len(), losses.len()];
        refuse_uneven(lengths)?;
        refuse_uneven([self.sent_ns.0.len(), self.sent_bytes.0.len()])?;
        let reports = times.into_iter().zip(rtts).zip(shares).zip(rates).zip(limited).zip(losses);
        let reports = reports.map(|(((((time_ns, r_sample), p), x_recv), limited), losses)| RecordedReport {
            time_ns,
            r_sample,
            p,
            x_recv,
            is_data_limited: (limited != UNKNOWN_FLAG).then_some(limited == 1),
            losses,
        });
        let sends = self.sent_ns.0.into_iter().zip(self.sent_bytes.0).collect();
        Ok(Recording { start_ns: self.start_ns, end_ns: self.end_ns, reports: reports.collect(), sends })
    }
}

#[pyfunction]
fn replay(py: Python<'_>, chosen: ChosenSender, flow: RecordedFlow) -> PyResult<Table> {
    let rules = chosen.ends()?.rules;
    let recording = flow.recording()?;
    Ok(Table::of(Box::new(py.detach(|| run(&rules, &recording)))))
}

/// The numbered packets of one direction.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct NumberedPackets {
    number: Numbers<u64>,
    sent_ns: Numbers<i64>,
    arrived_ns: Numbers<i64>,
    payload_bytes: Numbers<u32>,
    is_marked: Numbers<u8>,
}

fn known_time(time_ns: i64) -> Option<i64> {
    Some(time_ns).filter(|time_ns| *time_ns != UNKNOWN_TIME)
}

impl NumberedPackets {
    fn packets(self) -> PyResult<Vec<Packet>> {
        let (sent, arrived, sizes) = (self.sent_ns.0, self.arrived_ns.0, self.payload_bytes.0);
        let (numbers, marked) = (self.number.0, self.is_marked.0);
        refuse_uneven([numbers.len(), sent.len(), arrived.len(), sizes.len(), marked.len()])?;
        let packets = numbers.into_iter().zip(sent).zip(arrived).zip(sizes).zip(marked);
        let packets = packets.map(|((((number, sent_ns), arrived_ns), bytes), marked)| Packet {
            number,
            sent_ns,
            arrived_ns: known_time(arrived_ns),
            bytes,
            is_marked: marked == 1,
        });
        Ok(packets.collect())
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenReturnPath {
    least_s: f64,
    made_ns: Numbers<i64>,
    arrived_ns: Numbers<i64>,
    reveals_arrivals: bool,
}

impl GivenReturnPath {
    fn path(self) -> PyResult<ReturnPath> {
        if !(self.least_s >= 0.0 && self.least_s.is_finite()) {
            return Err(PyValueError::new_err("the delay of the return path is negative or infinite"));
        }
        refuse_uneven([self.made_ns.0.len(), self.arrived_ns.0.len()])?;
        let arrived = self.arrived_ns.0.into_iter().map(known_time);
        let mut reports_ns: Vec<_> = self.made_ns.0.into_iter().zip(arrived).collect();
        reports_ns.sort_by_key(|(made_ns, _)| *made_ns);
        Ok(ReturnPath { least: self.least_s, reports_ns, reveals_arrivals: self.reveals_arrivals })
    }
}

#[pyfunction]
fn simulate_reports(
    py: Python<'_>,
    chosen: ChosenSender,
    packets: NumberedPackets,
    return_path: GivenReturnPath,
) -> PyResult<Table> {
    let (ends, packets, path) = (chosen.ends()?, packets.packets()?, return_path.path()?);
    let reports = py.detach(|| simulate(&ends, &packets, &path));
    let rows: Vec<_> = reports.into_iter().map(|(time_ns, report)| ReportRow(time_ns, report)).collect();
    Ok(Table::of(Box::new(rows)))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ObservedConnection {
    start_ns: i64,
    sent_s: Numbers<f64>,
    sent_bytes: Numbers<f64>,
    sent_end: Numbers<f64>,
    loss_s: Numbers<f64>,
    loss_packet: Numbers<f64>,
    sample_s: Numbers<f64>,
    sample_rtt_s: Numbers<f64>,
    is_at_receiver: bool,
}

impl ObservedConnection {
    fn direction(self) -> PyResult<ObservedDirection> {
        let (times, sizes, ends) = (self.sent_s.0, self.sent_bytes.0, self.sent_end.0);
        refuse_uneven([times.len(), sizes.len(), ends.len()])?;
        refuse_uneven([self.loss_s.0.len(), self.loss_packet.0.len()])?;
        refuse_uneven([self.sample_s.0.len(), self.sample_rtt_s.0.len()])?;
        let sent = times.into_iter().zip(sizes).zip(ends);
        let losses = self.loss_s.0.into_iter().zip(self.loss_packet.0);
        let rtts = self.sample_s.0.into_iter().zip(self.sample_rtt_s.0);
        Ok(ObservedDirection {
            sent: sent.map(|((time, bytes), end)| SentSegment { time, bytes, end }).collect(),
            losses: losses.map(|(time, packet)| Loss { time, packet }).collect(),
            // A round that lasts no time would never end.
            samples: rtts.map(|(time, rtt)| Sample { time, rtt }).filter(|sample| sample.rtt > 0.0).collect(),
            is_at_receiver: self.is_at_receiver,
        })
    }
}

#[pyfunction]
fn round_reports(py: Python<'_>, chosen: ChosenSender, connection: ObservedConnection) -> PyResult<Table> {
    let ends = chosen.ends()?;
    let start_ns = connection.start_ns;
    let observed = connection.direction()?;
    let reports = py.detach(|| reports_of(&observed, chosen.segment_bytes, &ends.receiver));
    let rows = reports.into_iter().map(|report| RoundReportRow(nanoseconds(report.time, start_ns), report));
    Ok(Table::of(Box::new(rows.collect::<Vec<_>>())))
}

/// x, timer, mode, reason, R, X_calc, limit.
type DecisionTuple = (f64, f64, &'static str, &'static str, Option<f64>, Option<f64>, Option<f64>);

fn as_tuple(decision: &Decision) -> DecisionTuple {
    let Decision { x, x_calc, x_limit, x_recv: _, r, timer, mode, reason } = *decision;
    (x, timer, mode.name(), reason.name(), r, x_calc, x_limit)
}

/// One sender, driven step by step.
#[pyclass(module = "tfrctrace.parsers._native")]
struct TfrcSender {
    /// Never contended: the lock only makes the class shareable.
    state: Mutex<(SenderVariant, f64)>,
}

#[pymethods]
impl TfrcSender {
    #[new]
    fn new(chosen: ChosenSender) -> PyResult<Self> {
        Ok(Self { state: Mutex::new((SenderVariant::new(&chosen.ends()?.rules, 0.0), 0.0)) })
    }

    fn on_sent(&mut self, time_s: f64, payload_bytes: u32) {
        let (machine, _) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        machine.on_sent(time_s, payload_bytes);
    }

    fn on_report(
        &mut self,
        time_s: f64,
        rtt_s: Option<f64>,
        p: f64,
        x_recv: f64,
        is_data_limited: bool,
        lost_packets: u64,
    ) -> DecisionTuple {
        let (machine, p_before) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let report =
            Report { time: time_s, r_sample: rtt_s, x_recv, p, is_data_limited, losses: lost_packets };
        let decision = machine.on_report(&report, *p_before);
        *p_before = p;
        as_tuple(&decision)
    }

    /// Expire the nofeedback timer.
    fn on_no_feedback(&mut self, is_idle: bool) -> PyResult<DecisionTuple> {
        let (machine, _) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let expired = machine.expire(f64::MAX, 0.0, |_, _| is_idle);
        let (_, decision) = expired.ok_or_else(|| PyValueError::new_err("the timer was never set"))?;
        Ok(as_tuple(&decision))
    }
}

/// The loss intervals of one receiver, for callers that count packets and find loss events themselves.
#[pyclass(module = "tfrctrace.parsers._native")]
struct LossIntervals {
    /// Never contended: the lock only makes the class shareable.
    history: Mutex<LossHistory>,
    receiver: ReceiverProfile,
    segment_bytes: f64,
}

#[pymethods]
impl LossIntervals {
    #[new]
    fn new(chosen: ChosenSender) -> PyResult<Self> {
        let receiver = chosen.ends()?.receiver;
        let history = Mutex::new(LossHistory::new(receiver.averaging));
        Ok(Self { history, receiver, segment_bytes: chosen.segment_bytes })
    }

    /// Start with the first loss event, at this receive rate in bytes/s (section 6.3.1).
    fn begin(&mut self, x_recv: f64, rtt_s: f64) {
        let interval = self.receiver.first_interval(self.segment_bytes, rtt_s, x_recv);
        self.close(interval);
    }

    /// Another loss event, `packets` after the previous one.
    fn close(&mut self, packets: f64) {
        self.history.get_mut().unwrap_or_else(PoisonError::into_inner).close(packets);
    }

    /// The loss event rate `open_packets` after the last loss event; 0 before the first.
    fn p(&mut self, open_packets: f64) -> f64 {
        let history = self.history.get_mut().unwrap_or_else(PoisonError::into_inner);
        history.mean(open_packets, true).map_or(0.0, |mean| mean.p)
    }
}

/// Add the classes and functions of this file to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TfrcSender>()?;
    module.add_class::<LossIntervals>()?;
    module.add_function(wrap_pyfunction!(replay_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(replay_receiver_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(replay_variants, module)?)?;
    module.add_function(wrap_pyfunction!(replay, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_reports, module)?)?;
    module.add_function(wrap_pyfunction!(round_reports, module)?)
}
