//! Tables with a row for each sample that a pass kept of a direction of a flow.

use std::io;
use std::marker::PhantomData;

use super::shown::Shown;
use super::{PassTable, Row};
use crate::flow::direction_name;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::pass::collectors::PacketSample;

/// A sample of a direction of a flow, kept in order.
pub(super) trait Sample: Sized + Send + Sync + 'static {
    fn kept(analysis: &Analysis) -> &[Self];

    /// Its flow, from 0, and direction.
    fn place(&self) -> (u32, Side);
}

impl<S: PacketSample> Sample for S {
    fn kept(analysis: &Analysis) -> &[Self] {
        analysis.results.samples.kept()
    }

    fn place(&self) -> (u32, Side) {
        PacketSample::place(self)
    }
}

/// A sample with its flow.
pub struct SampleRow<'a, S> {
    pub(super) analysis: Shown<'a>,
    pub(super) flow: u32,
    pub(super) direction: &'static str,
    pub(super) sample: &'a S,
}

impl<'a, S: Sample> SampleRow<'a, S> {
    pub(super) fn at(analysis: Shown<'a>, row: usize, first_flow: u32) -> Option<Self> {
        let sample = S::kept(analysis.analysis).get(row)?;
        let (flow, side) = sample.place();
        let direction = direction_name(side, analysis.flow(flow).forward());
        Some(Self { analysis, flow: flow + first_flow, direction, sample })
    }
}

/// The table of all samples of one kind.
pub(super) struct Samples<S>(PhantomData<S>);

impl<S: Sample> PassTable for Samples<S>
where
    for<'a> SampleRow<'a, S>: Row<'a>,
{
    type Row<'a> = SampleRow<'a, S>;

    fn new(_: &Analysis) -> io::Result<Self> {
        Ok(Self(PhantomData))
    }

    fn len(&self, analysis: &Analysis) -> usize {
        S::kept(analysis).len()
    }

    fn flow(&self, analysis: &Analysis, row: usize) -> Option<u32> {
        S::kept(analysis).get(row).map(|sample| sample.place().0)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<Self::Row<'a>> {
        SampleRow::at(shown, row, first_flow)
    }
}
