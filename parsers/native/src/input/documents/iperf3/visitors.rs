//! Visitors that parse a document without keeping it in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::model::{Start, StreamInterval};
use super::test_run::{FileFindings, TestRun};
use crate::input::documents::json::seed_with;

/// The most errors of iperf3 that are kept, and their length.
const MAX_ERRORS: usize = 3;
const MAX_ERROR_CHARS: usize = 200;

/// A whole test, or one event of a stream of events.
pub struct TestSeed<'a> {
    /// The test that is being read.
    pub run: &'a mut TestRun,
    pub findings: &'a mut FileFindings,
}

/// The keys of a test, and those of an event.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Start,
    Intervals,
    Error,
    ServerOutputJson,
    Event,
    Data,
    #[serde(other)]
    Other,
}

/// What the `data` of an event holds.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Start,
    Interval,
    Error,
    ServerOutputJson,
    #[serde(other)]
    Other,
}

seed_with!(TestSeed, deserialize_map);

impl<'de> Visitor<'de> for TestSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of iperf3")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut event = None;
        while let Some(key) = map.next_key()? {
            match key {
                Key::Start => self.begin(&mut map)?,
                Key::Intervals => map.next_value_seed(self.list(ListOf::Intervals))?,
                Key::Error => self.error(&mut map)?,
                Key::ServerOutputJson => self.other_end(&mut map)?,
                Key::Event => event = Some(map.next_value()?),
                Key::Data => match event.unwrap_or(Event::Other) {
                    Event::Start => self.begin(&mut map)?,
                    Event::Interval => map.next_value_seed(self.interval())?,
                    Event::Error => self.error(&mut map)?,
                    Event::ServerOutputJson => self.other_end(&mut map)?,
                    Event::Other => ignore(&mut map)?,
                },
                Key::Other => ignore(&mut map)?,
            }
        }
        if event.is_none() {
            // The next document is another test.
            std::mem::take(self.run).end(self.findings);
        }
        Ok(())
    }
}

impl TestSeed<'_> {
    fn begin<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let start: Start = map.next_value()?;
        self.run.begin(start, self.findings);
        Ok(())
    }

    /// The server's output, with `--get-server-output`: the same test as seen by the other end.
    fn other_end<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        map.next_value_seed(TestSeed { run: &mut TestRun::default(), findings: self.findings })
    }

    fn error<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let words: String = map.next_value()?;
        if self.findings.errors.len() < MAX_ERRORS {
            self.findings.errors.push(words.chars().take(MAX_ERROR_CHARS).collect());
        }
        Ok(())
    }

    fn list(&mut self, of: ListOf) -> ListSeed<'_> {
        ListSeed { of, run: self.run, findings: self.findings }
    }

    fn interval(&mut self) -> IntervalSeed<'_> {
        IntervalSeed { run: self.run, findings: self.findings }
    }
}

fn ignore<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

#[derive(Clone, Copy)]
enum ListOf {
    Intervals,
    Streams,
}

/// A list of intervals, or the list of streams in one.
struct ListSeed<'a> {
    of: ListOf,
    run: &'a mut TestRun,
    findings: &'a mut FileFindings,
}

seed_with!(ListSeed, deserialize_seq);

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { of, run, findings } = self;
        match of {
            ListOf::Intervals => while list.next_element_seed(IntervalSeed { run, findings })?.is_some() {},
            ListOf::Streams => {
                while let Some(interval) = list.next_element_seed(PhantomData::<StreamInterval>)? {
                    run.on_interval(&interval, findings);
                }
            }
        }
        Ok(())
    }
}

/// One interval: only its streams are read; the sums follow from them.
struct IntervalSeed<'a> {
    run: &'a mut TestRun,
    findings: &'a mut FileFindings,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum IntervalKey {
    Streams,
    #[serde(other)]
    Other,
}

seed_with!(IntervalSeed, deserialize_map);

impl<'de> Visitor<'de> for IntervalSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an interval")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { run, findings } = self;
        while let Some(key) = map.next_key()? {
            match key {
                IntervalKey::Streams => {
                    map.next_value_seed(ListSeed { of: ListOf::Streams, run, findings })?
                }
                IntervalKey::Other => ignore(&mut map)?,
            }
        }
        Ok(())
    }
}
