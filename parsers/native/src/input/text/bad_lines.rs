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

    /// One caveat about all of them; None if there were none.
    pub fn some_left_out(&self) -> Option<ReadError> {
        let lines = counted(self.count, "line[s] [was|were] left out");
        self.described(ProblemKind::BadLines, lines, Hint::LinesLeftOut)
    }

    /// The error of a text that holds nothing but such lines; None if there were none.
    pub fn all_left_out(&self) -> Option<ReadError> {
        let lines = counted(self.count, "line[s] [was|were] left out, and no packet was found");
        self.described(ProblemKind::NotACapture, lines, Hint::ReadAsOther)
    }

    fn described(&self, kind: ProblemKind, lines: String, hint: Hint) -> Option<ReadError> {
        let (line, _) = self.first.first()?;
        let named: Vec<String> =
            self.first.iter().map(|(line, expected)| format!("line {line}: {expected}")).collect();
        let rest = self.count - self.first.len() as u64;
        let tail = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        let message = format!("{lines} ({}{tail})", named.join("; "));
        let mut error = ReadError::whole(kind, message).hint(hint);
        error.line = Some(*line);
        Some(error)
    }
}
