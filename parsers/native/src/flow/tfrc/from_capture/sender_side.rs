//! The sender: its rate as the reports set it, and whether it keeps to it.

use serde::{Deserialize, Serialize};

use crate::flow::tfrc::findings::{Finding, FindingKind};
use crate::flow::tfrc::tfrc_samples::{Damping, RfcSender, RttBy, TakenReport};
use crate::tfrc::Report;
use crate::tfrc::profile::SenderProfile;
use crate::tfrc::segment_size::SegmentSize;
use crate::tfrc::sender::{Sender, Step};

/// Limit of consecutive nofeedback timeouts: by then the rate is at its minimum.
const MAX_TIMEOUTS: usize = 128;
/// Below this share of the allowed rate a sender has too little to send.
const DATA_LIMITED: f64 = 0.9;
/// Tolerance of the rate: clocks tick, and R is an estimate.
const TOLERANCE: f64 = 1.1;

#[derive(Debug, Serialize, Deserialize)]
pub struct SenderSide {
    profile: SenderProfile,
    /// None before the first report.
    sender: Option<Sender>,
    is_whole: bool,
    start: Option<f64>,
    size: SegmentSize,
    last_sent: Option<f64>,
    timer_set: f64,
    /// Payload since the last report, and the time of that.
    since_report: u64,
    last_report: Option<f64>,
    bucket: TokenBucket,
    /// Whether the capture shows when data are sent.
    is_shown: bool,
}

/// Bytes that may be sent at once: an unused rate accumulates for one round-trip time (section
/// 8.2.1 of RFC 5348 allows no more).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct TokenBucket {
    bytes: f64,
    time: f64,
    /// Start and amount of sending in excess of it.
    busy_since: f64,
    busy_bytes: f64,
    /// Whether the rate follows a timeout, and not a report.
    is_halved: bool,
    /// Whether the excess was reported already.
    is_reported: bool,
}

impl SenderSide {
    pub fn new(profile: &SenderProfile, is_whole: bool) -> Self {
        Self {
            profile: *profile,
            sender: None,
            is_whole,
            start: None,
            size: SegmentSize::default(),
            last_sent: None,
            timer_set: 0.0,
            since_report: 0,
            last_report: None,
            bucket: TokenBucket::default(),
            is_shown: false,
        }
    }

    pub fn r(&self) -> Option<f64> {
        self.sender.as_ref()?.r()
    }

    /// Record sent data; returns a finding if they exceed the rate.
    pub fn on_data(&mut self, time: f64, bytes: u32) -> Option<Finding> {
        if bytes == 0 {
            return None;
        }
        self.start.get_or_insert(time);
        self.last_sent = Some(time);
        self.since_report = self.since_report.saturating_add(u64::from(bytes));
        let size = f64::from(bytes);
        self.size.on_packet(bytes);
        let s = self.size.s()?;
        let sender = self.sender.as_mut()?;
        sender.set_s(s);
        let rate = TOLERANCE * sender.x().max(sender.x_inst());
        let most = rate * sender.r()? + s.max(size);
        let bucket = &mut self.bucket;
        let saved = (bucket.bytes + rate * (time - bucket.time).max(0.0)).min(most);
        if saved == most {
            (bucket.busy_since, bucket.busy_bytes) = (time, 0.0);
        }
        (bucket.bytes, bucket.time) = (saved - size, time);
        bucket.busy_bytes += size;
        // One packet may wait for the sender's clock to tick.
        if bucket.bytes >= -s || bucket.is_reported || !self.is_shown {
            return None;
        }
        bucket.is_reported = true;
        let value = bucket.busy_bytes / (time - bucket.busy_since).max(sender.r()?);
        let kind = if bucket.is_halved { FindingKind::HalvingMissed } else { FindingKind::AboveAllowedRate };
        Some(Finding::measured(kind, value * 8.0, sender.x() * 8.0))
    }

    /// Expire the nofeedback timer as often as it is due before `time` (section 4.4).
    pub fn run_until(&mut self, time: f64) -> Vec<Finding> {
        let mut findings = Vec::new();
        // Without a round-trip time its expiry is unknown.
        let Some(sender) = self.sender.as_mut().filter(|sender| sender.r().is_some()) else {
            return findings;
        };
        while sender.timer() < time {
            if findings.len() == MAX_TIMEOUTS {
                sender.rest_until(time);
                break;
            }
            let expiry = sender.timer();
            let is_idle = self.last_sent.is_none_or(|sent| sent < self.timer_set);
            let before = sender.x();
            let step = sender.on_no_feedback(is_idle);
            self.timer_set = expiry;
            if step == Step::Held {
                // Nothing changes until something is sent.
                sender.rest_until(time);
                break;
            }
            let (before, after) = (before * 8.0, sender.x() * 8.0);
            findings.push(Finding::measured(FindingKind::NofeedbackTimeout, after, before));
            self.bucket.is_halved = true;
        }
        findings
    }

    pub fn on_report(
        &mut self,
        time_ns: i64,
        report: Report,
        r_sample: Option<(f64, RttBy)>,
        shows_sending: bool,
    ) -> Option<TakenReport> {
        self.is_shown = shows_sending;
        let time = report.time;
        let s = self.size.s().unwrap_or(self.profile.s);
        let start = self.start.filter(|_| self.is_whole).unwrap_or(time);
        let profile = SenderProfile { s, ..self.profile };
        let sender = self.sender.get_or_insert_with(|| Sender::new(&profile, start));
        let since = self.last_report.replace(time).map(|last| time - last).filter(|since| *since > 0.0);
        let x_sent = since.map(|since| self.since_report as f64 / since).filter(|_| shows_sending);
        self.since_report = 0;
        // A sender that yields to a growing queue paces by X_inst (section 4.5) and has more to
        // send. With few packets one more or less is no sign: reports on loss events cover short
        // intervals.
        let allowed = sender.x().min(sender.x_inst());
        let is_data_limited = shows_sending
            && since.is_some_and(|since| x_sent.unwrap_or(0.0) + s / since < DATA_LIMITED * allowed);
        // R itself is no sample: smoothing it again would delay it.
        let estimated_r = r_sample.filter(|(_, by)| by.is_smoothed());
        let is_known = estimated_r.is_some_and(|(r, _)| sender.know_r(r));
        let r_sample_s = report.r_sample.filter(|_| !is_known);
        sender.on_report(&Report { is_data_limited, r_sample: r_sample_s, ..report });
        self.timer_set = time;
        let (r, x) = (sender.r()?, sender.x());
        self.bucket.is_reported = false;
        if std::mem::take(&mut self.bucket.is_halved) || since.is_none() {
            self.bucket = TokenBucket { bytes: x * r + s, time, busy_since: time, ..TokenBucket::default() };
        }
        let mode = match sender.x_equation() {
            None => "slow_start",
            Some(x_equation) if x < x_equation => "receive_rate",
            Some(_) => "equation",
        };
        let damping = Damping { r_sqmean: sender.r_sqmean()?, x_inst: sender.x_inst() };
        let damping = Some(damping).filter(|_| estimated_r.is_none());
        let rfc = RfcSender { damping, x_sent, is_data_limited };
        let t_rto = self.profile.t_rto_factor * r;
        Some(TakenReport { time_ns, r_sample, r, t_rto, x, mode, rfc: Some(rfc) })
    }
}
