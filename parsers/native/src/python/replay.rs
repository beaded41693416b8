//! The replay of rate algorithms for Python: arrays in, tables out, and one sender step by step.

use std::sync::{Mutex, PoisonError};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
use crate::tfrc::replay::simulate::{Packet, simulate};

/// In arrays of whole numbers: not known.
const UNKNOWN_TIME: i64 = i64::MIN;
const UNKNOWN_FLAG: u8 = 2;

/// The columns that belong together, each with as many values as the first.
struct Arrays<'py> {
    py: Python<'py>,
    length: Option<usize>,
}

impl<'py> Arrays<'py> {
    fn new(py: Python<'py>) -> Self {
        Self { py, length: None }
    }

    fn take<T: Element>(&mut self, array: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
        let values = PyBuffer::<T>::get(array)?.to_vec(self.py)?;
        if *self.length.get_or_insert(values.len()) == values.len() {
            Ok(values)
        } else {
            Err(PyValueError::new_err("arrays of different lengths"))
        }
    }
}

/// Which sender: whose rules, for which packets, with which parameters.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ChosenSender {
    profile: String,
    variant: String,
    segment_bytes: f64,
    handshake_rtt_s: Option<f64>,
    parameters: Vec<(String, Setting)>,
}

/// What a parameter is set to.
#[derive(FromPyObject)]
enum Setting {
    Number(f64),
    Word(String),
}

impl ChosenSender {
    fn profile(&self) -> PyResult<ParameterProfile> {
        let found = ParameterProfile::ALL.into_iter().find(|profile| profile.name() == self.profile);
        found.ok_or_else(|| PyValueError::new_err(format!("no profile `{}`", self.profile)))
    }

    fn ends(&self) -> PyResult<EndParameters> {
        let found = Variant::ALL.into_iter().find(|variant| variant.name() == self.variant);
        let variant =
            found.ok_or_else(|| PyValueError::new_err(format!("no algorithm `{}`", self.variant)))?;
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

/// The profiles that a sender may have, each with its parameters.
#[pyfunction]
fn replay_profiles() -> Vec<(&'static str, Vec<&'static str>)> {
    ParameterProfile::ALL.into_iter().map(|profile| (profile.name(), profile.parameters())).collect()
}

/// Those parameters of each profile that its receiver obeys.
#[pyfunction]
fn replay_receiver_parameters() -> Vec<(&'static str, Vec<&'static str>)> {
    ParameterProfile::ALL
        .into_iter()
        .map(|profile| (profile.name(), profile.receiver_parameters().to_vec()))
        .collect()
}

/// The kinds of TFRC that it may be of.
#[pyfunction]
fn replay_variants() -> Vec<&'static str> {
    Variant::ALL.into_iter().map(Variant::name).collect()
}

#[pyfunction]
#[pyo3(signature = (chosen, *, start_ns, end_ns, time_ns, rtt_s, p, x_recv, is_data_limited, lost_packets, sent_ns, sent_bytes))]
#[allow(clippy::too_many_arguments)]
fn replay(
    py: Python<'_>,
    chosen: ChosenSender,
    start_ns: i64,
    end_ns: i64,
    time_ns: &Bound<'_, PyAny>,
    rtt_s: &Bound<'_, PyAny>,
    p: &Bound<'_, PyAny>,
    x_recv: &Bound<'_, PyAny>,
    is_data_limited: &Bound<'_, PyAny>,
    lost_packets: &Bound<'_, PyAny>,
    sent_ns: &Bound<'_, PyAny>,
    sent_bytes: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    let rules = chosen.ends()?.rules;
    let mut arrays = Arrays::new(py);
    let (time_ns, rtt_s, p) = (arrays.take(time_ns)?, arrays.take::<f64>(rtt_s)?, arrays.take::<f64>(p)?);
    let (x_recv, limited) = (arrays.take::<f64>(x_recv)?, arrays.take::<u8>(is_data_limited)?);
    let losses = arrays.take::<u64>(lost_packets)?;
    let mut sends = Arrays::new(py);
    let (sent_ns, sent_bytes) = (sends.take::<i64>(sent_ns)?, sends.take::<u32>(sent_bytes)?);
    let rows = py.detach(|| {
        let reports = time_ns.into_iter().zip(rtt_s).zip(p).zip(x_recv).zip(limited).zip(losses);
        let reports = reports.map(|(((((time_ns, r_sample), p), x_recv), limited), losses)| RecordedReport {
            time_ns,
            r_sample,
            p,
            x_recv,
            is_data_limited: (limited != UNKNOWN_FLAG).then_some(limited == 1),
            losses,
        });
        let sends = sent_ns.into_iter().zip(sent_bytes).collect();
        run(&rules, &Recording { start_ns, end_ns, reports: reports.collect(), sends })
    });
    Ok(Table::of(Box::new(rows)))
}

#[pyfunction]
#[pyo3(signature = (chosen, *, reverse_s, is_theirs, number, sent_ns, arrived_ns, payload_bytes, is_marked))]
#[allow(clippy::too_many_arguments)]
fn simulate_reports(
    py: Python<'_>,
    chosen: ChosenSender,
    reverse_s: f64,
    is_theirs: bool,
    number: &Bound<'_, PyAny>,
    sent_ns: &Bound<'_, PyAny>,
    arrived_ns: &Bound<'_, PyAny>,
    payload_bytes: &Bound<'_, PyAny>,
    is_marked: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    if !(reverse_s >= 0.0 && reverse_s.is_finite()) {
        return Err(PyValueError::new_err("the way back takes no negative time"));
    }
    let ends = chosen.ends()?;
    let mut arrays = Arrays::new(py);
    let (number, sent_ns) = (arrays.take::<u64>(number)?, arrays.take::<i64>(sent_ns)?);
    let (arrived_ns, bytes) = (arrays.take::<i64>(arrived_ns)?, arrays.take::<u32>(payload_bytes)?);
    let marked = arrays.take::<u8>(is_marked)?;
    let reports = py.detach(|| {
        let packets = number.into_iter().zip(sent_ns).zip(arrived_ns).zip(bytes).zip(marked);
        let packets = packets.map(|((((number, sent_ns), arrived_ns), bytes), marked)| Packet {
            number,
            sent_ns,
            arrived_ns: Some(arrived_ns).filter(|arrived_ns| *arrived_ns != UNKNOWN_TIME),
            bytes,
            is_marked: marked == 1,
        });
        let packets: Vec<Packet> = packets.collect();
        simulate(&ends, &packets, reverse_s, is_theirs)
    });
    let rows: Vec<_> = reports.into_iter().map(|(time_ns, report)| ReportRow(time_ns, report)).collect();
    Ok(Table::of(Box::new(rows)))
}

#[pyfunction]
#[pyo3(signature = (
    chosen, *, start_ns, sent_s, sent_bytes, sent_end, loss_s, loss_packet, sample_s, sample_rtt_s, is_at_receiver,
))]
#[allow(clippy::too_many_arguments)]
fn round_reports(
    py: Python<'_>,
    chosen: ChosenSender,
    start_ns: i64,
    sent_s: &Bound<'_, PyAny>,
    sent_bytes: &Bound<'_, PyAny>,
    sent_end: &Bound<'_, PyAny>,
    loss_s: &Bound<'_, PyAny>,
    loss_packet: &Bound<'_, PyAny>,
    sample_s: &Bound<'_, PyAny>,
    sample_rtt_s: &Bound<'_, PyAny>,
    is_at_receiver: bool,
) -> PyResult<Table> {
    let ends = chosen.ends()?;
    let mut sends = Arrays::new(py);
    let (time, bytes, end) =
        (sends.take::<f64>(sent_s)?, sends.take::<f64>(sent_bytes)?, sends.take::<f64>(sent_end)?);
    let sent = time
        .into_iter()
        .zip(bytes)
        .zip(end)
        .map(|((time, bytes), end)| SentSegment { time, bytes, end })
        .collect();
    let mut losses = Arrays::new(py);
    let lost = losses.take::<f64>(loss_s)?.into_iter().zip(losses.take::<f64>(loss_packet)?);
    let losses = lost.map(|(time, packet)| Loss { time, packet }).collect();
    let mut samples = Arrays::new(py);
    let rtts = samples.take::<f64>(sample_s)?.into_iter().zip(samples.take::<f64>(sample_rtt_s)?);
    // A round that lasts no time would never end.
    let samples = rtts.map(|(time, rtt)| Sample { time, rtt }).filter(|sample| sample.rtt > 0.0).collect();
    let observed = ObservedDirection { sent, losses, samples, is_at_receiver };
    let reports = py.detach(|| reports_of(&observed, chosen.segment_bytes, &ends.receiver));
    let rows = reports.into_iter().map(|report| RoundReportRow(nanoseconds(report.time, start_ns), report));
    Ok(Table::of(Box::new(rows.collect::<Vec<_>>())))
}

/// x, timer, mode, reason, R, X_calc, limit.
type DecisionTuple = (f64, f64, &'static str, &'static str, Option<f64>, Option<f64>, Option<f64>);

fn told(decision: &Decision) -> DecisionTuple {
    let Decision { x, x_calc, x_limit, x_recv: _, r, timer, mode, reason } = *decision;
    (x, timer, mode.name(), reason.name(), r, x_calc, x_limit)
}

/// One sender, step by step.
#[pyclass(module = "tfrctrace.parsers._native")]
struct TfrcSender {
    /// The lock is never contended: it only makes the class shareable.
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
        told(&decision)
    }

    /// The nofeedback timer runs out, whenever that is.
    fn on_no_feedback(&mut self, is_idle: bool) -> PyResult<DecisionTuple> {
        let (machine, _) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let expired = machine.expire(f64::MAX, 0.0, |_, _| is_idle);
        let (_, decision) = expired.ok_or_else(|| PyValueError::new_err("the timer was never set"))?;
        Ok(told(&decision))
    }
}

/// The loss intervals of one receiver, for who counts packets and finds loss events himself.
#[pyclass(module = "tfrctrace.parsers._native")]
struct LossIntervals {
    /// The lock is never contended: it only makes the class shareable.
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

    /// The first loss event, at this receive rate in bytes/s (section 6.3.1).
    fn begin(&mut self, x_recv: f64, rtt_s: f64) {
        let interval = self.receiver.first_interval(self.segment_bytes, rtt_s, x_recv);
        self.close(interval);
    }

    /// Another one, so many packets after the one before.
    fn close(&mut self, packets: f64) {
        self.history.get_mut().unwrap_or_else(PoisonError::into_inner).close(packets);
    }

    /// The loss event rate, that many packets after the last one; 0 before the first.
    fn p(&mut self, open_packets: f64) -> f64 {
        let history = self.history.get_mut().unwrap_or_else(PoisonError::into_inner);
        history.mean(open_packets, true).map_or(0.0, |mean| mean.p)
    }
}

/// Add what this file has to the module.
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
