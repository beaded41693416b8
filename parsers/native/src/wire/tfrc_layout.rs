//! Where a user's own protocol over UDP has the fields that TFRC needs (RFC 5348 section 3.2).

use super::probe::{Field, OwnLayout, Stamp};

named_enum! {
    /// The encoding of a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NumberForm {
        Integer = "integer",
        /// IEEE 754, of four or eight bytes.
        Float = "float",
        /// The inverse of the value, unsigned; all bits set is 0 (RFC 4342 section 8.5).
        Inverse = "inverse",
    }
}

/// A number with a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    field: Field,
    form: NumberForm,
    /// Value of one unit, in seconds, bytes per second or 1.
    unit: f64,
}

impl Quantity {
    /// None for a float of another width than four or eight bytes, or a `unit` that is not
    /// positive.
    pub fn new(field: Field, form: NumberForm, unit: f64) -> Option<Self> {
        let is_wide_enough = form != NumberForm::Float || matches!(field.bits(), 32 | 64);
        (is_wide_enough && unit > 0.0 && unit.is_finite()).then_some(Self { field, form, unit })
    }

    /// The smallest difference of two values; 0 if that depends on the value.
    fn step(self) -> f64 {
        if self.form == NumberForm::Integer { self.unit } else { 0.0 }
    }

    fn value(self, raw: u64) -> f64 {
        match (self.form, self.field.bits()) {
            (NumberForm::Integer, _) => raw as f64 * self.unit,
            (NumberForm::Float, 32) => f64::from(f32::from_bits(raw as u32)) * self.unit,
            (NumberForm::Float, _) => f64::from_bits(raw) * self.unit,
            (NumberForm::Inverse, bits) if raw == u64::MAX >> (u64::BITS - bits) => 0.0,
            (NumberForm::Inverse, _) => self.unit / raw as f64,
        }
    }
}

/// Bits that distinguish a kind of datagram from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindMark {
    pub field: Field,
    /// The bits that are compared.
    pub mask: u64,
    /// Their expected value.
    pub value: u64,
}

/// Conditions for a kind of datagram; all that are set must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCondition {
    /// Whether it goes to the layout's port; false if it comes from it.
    pub to_port: Option<bool>,
    pub mark: Option<KindMark>,
}

/// Which of a datagram's ports are the layout's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMatch {
    pub is_from_port: bool,
    pub is_to_port: bool,
}

impl KindCondition {
    fn holds(self, bytes: &[u8], way: PortMatch) -> bool {
        let is_its_way = self.to_port.is_none_or(|to| if to { way.is_to_port } else { way.is_from_port });
        let is_marked = |mark: KindMark| {
            mark.field.read(bytes).is_some_and(|read| read & mark.mask == mark.value & mark.mask)
        };
        is_its_way && self.mark.is_none_or(is_marked)
    }
}

/// The fields of a datagram with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataFields {
    pub when: KindCondition,
    /// Its number and time of sending.
    pub numbers: OwnLayout,
    /// The sender's estimate of the round-trip time.
    pub rtt: Option<Quantity>,
}

/// The fields of a datagram with a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackFields {
    pub when: KindCondition,
    /// The latest packet's time of sending, as received.
    pub time_echo: Option<Field>,
    /// How long the receiver has held that packet.
    pub elapsed: Option<Quantity>,
    pub x_recv: Option<Quantity>,
    pub p: Option<Quantity>,
    /// Highest sequence number received.
    pub sequence: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    pub data: DataFields,
    /// None if the layout has no reports.
    pub feedback: Option<FeedbackFields>,
}

/// The values of a datagram with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataValues {
    /// Number and time of sending.
    pub stamp: Stamp,
    /// The time of sending as written.
    pub send_time: Option<u64>,
    /// The round-trip time in seconds; None also for 0, which means not measured yet.
    pub rtt: Option<f64>,
    /// Whether that is out of range.
    pub is_impossible: bool,
}

/// The values of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportValues {
    /// Time of sending of the echoed packet.
    pub time_echo: Option<u64>,
    /// How long that was held, seconds.
    pub elapsed: Option<f64>,
    /// X_recv, bytes per second.
    pub x_recv: Option<f64>,
    pub p: Option<f64>,
    /// Highest sequence number received.
    pub sequence: Option<u64>,
    /// Whether a value was out of range and left out.
    pub is_impossible: bool,
}

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    Data(DataValues),
    Report(ReportValues),
    Other,
    /// Either of them, but too short, or its time overflows.
    Misfit,
}

struct Reader<'a> {
    bytes: &'a [u8],
    is_short: bool,
    is_impossible: bool,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, is_short: false, is_impossible: false }
    }

    fn number(&mut self, field: Option<Field>) -> Option<u64> {
        let read = field?.read(self.bytes);
        self.is_short |= read.is_none();
        read
    }

    /// A quantity from 0 to `most`.
    fn value(&mut self, quantity: Option<Quantity>, most: f64) -> Option<f64> {
        let quantity = quantity?;
        let value = quantity.value(self.number(Some(quantity.field))?);
        let is_possible = (0.0..=most).contains(&value);
        self.is_impossible |= !is_possible;
        is_possible.then_some(value)
    }
}

impl Layout {
    /// The smallest difference of two elapsed times, seconds.
    pub fn elapsed_step(&self) -> f64 {
        self.feedback.and_then(|feedback| feedback.elapsed).map_or(0.0, Quantity::step)
    }

    /// Bits of an echo that are also bits of the time of sending.
    pub fn echo_mask(&self) -> u64 {
        let echo = self.feedback.and_then(|feedback| feedback.time_echo).map_or(u64::BITS, Field::bits);
        let sent = self.data.numbers.time.map_or(u64::BITS, |(field, _)| field.bits());
        u64::MAX >> (u64::BITS - echo.min(sent))
    }

    /// The kind and values of a datagram whose payload begins with `bytes`.
    pub fn read(&self, bytes: &[u8], way: PortMatch) -> Content {
        if self.data.when.holds(bytes, way) {
            self.data.read(bytes).map_or(Content::Misfit, Content::Data)
        } else if let Some(feedback) = self.feedback.filter(|feedback| feedback.when.holds(bytes, way)) {
            feedback.read(bytes).map_or(Content::Misfit, Content::Report)
        } else {
            Content::Other
        }
    }
}

impl DataFields {
    fn read(&self, bytes: &[u8]) -> Option<DataValues> {
        let stamp = self.numbers.read(bytes)?;
        let mut reader = Reader::new(bytes);
        let send_time = reader.number(self.numbers.time.map(|(field, _)| field));
        let rtt = reader.value(self.rtt, f64::MAX).filter(|rtt| *rtt > 0.0);
        let Reader { is_short, is_impossible, .. } = reader;
        (!is_short).then_some(DataValues { stamp, send_time, rtt, is_impossible })
    }
}

impl FeedbackFields {
    fn read(&self, bytes: &[u8]) -> Option<ReportValues> {
        let mut reader = Reader::new(bytes);
        let values = ReportValues {
            time_echo: reader.number(self.time_echo),
            elapsed: reader.value(self.elapsed, f64::MAX),
            x_recv: reader.value(self.x_recv, f64::MAX),
            p: reader.value(self.p, 1.0),
            sequence: reader.number(self.sequence),
            is_impossible: reader.is_impossible,
        };
        (!reader.is_short).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAY: PortMatch = PortMatch { is_from_port: false, is_to_port: true };

    fn quantity(bytes: usize, form: NumberForm, unit: f64) -> Quantity {
        Quantity::new(Field::new(0, bytes, false).unwrap(), form, unit).unwrap()
    }

    fn value(quantity: Quantity, bytes: &[u8]) -> Option<f64> {
        Reader::new(bytes).value(Some(quantity), 1.0)
    }

    #[test]
    fn test_a_loss_event_rate_in_each_form() {
        let full = quantity(4, NumberForm::Integer, 1.0 / f64::from(u32::MAX));
        assert_eq!(value(full, &[255; 4]), Some(1.0));
        let inverse = quantity(4, NumberForm::Inverse, 1.0);
        assert_eq!(value(inverse, &[0, 0, 0, 8]), Some(0.125));
        assert_eq!(value(inverse, &[255; 4]), Some(0.0));
        assert_eq!(value(inverse, &[0; 4]), None);
        let float = quantity(4, NumberForm::Float, 1.0);
        assert_eq!(value(float, &0.25_f32.to_be_bytes()), Some(0.25));
        for impossible in [f32::NAN, f32::INFINITY, -0.1, 1.1] {
            assert_eq!(value(float, &impossible.to_be_bytes()), None);
        }
        assert_eq!(value(quantity(8, NumberForm::Float, 1.0), &0.1_f64.to_be_bytes()), Some(0.1));
    }

    #[test]
    fn test_a_float_has_four_or_eight_bytes() {
        let field = Field::new(0, 3, false).unwrap();
        assert_eq!(Quantity::new(field, NumberForm::Float, 1.0), None);
        assert_eq!(Quantity::new(field, NumberForm::Integer, f64::NAN), None);
        assert!(Quantity::new(field, NumberForm::Inverse, 1.0).is_some());
    }

    #[test]
    fn test_a_kind_is_known_by_some_bits_and_by_its_way() {
        let mark = KindMark { field: Field::new(0, 1, false).unwrap(), mask: 0xF0, value: 0x20 };
        let when = KindCondition { to_port: Some(true), mark: Some(mark) };
        assert!(when.holds(&[0x2A], WAY));
        assert!(!when.holds(&[0x3A], WAY));
        assert!(!when.holds(&[], WAY));
        assert!(!when.holds(&[0x2A], PortMatch { is_from_port: true, is_to_port: false }));
    }

    fn field() -> impl Strategy<Value = Field> {
        (0_usize..25, 1_usize..9, any::<bool>())
            .prop_map(|(offset, bytes, little)| Field::new(offset, bytes, little).unwrap())
    }

    fn any_quantity() -> impl Strategy<Value = Quantity> {
        (field(), prop::sample::select(NumberForm::ALL.to_vec()), 1e-9..1e9)
            .prop_filter_map("no float has this width", |(field, form, unit)| {
                Quantity::new(field, form, unit)
            })
    }

    proptest! {
        #[test]
        fn test_no_payload_panics_and_no_value_is_out_of_range(
            fields in (field(), field(), field(), field()),
            quantities in (any_quantity(), any_quantity(), any_quantity(), any_quantity()),
            ns_per_tick in any::<u32>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..33),
        ) {
            let numbers = OwnLayout { number: fields.0, time: Some((fields.1, ns_per_tick)) };
            let data = DataFields { when: KindCondition::default(), numbers, rtt: Some(quantities.0) };
            let feedback = FeedbackFields {
                when: KindCondition::default(),
                time_echo: Some(fields.2),
                elapsed: Some(quantities.1),
                x_recv: Some(quantities.2),
                p: Some(quantities.3),
                sequence: Some(fields.3),
            };
            let layout = Layout { data, feedback: Some(feedback) };
            layout.echo_mask();
            if let Content::Data(values) = layout.read(&bytes, WAY) {
                prop_assert!(values.rtt.is_none_or(|rtt| rtt > 0.0 && rtt.is_finite()));
            }
            if let Some(values) = feedback.read(&bytes) {
                prop_assert!(values.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
                prop_assert!(values.x_recv.is_none_or(f64::is_finite));
            }
        }
    }
}
