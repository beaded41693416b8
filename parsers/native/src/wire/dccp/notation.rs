//! A DCCP header as one line, to read and to compare with other tools.

use std::fmt::{Display, Write};

use super::options::{DccpOption, options};
use crate::packet::dccp::DccpHeader;

/// States of an Ack Vector (RFC 4340 section 11.4): received, marked, reserved, not received.
const STATES: [char; 4] = ['R', 'M', '?', 'N'];

/// Characters of a line after which options are left out: real lines have a tenth, and a packet of
/// options of a byte each would have ten thousand.
const LONG_ENOUGH: usize = 1000;

/// The fields without a column of their own, and the options in their order: `name=value` with a
/// space between them, values as on the wire. A line of [`LONG_ENOUGH`] characters ends with `...`;
/// the option that reaches them is whole, and has at most four characters for each of its 255
/// bytes.
pub fn notation(header: &DccpHeader, after: &[u8]) -> String {
    let mut line = String::new();
    if header.is_short {
        say(&mut line, "short");
    }
    let fields = [
        ("coverage", Some(u32::from(header.coverage)).filter(|coverage| *coverage > 0)),
        ("service_code", header.service_code),
        ("reset_code", header.reset_code.map(u32::from)),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            write_field(&mut line, name, value);
        }
    }
    for option in options(after) {
        if line.len() >= LONG_ENOUGH {
            say(&mut line, "...");
            break;
        }
        add(&mut line, option);
    }
    line
}

fn add(line: &mut String, option: DccpOption<'_>) {
    match option {
        DccpOption::Mandatory => say(line, "mandatory"),
        DccpOption::SlowReceiver => say(line, "slow_receiver"),
        DccpOption::Feature(feature) => {
            let step = if feature.confirms { "confirm" } else { "change" };
            let place = if feature.is_local { "l" } else { "r" };
            let name = format!("{step}_{place}_{}", feature.number);
            write_field(line, &name, joined(feature.values.iter()));
        }
        DccpOption::NdpCount(count) => write_field(line, "ndp_count", count),
        DccpOption::AckVector { nonce, runs } => {
            let run = |byte: &u8| format!("{}{}", STATES[usize::from(byte >> 6)], (byte & 0x3f) + 1);
            let name = if nonce { "ack_vector_1" } else { "ack_vector_0" };
            write_field(line, name, joined(runs.iter().map(run)));
        }
        DccpOption::Timestamp(time) => write_field(line, "timestamp", time),
        DccpOption::TimestampEcho(time, None) => write_field(line, "timestamp_echo", time),
        DccpOption::TimestampEcho(time, Some(elapsed)) => {
            write_field(line, "timestamp_echo", format!("{time}+{elapsed}"));
        }
        DccpOption::ElapsedTime(time) => write_field(line, "elapsed_time", time),
        DccpOption::LossEventRate(inverse) => write_field(line, "loss_event_rate", inverse),
        DccpOption::LossIntervals(list) => {
            let interval = list.iter().map(|part| {
                format!("{}+{}/{}/{}", part.lossless, part.loss, part.data, u8::from(part.ecn_nonce))
            });
            write_field(line, "loss_intervals", format!("{}:{}", list.skip, joined(interval)));
        }
        DccpOption::ReceiveRate(rate) => write_field(line, "receive_rate", rate),
        DccpOption::DroppedPackets(dropped) => {
            let counts = dropped
                .chunks_exact(3)
                .map(|bytes| bytes.iter().fold(0_u32, |count, byte| count << 8 | u32::from(*byte)));
            write_field(line, "dropped_packets", joined(counts));
        }
        DccpOption::RttEstimate(us) => write_field(line, "rtt_estimate", us),
        DccpOption::Other(kind) => say(line, &format!("option_{kind}")),
        DccpOption::Malformed(kind) => write_field(line, &format!("option_{kind}"), "malformed"),
    }
}

fn say(line: &mut String, name: &str) {
    if !line.is_empty() {
        line.push(' ');
    }
    line.push_str(name);
}

fn write_field(line: &mut String, name: &str, value: impl Display) {
    say(line, name);
    // Writing to a String cannot fail.
    let _ = write!(line, "={value}");
}

fn joined(values: impl Iterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for value in values {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::dccp::DccpType;
    use proptest::prelude::*;

    const ACK: DccpHeader = DccpHeader {
        kind: DccpType::Ack,
        ccval: 0,
        coverage: 0,
        is_short: false,
        seq: 1,
        ack: Some(1),
        service_code: None,
        reset_code: None,
    };

    #[test]
    fn test_each_option_has_its_name_and_its_value() {
        let reset = DccpHeader { reset_code: Some(1), coverage: 2, is_short: true, ..ACK };
        assert_eq!(notation(&reset, &[]), "short coverage=2 reset_code=1");
        let cases: [(&[u8], &str); 10] = [
            (&[1, 2, 50, 2], "mandatory slow_receiver option_50"),
            (&[32, 5, 1, 3, 2, 35, 3, 5], "change_l_1=3,2 confirm_r_5="),
            (&[37, 4, 1, 2], "ndp_count=258"),
            // RFC 4340 section 11.4.
            (&[38, 4, 0x0a, 0xc0, 39, 5, 0x41, 0x80, 0x00], "ack_vector_0=R11,N1 ack_vector_1=M2,?1,R1"),
            (&[42, 8, 0, 0, 0, 9, 1, 0, 42, 6, 0, 0, 0, 9], "timestamp_echo=9+256 timestamp_echo=9"),
            (&[41, 6, 0, 0, 0, 7, 43, 4, 0, 5], "timestamp=7 elapsed_time=5"),
            (&[192, 6, 0, 0, 0, 3, 194, 6, 0, 0, 1, 0], "loss_event_rate=3 receive_rate=256"),
            (&[193, 12, 2, 0, 0, 9, 0x80, 0, 4, 0, 0, 12], "loss_intervals=2:9+4/12/1"),
            (&[195, 8, 0, 0, 3, 0, 1, 0, 128, 3, 6], "dropped_packets=3,256 rtt_estimate=6"),
            (&[194, 4, 0, 0, 41, 200], "option_194=malformed option_41=malformed"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(notation(&ACK, bytes), expected);
        }
    }

    #[test]
    fn test_a_long_line_ends_with_dots() {
        let line = notation(&ACK, &[2; 1008]);
        assert!(
            line.ends_with(" slow_receiver ...") && (LONG_ENOUGH..LONG_ENOUGH + 20).contains(&line.len())
        );
    }

    proptest! {
        #[test]
        fn test_any_options_make_a_line_of_bounded_length(bytes in proptest::collection::vec(any::<u8>(), 0..1020)) {
            let line = notation(&ACK, &bytes);
            prop_assert!(line.len() <= 32 * bytes.len() && !line.contains('\n'));
            prop_assert!(line.len() < 3 * LONG_ENOUGH);
        }
    }
}
