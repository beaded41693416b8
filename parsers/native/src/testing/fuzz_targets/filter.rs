//! Any bytes as a program of a filter and the packets that it filters.

use super::choices::Choices;
use crate::input::filter::{Compiler, Instruction, Program};
use crate::testing::{analyse_filtered_bytes, check_tables, pcap_of_packets, split_at_lengths};

const ETHERNET: u32 = 1;
/// Bytes of an instruction in libpcap's `struct bpf_insn`.
const INSTRUCTION_BYTES: usize = 8;

/// A program for any link type.
struct Compiled(Vec<Instruction>);

impl Compiler for Compiled {
    fn compile(&self, _: u32, _: u32) -> Result<Vec<Instruction>, String> {
        Ok(self.0.clone())
    }
}

/// A program, preceded by its length, and packets: a capture is filtered as its packets one by one are.
pub fn filter(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let program = choices.piece().chunks_exact(INSTRUCTION_BYTES).map(instruction).collect();
    let packets = split_at_lengths(choices.rest());
    let compiled = Compiled(program);
    let capture = pcap_of_packets(ETHERNET, &packets);
    match (Program::new(compiled.0.clone()), analyse_filtered_bytes(capture, &compiled)) {
        (Ok(program), Ok(analysis)) => {
            let is_refused = |packet: &&&[u8]| !program.accepts(packet, packet.len() as u32);
            let refused = packets.iter().filter(is_refused).count() as u64;
            let filtered: u64 = analysis.carried.sources.iter().map(|source| source.filtered_packets).sum();
            assert_eq!(refused, filtered);
            check_tables(analysis);
        }
        (Err(error), Ok(_)) => assert!(packets.is_empty(), "run in spite of {error}"),
        (program, Err(error)) => assert_eq!(program.err(), Some(error)),
    }
}

fn instruction(bytes: &[u8]) -> Instruction {
    let mut choices = Choices::new(bytes);
    Instruction { code: choices.u16(), jt: choices.u8(), jf: choices.u8(), k: choices.u32() }
}
