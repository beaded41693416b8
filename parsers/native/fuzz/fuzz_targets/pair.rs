//! Any bytes as two captures of one path: the first two say how long the first one is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_pair_of_bytes, check_tables};

fuzz_target!(|bytes: &[u8]| {
    let Some((length, bytes)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    let (first, second) = bytes.split_at(length.min(bytes.len()));
    check_tables(analyse_pair_of_bytes([first.to_vec(), second.to_vec()]));
});
