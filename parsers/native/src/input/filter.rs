//! Classic BPF programs, as libpcap compiles them from a filter expression, run on every packet.
//!
//! A program is checked once ([`Program::new`]: jumps go forward and stay inside, memory cells
//! exist, the last instruction returns), so that running it needs no other check than the packet's
//! length. The instruction set is that of McCanne and Jacobson, "The BSD Packet Filter" (1993),
//! with the MOD and XOR operations that libpcap added.

/// One instruction in the form libpcap has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to skip if a jump's condition is true.
    pub jt: u8,
    /// Instructions to skip if it is false.
    pub jf: u8,
    pub k: u32,
}

/// Compiles the user's expression for a link type and a snap length. The core leaves this to
/// libpcap, so that syntax and meaning are tcpdump's.
pub trait Compiler: Sync {
    /// The program, or libpcap's error message.
    fn compile(&self, link_type: u32, snap_length: u32) -> Result<Vec<Instruction>, String>;
}

#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
}

const MEMORY_CELLS: usize = 16;
/// As in libpcap and the BSD kernels.
const MAX_INSTRUCTIONS: usize = 4096;

// Instruction classes (low three bits).
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;

/// Operand X instead of the constant.
const X: u16 = 0x08;

impl Program {
    /// Check `instructions`; the error names the one that is not a classic BPF instruction or
    /// leaves the program.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, String> {
        let n = instructions.len();
        if n == 0 || n > MAX_INSTRUCTIONS {
            return Err(format!("a filter of {n} instructions"));
        }
        for (at, instruction) in instructions.iter().enumerate() {
            if !is_valid(*instruction, n - at - 1) {
                return Err(format!("filter instruction {at} is not valid: {instruction:?}"));
            }
        }
        if instructions[n - 1].code & 7 != RET {
            return Err("the filter does not end in a return".into());
        }
        Ok(Self { instructions })
    }

    /// Whether the filter lets `packet` (the captured bytes) through; `wire_bytes` is its length
    /// on the wire. Reading beyond the captured bytes rejects the packet, as in libpcap.
    pub fn accepts(&self, packet: &[u8], wire_bytes: u32) -> bool {
        self.run(packet, wire_bytes).unwrap_or(0) != 0
    }

    fn run(&self, packet: &[u8], wire_bytes: u32) -> Option<u32> {
        let mut a = 0_u32;
        let mut x = 0_u32;
        let mut memory = [0_u32; MEMORY_CELLS];
        let mut at = 0;
        loop {
            let Instruction { code, jt, jf, k } = *self.instructions.get(at)?;
            at += 1;
            match code & 7 {
                LD => {
                    a = match code {
                        0x20 => word(packet, k)?,
                        0x28 => half(packet, k)?,
                        0x30 => byte(packet, k)?,
                        0x40 => word(packet, x.checked_add(k)?)?,
                        0x48 => half(packet, x.checked_add(k)?)?,
                        0x50 => byte(packet, x.checked_add(k)?)?,
                        0x60 => memory[k as usize & (MEMORY_CELLS - 1)],
                        0x80 => wire_bytes,
                        _ => k,
                    }
                }
                LDX => {
                    x = match code {
                        0x61 => memory[k as usize & (MEMORY_CELLS - 1)],
                        0x81 => wire_bytes,
                        // The length of an IPv4 header: 4 * (low nibble of P[k]).
                        0xb1 => (byte(packet, k)? & 0x0f) << 2,
                        _ => k,
                    }
                }
                ST => memory[k as usize & (MEMORY_CELLS - 1)] = a,
                STX => memory[k as usize & (MEMORY_CELLS - 1)] = x,
                ALU => a = compute(code, a, if code & X == 0 { k } else { x })?,
                JMP => {
                    let operand = if code & X == 0 { k } else { x };
                    at += match code & 0xf0 {
                        0x00 => k as usize,
                        0x10 => branch(a == operand, jt, jf),
                        0x20 => branch(a > operand, jt, jf),
                        0x30 => branch(a >= operand, jt, jf),
                        _ => branch(a & operand != 0, jt, jf),
                    };
                }
                RET => return Some(if code & 0x18 == 0x10 { a } else { k }),
                _ if code & 0xf8 == 0x80 => a = x,
                _ => x = a,
            }
        }
    }
}

#[inline(always)]
fn branch(condition: bool, jt: u8, jf: u8) -> usize {
    usize::from(if condition { jt } else { jf })
}

/// Division and modulo by zero reject the packet.
fn compute(code: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match code & 0xf0 {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.checked_shl(operand).unwrap_or(0),
        0x70 => a.checked_shr(operand).unwrap_or(0),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(operand)?,
        _ => a ^ operand,
    })
}

/// `left` is the number of instructions after this one.
fn is_valid(instruction: Instruction, left: usize) -> bool {
    let Instruction { code, jt, jf, k } = instruction;
    match code & 7 {
        LD => match code {
            0x60 => (k as usize) < MEMORY_CELLS,
            0x00 | 0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 | 0x80 => true,
            _ => false,
        },
        LDX => match code {
            0x61 => (k as usize) < MEMORY_CELLS,
            0x01 | 0x81 | 0xb1 => true,
            _ => false,
        },
        ST | STX => code < 8 && (k as usize) < MEMORY_CELLS,
        ALU => code & 0xff00 == 0 && code & 0xf0 <= 0xa0,
        JMP => match code & !X {
            0x05 => code & X == 0 && (k as usize) < left,
            0x15 | 0x25 | 0x35 | 0x45 => usize::from(jt) < left && usize::from(jf) < left,
            _ => false,
        },
        RET => matches!(code, 0x06 | 0x16),
        MISC => matches!(code, 0x07 | 0x87),
        _ => false,
    }
}

#[inline(always)]
fn byte(packet: &[u8], at: u32) -> Option<u32> {
    packet.get(at as usize).map(|&byte| u32::from(byte))
}

#[inline(always)]
fn half(packet: &[u8], at: u32) -> Option<u32> {
    let at = at as usize;
    let bytes = packet.get(at..at.checked_add(2)?)?;
    Some(u32::from(u16::from_be_bytes([bytes[0], bytes[1]])))
}

#[inline(always)]
fn word(packet: &[u8], at: u32) -> Option<u32> {
    let at = at as usize;
    let bytes = packet.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn op(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    /// `tcpdump -d 'tcp port 80 and not host 1.2.3.4' ` is longer; this is `tcpdump -dd 'ip proto 6'`.
    fn ip_proto_tcp() -> Program {
        Program::new(vec![
            op(0x28, 0, 0, 12),
            op(0x15, 0, 3, 0x0800),
            op(0x30, 0, 0, 23),
            op(0x15, 0, 1, 6),
            op(0x06, 0, 0, 262_144),
            op(0x06, 0, 0, 0),
        ])
        .unwrap()
    }

    #[test]
    fn test_ip_proto_6_accepts_tcp_only() {
        let mut packet = vec![0; 34];
        packet[12] = 8;
        packet[23] = 6;
        assert!(ip_proto_tcp().accepts(&packet, 34));
        packet[23] = 17;
        assert!(!ip_proto_tcp().accepts(&packet, 34));
    }

    #[test]
    fn test_a_packet_cut_before_the_field_is_rejected() {
        let mut packet = vec![0; 23];
        packet[12] = 8;
        assert!(!ip_proto_tcp().accepts(&packet, 34));
    }

    #[test]
    fn test_a_jump_out_of_the_program_is_refused() {
        assert!(Program::new(vec![op(0x15, 1, 0, 0), op(0x06, 0, 0, 0)]).is_err());
        assert!(Program::new(vec![op(0x05, 0, 0, 1), op(0x06, 0, 0, 0)]).is_err());
    }

    #[test]
    fn test_a_program_without_return_is_refused() {
        assert!(Program::new(vec![op(0x00, 0, 0, 1)]).is_err());
        assert!(Program::new(vec![]).is_err());
    }

    #[test]
    fn test_division_by_zero_rejects_the_packet() {
        let program = Program::new(vec![op(0x00, 0, 0, 1), op(0x34, 0, 0, 0), op(0x16, 0, 0, 0)]).unwrap();
        assert!(!program.accepts(&[], 0));
    }

    proptest! {
        #[test]
        fn test_no_checked_program_runs_away_or_panics(
            codes in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>()), 1..40),
            packet in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut instructions: Vec<_> = codes
                .into_iter()
                .map(|(code, jt, jf, k)| op(code & 0xff, jt % 4, jf % 4, k % 100))
                .filter(|instruction| is_valid(*instruction, usize::MAX))
                .collect();
            instructions.push(op(0x06, 0, 0, 1));
            if let Ok(program) = Program::new(instructions) {
                program.accepts(&packet, 1500);
            }
        }
    }
}
