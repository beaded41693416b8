//! Names of nodes, interfaces and hosts as small numbers.

use std::collections::HashMap;

/// The most names; a hostile trace could have one on each line.
const MAX_NAMES: usize = 1 << 16;
/// The longest name that is kept whole.
const MAX_LENGTH: usize = 255;

/// A list of different names, in order of first use.
#[derive(Debug, Default)]
pub struct NameTable {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// Index by number, plus one, for names that are small numbers: most nodes are.
    by_number: Vec<u32>,
}

impl NameTable {
    /// The index of `name`. Beyond the bound all further names share the last one, `others`.
    pub fn index(&mut self, name: &str) -> u32 {
        let name = name.get(..MAX_LENGTH).unwrap_or(name);
        match self.by_name.get(name) {
            Some(&index) => index,
            None => self.add(name),
        }
    }

    /// The index of a node that is called by a number.
    #[inline]
    pub fn index_of_number(&mut self, number: u64) -> u32 {
        match self.by_number.get(number as usize) {
            Some(&index) if index > 0 => index - 1,
            _ => self.add_number(number),
        }
    }

    #[cold]
    fn add_number(&mut self, number: u64) -> u32 {
        let index = self.index(&number.to_string());
        if number < MAX_NAMES as u64 {
            let at = number as usize;
            self.by_number.resize(self.by_number.len().max(at + 1), 0);
            self.by_number[at] = index + 1;
        }
        index
    }

    fn add(&mut self, name: &str) -> u32 {
        let index = self.names.len();
        if index >= MAX_NAMES {
            return index as u32 - 1;
        }
        let name = if index + 1 == MAX_NAMES { "others" } else { name };
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index as u32);
        index as u32
    }

    /// The name with this index.
    pub fn get(&self, index: u32) -> Option<&str> {
        self.names.get(index as usize).map(String::as_str)
    }

    /// All names, in order of their index.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_number_and_its_text_are_one_name() {
        let mut names = NameTable::default();
        assert_eq!(names.index_of_number(7), 0);
        assert_eq!(names.index("7"), 0);
        assert_eq!(names.index("gateway"), 1);
        assert_eq!(names.index_of_number(7), 0);
        assert_eq!((names.get(0), names.get(1), names.get(2)), (Some("7"), Some("gateway"), None));
    }

    #[test]
    fn test_the_number_of_names_is_bounded() {
        let mut names = NameTable::default();
        for number in 0..2 * MAX_NAMES as u64 {
            assert!((names.index_of_number(number * 1_000_003) as usize) < MAX_NAMES);
        }
        assert_eq!(names.iter().count(), MAX_NAMES);
    }
}
