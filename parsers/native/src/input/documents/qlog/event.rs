//! One event.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::packet::address::{self, HostPort};
use crate::packet::logged_variables::Unit;

/// A number, or a text of one, as some programs write those beyond 2^53; nothing for any other value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Scalar")]
pub struct Number(pub Option<f64>);

/// A text; nothing for any other value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Scalar")]
pub struct Text(pub Option<String>);

enum Scalar {
    Number(f64),
    Text(String),
    Other,
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Number(number) => Self(Some(number)),
            Scalar::Text(text) => Self(text.parse().ok()),
            Scalar::Other => Self(None),
        }
    }
}

impl From<Scalar> for Text {
    fn from(scalar: Scalar) -> Self {
        if let Scalar::Text(text) = scalar { Self(Some(text)) } else { Self(None) }
    }
}

/// Implement what a lenient visitor ignores.
macro_rules! ignore_lists_and_objects {
    ($value:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}
pub(super) use ignore_lists_and_objects;

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;

        impl<'de> Visitor<'de> for ScalarVisitor {
            type Value = Scalar;

            ignore_lists_and_objects!(Scalar::Other);

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }

        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// Variables of a sender: name in events, name here, unit. Times are in ms already.
pub const METRICS: [(&str, &str, Unit); 10] = [
    ("latest_rtt", "rtt", Unit::Ms),
    ("smoothed_rtt", "srtt", Unit::Ms),
    ("rtt_variance", "rttvar", Unit::Ms),
    ("min_rtt", "minrtt", Unit::Ms),
    ("congestion_window", "cwnd", Unit::Bytes),
    // aioquic's name.
    ("cwnd", "cwnd", Unit::Bytes),
    ("bytes_in_flight", "bytes_in_flight", Unit::Bytes),
    ("ssthresh", "ssthresh", Unit::Bytes),
    ("packets_in_flight", "unacked", Unit::Packets),
    ("pacing_rate", "pacing_rate", Unit::Bps),
];

/// Marks that an acknowledgement reports (RFC 9000 section 19.3.2): sums over the connection.
pub const MARKS: [(&str, &str); 3] =
    [("ect0", "reported_ect0_packets"), ("ect1", "reported_ect1_packets"), ("ce", "reported_ce_packets")];

/// An end of a path.
#[derive(Clone, Debug, Default)]
pub struct End {
    pub host: Option<String>,
    pub port: Option<f64>,
}

impl End {
    pub fn address(&self) -> Option<HostPort> {
        let port = self.port.filter(|port| port.fract() == 0.0 && (0.0..=65_535.0).contains(port))?;
        address::end(self.host.as_deref()?.as_bytes(), port as u16)
    }
}

/// What is read of the data of any event.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub metrics: [Option<f64>; METRICS.len()],
    /// Of the last acknowledgement in it.
    pub marks: [Option<f64>; MARKS.len()],
    pub local: End,
    pub remote: End,
}
