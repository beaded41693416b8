//! Any bytes as files.

use super::choices::Choices;
use crate::testing::{
    analyse_bytes, analyse_bytes_as, analyse_joined_bytes, analyse_pair_of_bytes, check_tables,
};

/// Files that are joined.
const MOST_FILES: usize = 4;

/// A file whose format is recognised.
pub fn capture(bytes: &[u8]) {
    check_tables(analyse_bytes(bytes.to_vec()));
}

/// A file of this format, whatever it looks like.
pub fn named(bytes: &[u8], format: &str) {
    check_tables(analyse_bytes_as(bytes.to_vec(), format));
}

/// Two captures of one path; the first is preceded by its length.
pub fn pair(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let first = choices.piece();
    check_tables(analyse_pair_of_bytes([first.to_vec(), choices.rest().to_vec()]));
}

/// Files of one trace, each preceded by its length.
pub fn joined(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut files = Vec::new();
    while !choices.is_empty() && files.len() < MOST_FILES {
        files.push(choices.piece().to_vec());
    }
    check_tables(analyse_joined_bytes(&files));
}
