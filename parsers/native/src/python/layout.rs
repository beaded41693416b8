//! Layouts of UDP payloads, as passed by Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::names::named;
use crate::packet::extras::PayloadHead;
use crate::pass::datagram_layout::DatagramLayout;
use crate::wire::probe::{Field, OwnLayout, ProbeLayout};
use crate::wire::tfrc_layout::{
    DataFields, FeedbackFields, KindCondition, KindMark, Layout, NumberForm, Quantity,
};

/// Offset, bytes and little-endian.
type GivenField = (usize, usize, bool);
/// With ns per tick.
type GivenTime = (GivenField, u32);
/// With the name of its form, and the unit in seconds, bytes per second or 1.
type GivenQuantity = (GivenField, String, f64);
/// With mask and value.
type GivenMark = (GivenField, u64, u64);

/// A layout by name, by the fields of a numbered datagram, or by those of TFRC.
#[derive(FromPyObject)]
// They are few and short-lived.
#[allow(clippy::large_enum_variant)]
pub enum GivenLayout {
    /// A layout known to the core.
    Name(String),
    /// Number; offset, bytes, little-endian and ns per tick of the time.
    Own(GivenField, Option<(usize, usize, bool, u32)>),
    /// Data and reports.
    Tfrc(GivenTfrc),
}

/// The fields of TFRC's data and reports.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GivenTfrc {
    data: GivenData,
    feedback: Option<GivenFeedback>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenData {
    to_port: Option<bool>,
    mark: Option<GivenMark>,
    sequence: GivenField,
    send_time: Option<GivenTime>,
    rtt: Option<GivenQuantity>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenFeedback {
    to_port: Option<bool>,
    mark: Option<GivenMark>,
    time_echo: Option<GivenField>,
    elapsed: Option<GivenQuantity>,
    receive_rate: Option<GivenQuantity>,
    loss_event_rate: Option<GivenQuantity>,
    sequence: Option<GivenField>,
}

/// The layouts by port.
pub fn layouts(given: &[(u16, GivenLayout)]) -> PyResult<Vec<(u16, DatagramLayout)>> {
    given.iter().map(|(port, layout)| Ok((*port, layout.dissection()?))).collect()
}

fn field((offset, bytes, is_little_endian): GivenField) -> PyResult<Field> {
    let wrong =
        || PyValueError::new_err(format!("a field must lie in the first {} bytes", PayloadHead::MOST));
    Field::new(offset, bytes, is_little_endian).ok_or_else(wrong)
}

fn quantity((place, form, unit): &GivenQuantity) -> PyResult<Quantity> {
    let form = named("form", form, NumberForm::by_name)?;
    let wrong = || PyValueError::new_err("a float has 4 or 8 bytes, and a unit is above 0");
    Quantity::new(field(*place)?, form, *unit).ok_or_else(wrong)
}

fn when(to_port: Option<bool>, mark: Option<GivenMark>) -> PyResult<KindCondition> {
    let known = |(place, mask, value)| Ok::<_, PyErr>(KindMark { field: field(place)?, mask, value });
    Ok(KindCondition { to_port, mark: mark.map(known).transpose()? })
}

impl GivenLayout {
    fn dissection(&self) -> PyResult<DatagramLayout> {
        match self {
            Self::Name(name) => named("layout of UDP payloads", name, DatagramLayout::by_name),
            Self::Own(number, time) => {
                let time = time.map(|(offset, bytes, little, ns)| ((offset, bytes, little), ns));
                Ok(DatagramLayout::Numbers(ProbeLayout::Own(own(*number, time)?)))
            }
            Self::Tfrc(given) => Ok(DatagramLayout::Tfrc(given.layout()?)),
        }
    }
}

fn own(number: GivenField, time: Option<GivenTime>) -> PyResult<OwnLayout> {
    let time = time.map(|(place, ns)| Ok::<_, PyErr>((field(place)?, ns))).transpose()?;
    Ok(OwnLayout { number: field(number)?, time })
}

impl GivenTfrc {
    fn layout(&self) -> PyResult<Layout> {
        let data = &self.data;
        let data = DataFields {
            when: when(data.to_port, data.mark)?,
            numbers: own(data.sequence, data.send_time)?,
            rtt: data.rtt.as_ref().map(quantity).transpose()?,
        };
        let feedback = self.feedback.as_ref().map(GivenFeedback::fields).transpose()?;
        Ok(Layout { data, feedback })
    }
}

impl GivenFeedback {
    fn fields(&self) -> PyResult<FeedbackFields> {
        Ok(FeedbackFields {
            when: when(self.to_port, self.mark)?,
            time_echo: self.time_echo.map(field).transpose()?,
            elapsed: self.elapsed.as_ref().map(quantity).transpose()?,
            x_recv: self.receive_rate.as_ref().map(quantity).transpose()?,
            p: self.loss_event_rate.as_ref().map(quantity).transpose()?,
            sequence: self.sequence.map(field).transpose()?,
        })
    }
}
