//! Lines that could not be read: counted, and the first few kept with their numbers.

use crate::error::{Hint, ProblemKind, ReadError};
use crate::plural::counted;

const NAMED: usize = 3;

/// Lines that could not be read.
#[derive(Debug, Default)]
pub struct BadLines {
    count: u64,
    first: Vec<(u64, &'static str)>,
}

impl BadLines {
    /// Count line `number`; `expected` describes a valid one.
    #[cold]
    pub fn add(&mut self, number: u64, expected: &'static str) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((number, expected));
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// One error for all of them; None if there were none.
    pub fn error(&self) -> Option<ReadError> {
        let (line, _) = self.first.first()?;
        let named: Vec<String> =
            self.first.iter().map(|(line, expected)| format!("line {line}: {expected}")).collect();
        let rest = self.count - self.first.len() as u64;
        let tail = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        let lines = counted(self.count, "line[s] [was|were] left out");
        let message = format!("{lines} ({}{tail})", named.join("; "));
        let mut error = ReadError::whole(ProblemKind::BadLines, message).hint(Hint::LinesLeftOut);
        error.line = Some(*line);
        Some(error)
    }
}
