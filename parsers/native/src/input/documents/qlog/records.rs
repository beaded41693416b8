//! Visitors that parse a log without keeping it in memory.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::event::{Data, End, MARKS, METRICS, Number, Text, ignore_lists_and_objects};
use super::trace::{FileFindings, TraceLog};
use crate::input::documents::json::seed_with;

/// A file, a trace, or a record of a sequence: the same keys mean the same in each.
pub struct RecordSeed<'a> {
    pub trace: &'a mut TraceLog,
    pub findings: &'a mut FileFindings,
}

seed_with!(RecordSeed, deserialize_map);

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of qlog")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { trace, findings } = self;
        let mut event = Event::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traces" => map.next_value_seed(ListSeed { of: ListOf::Traces, trace, findings })?,
                "trace" => {
                    map.next_value_seed(RecordSeed { trace: &mut *trace, findings: &mut *findings })?
                }
                "events" => map.next_value_seed(ListSeed { of: ListOf::Events, trace, findings })?,
                "common_fields" | "vantage_point" | "reference_time" => {
                    map.next_value_seed(FieldsSeed { trace: &mut *trace, of: &key })?;
                }
                key => event.read_field(key, &mut map)?,
            }
        }
        if event.is_any {
            trace.on_event(event.time_ms, event.name.as_deref(), &event.data, findings);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Event {
    is_any: bool,
    time_ms: Option<f64>,
    name: Option<String>,
    data: Data,
}

impl Event {
    fn read_field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "time" => {
                self.is_any = true;
                self.time_ms = map.next_value::<Number>()?.0;
            }
            "name" => self.name = map.next_value::<Text>()?.0,
            "data" => map.next_value_seed(DataSeed(&mut self.data))?,
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum ListOf {
    Traces,
    Events,
}

struct ListSeed<'a> {
    of: ListOf,
    trace: &'a mut TraceLog,
    findings: &'a mut FileFindings,
}

seed_with!(ListSeed, deserialize_seq);

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { of, trace, findings } = self;
        while list.next_element_seed(RecordSeed { trace: &mut *trace, findings: &mut *findings })?.is_some() {
            if matches!(of, ListOf::Traces) {
                std::mem::take(trace).end(findings);
            }
        }
        Ok(())
    }
}

/// Fields of a trace, of its vantage point, or of its clock.
struct FieldsSeed<'a> {
    trace: &'a mut TraceLog,
    of: &'a str,
}

seed_with!(FieldsSeed, deserialize_any);

impl<'de> Visitor<'de> for FieldsSeed<'_> {
    type Value = ();

    ignore_lists_and_objects!(());

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    /// A reference time in ms.
    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if self.of == "reference_time" {
            self.trace.set_reference_ms(number);
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "reference_time" {
                map.next_value_seed(FieldsSeed { trace: &mut *self.trace, of: &key })?;
            } else if let Some(text) = map.next_value::<Text>()?.0 {
                self.trace.set_field(self.of, &key, &text);
            }
        }
        Ok(())
    }
}

/// The data of any event.
struct DataSeed<'a>(&'a mut Data);

seed_with!(DataSeed, deserialize_any);

impl<'de> Visitor<'de> for DataSeed<'_> {
    type Value = ();

    ignore_lists_and_objects!(());

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let data = self.0;
        while let Some(key) = map.next_key::<String>()? {
            if let Some(at) = METRICS.iter().position(|(name, ..)| *name == key) {
                data.metrics[at] = map.next_value::<Number>()?.0;
                continue;
            }
            match key.as_str() {
                "frames" => map.next_value_seed(FramesSeed(data))?,
                "src_ip" => data.local.host = map.next_value::<Text>()?.0,
                "dst_ip" => data.remote.host = map.next_value::<Text>()?.0,
                "src_port" => data.local.port = map.next_value::<Number>()?.0,
                "dst_port" => data.remote.port = map.next_value::<Number>()?.0,
                "local" => map.next_value_seed(EndSeed(&mut data.local))?,
                "remote" => map.next_value_seed(EndSeed(&mut data.remote))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// An end of a path in later versions: one address, or one of each family.
struct EndSeed<'a>(&'a mut End);

impl<'de> DeserializeSeed<'de> for EndSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Path {
            ip_v4: Text,
            port_v4: Number,
            ip_v6: Text,
            port_v6: Number,
        }
        let Path { ip_v4, port_v4, ip_v6, port_v6 } = Path::deserialize(deserializer)?;
        let is_v4 = ip_v4.0.is_some();
        self.0.host = ip_v4.0.or(ip_v6.0);
        self.0.port = if is_v4 { port_v4.0 } else { port_v6.0 };
        Ok(())
    }
}

/// Frames of a packet, of which only acknowledgements are of interest.
struct FramesSeed<'a>(&'a mut Data);

seed_with!(FramesSeed, deserialize_seq);

impl<'de> Visitor<'de> for FramesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of frames")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Frame {
            frame_type: Text,
            ect0: Number,
            ect1: Number,
            ce: Number,
        }
        while let Some(frame) = list.next_element::<Frame>()? {
            if frame.frame_type.0.as_deref() == Some("ack") {
                let counts: [Number; MARKS.len()] = [frame.ect0, frame.ect1, frame.ce];
                self.0.marks = counts.map(|count| count.0);
            }
        }
        Ok(())
    }
}
