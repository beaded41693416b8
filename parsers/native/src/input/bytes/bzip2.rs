//! bzip2: blocks sorted by the Burrows-Wheeler transform, several streams allowed.

use std::io::{self, BufRead, Read};

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
/// Bytes of a block, times the digit in the stream's header.
const BLOCK_UNIT: usize = 100_000;
const GROUPS: std::ops::RangeInclusive<usize> = 2..=6;
/// Symbols that share a table before the next selector.
const GROUP_SIZE: usize = 50;
/// The most symbols: two for runs, 255 places in the list of bytes, and the end.
const MOST_SYMBOLS: usize = 258;
const LONGEST_CODE: u8 = 20;
/// Equal bytes after which a count of more follows.
const RUN: u8 = 4;

pub struct Bzip2Reader<R> {
    bits: Bits<R>,
    block: Block,
    /// Bytes of the largest block of this stream; 0 between streams.
    block_size: usize,
    /// Checksum of the stream's blocks.
    checksum: u32,
    /// Met behind bytes that were returned.
    error: Option<io::Error>,
}

/// A block while it is read.
#[derive(Default)]
struct Block {
    /// For each byte of the sorted text, the byte and the place of the next one.
    chain: Vec<u32>,
    place: u32,
    left: usize,
    last: Option<u8>,
    run: u8,
    repeats: u8,
    checksum: u32,
    expected: u32,
}

impl<R: BufRead> Bzip2Reader<R> {
    pub fn new(source: R) -> Self {
        let bits = Bits { source, buffer: 0, count: 0 };
        Self { bits, block: Block::default(), block_size: 0, checksum: 0, error: None }
    }

    /// Read up to the next block that is not empty; false at the end of the file.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            if self.block_size == 0 && !self.stream_header()? {
                return Ok(false);
            }
            match self.bits.take(24)? << 24 | self.bits.take(24)? {
                BLOCK => {
                    self.block_header()?;
                    if self.block.left > 0 {
                        return Ok(true);
                    }
                }
                END => {
                    let expected = self.bits.take(32)? as u32;
                    self.block_size = 0;
                    self.bits.align();
                    if expected != self.checksum {
                        return Err(damaged("a checksum of a stream is wrong"));
                    }
                }
                _ => return Err(damaged("neither a block nor the end of a stream")),
            }
        }
    }

    fn stream_header(&mut self) -> io::Result<bool> {
        if self.bits.is_at_end()? {
            return Ok(false);
        }
        let magic = self.bits.take(24)?;
        let digit = self.bits.take(8)?;
        if magic != u64::from_be_bytes(*b"\0\0\0\0\0BZh") || !(0x31..=0x39).contains(&digit) {
            return Err(damaged("bytes behind the end that are no stream"));
        }
        self.block_size = (digit - 0x30) as usize * BLOCK_UNIT;
        self.checksum = 0;
        Ok(true)
    }

    fn block_header(&mut self) -> io::Result<()> {
        let expected = self.bits.take(32)? as u32;
        if self.bits.take(1)? != 0 {
            return Err(damaged("a block of the obsolete randomized kind"));
        }
        let origin = self.bits.take(24)? as usize;
        let mut chain = std::mem::take(&mut self.block.chain);
        let counts = self.symbols(&mut chain)?;
        if origin >= chain.len() && !(chain.is_empty() && origin == 0) {
            return Err(damaged("a block that begins behind its end"));
        }
        link(&mut chain, &counts);
        let place = chain.get(origin).map_or(0, |entry| entry >> 8);
        let left = chain.len();
        self.block = Block { chain, place, left, checksum: u32::MAX, expected, ..Block::default() };
        Ok(())
    }

    /// Decode the bytes of a block into `text`, and count each.
    fn symbols(&mut self, text: &mut Vec<u32>) -> io::Result<[u32; 256]> {
        let mut list = self.used_bytes()?;
        let alphabet = list.len() + 2;
        let groups = self.bits.take(3)? as usize;
        let selectors = self.bits.take(15)? as usize;
        if list.is_empty() || !GROUPS.contains(&groups) || selectors == 0 {
            return Err(damaged("a block without tables"));
        }
        let selectors = self.selectors(groups, selectors)?;
        let tables = (0..groups).map(|_| self.table(alphabet)).collect::<io::Result<Vec<_>>>()?;
        text.clear();
        let mut counts = [0; 256];
        // Digits of a run's length in the bijective base 2.
        let (mut run, mut weight) = (0_usize, 1_usize);
        for selector in selectors {
            for _ in 0..GROUP_SIZE {
                let symbol = tables[selector].symbol(&mut self.bits)?;
                if symbol < 2 {
                    run += weight << symbol;
                    weight *= 2;
                    if run > self.block_size {
                        return Err(damaged("a block longer than its stream allows"));
                    }
                    continue;
                }
                if run > 0 {
                    self.append(text, &mut counts, list[0], run)?;
                    (run, weight) = (0, 1);
                }
                if symbol == alphabet - 1 {
                    return Ok(counts);
                }
                let byte = list.remove(symbol - 1);
                list.insert(0, byte);
                self.append(text, &mut counts, byte, 1)?;
            }
        }
        Err(damaged("a block without end"))
    }

    fn append(&self, text: &mut Vec<u32>, counts: &mut [u32; 256], byte: u8, times: usize) -> io::Result<()> {
        if text.len() + times > self.block_size {
            return Err(damaged("a block longer than its stream allows"));
        }
        counts[usize::from(byte)] += times as u32;
        text.resize(text.len() + times, byte.into());
        Ok(())
    }

    fn used_bytes(&mut self) -> io::Result<Vec<u8>> {
        let ranges = self.bits.take(16)?;
        let mut used = Vec::new();
        for range in (0..16_u8).filter(|range| ranges >> (15 - range) & 1 == 1) {
            let bytes = self.bits.take(16)?;
            used.extend(
                (0..16_u8).filter(|byte| bytes >> (15 - byte) & 1 == 1).map(|byte| range << 4 | byte),
            );
        }
        Ok(used)
    }

    fn selectors(&mut self, groups: usize, count: usize) -> io::Result<Vec<usize>> {
        let mut order: Vec<usize> = (0..groups).collect();
        let mut selectors = Vec::with_capacity(count);
        for _ in 0..count {
            let mut place = 0;
            while self.bits.take(1)? == 1 {
                place += 1;
                if place >= groups {
                    return Err(damaged("a selector without a table"));
                }
            }
            let chosen = order.remove(place);
            order.insert(0, chosen);
            selectors.push(chosen);
        }
        Ok(selectors)
    }

    fn table(&mut self, alphabet: usize) -> io::Result<Table> {
        let mut length = self.bits.take(5)? as u8;
        let mut lengths = [0; MOST_SYMBOLS];
        for symbol in lengths.iter_mut().take(alphabet) {
            loop {
                if !(1..=LONGEST_CODE).contains(&length) {
                    return Err(damaged("a code of an impossible length"));
                }
                if self.bits.take(1)? == 0 {
                    break;
                }
                length = if self.bits.take(1)? == 0 { length + 1 } else { length - 1 };
            }
            *symbol = length;
        }
        Ok(Table::new(&lengths[..alphabet]))
    }

    /// The next byte, or None at the end of the file.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let block = &mut self.block;
            if let (Some(last), 1..) = (block.last, block.repeats) {
                block.repeats -= 1;
                block.checksum = add(block.checksum, last);
                return Ok(Some(last));
            }
            if block.left == 0 {
                self.finish_block()?;
                if !self.next_block()? {
                    return Ok(None);
                }
                continue;
            }
            let entry = block.chain[block.place as usize];
            (block.place, block.left) = (entry >> 8, block.left - 1);
            let byte = entry as u8;
            if block.run == RUN {
                (block.repeats, block.run) = (byte, 0);
                continue;
            }
            block.run = if block.last == Some(byte) { block.run + 1 } else { 1 };
            block.last = Some(byte);
            block.checksum = add(block.checksum, byte);
            return Ok(Some(byte));
        }
    }

    fn finish_block(&mut self) -> io::Result<()> {
        if !self.block.chain.is_empty() {
            if !self.block.checksum != self.block.expected {
                return Err(damaged("a checksum of a block is wrong"));
            }
            self.checksum = self.checksum.rotate_left(1) ^ self.block.expected;
            self.block.chain.clear();
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Bzip2Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        for (at, place) in buffer.iter_mut().enumerate() {
            match self.next_byte() {
                Ok(Some(byte)) => *place = byte,
                Ok(None) => return Ok(at),
                Err(error) if at > 0 => {
                    // What came before it is still good.
                    self.error = Some(error);
                    return Ok(at);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.len())
    }
}

/// Put into each entry the place of the next byte, above the byte itself.
fn link(chain: &mut [u32], counts: &[u32; 256]) {
    let mut next = [0_u32; 256];
    let mut before = 0;
    for (next, count) in next.iter_mut().zip(counts) {
        *next = before;
        before += count;
    }
    for at in 0..chain.len() {
        let place = &mut next[(chain[at] & 0xff) as usize];
        chain[*place as usize] |= (at as u32) << 8;
        *place += 1;
    }
}

/// A canonical Huffman code.
struct Table {
    /// Symbols in the order of their codes.
    symbols: Vec<u16>,
    /// For each length, how many codes have it.
    counts: [u32; LONGEST_CODE as usize + 1],
}

impl Table {
    fn new(lengths: &[u8]) -> Self {
        let mut counts = [0; LONGEST_CODE as usize + 1];
        let mut symbols: Vec<u16> = (0..lengths.len() as u16).collect();
        symbols.sort_by_key(|&symbol| lengths[usize::from(symbol)]);
        for &length in lengths {
            counts[usize::from(length)] += 1;
        }
        Self { symbols, counts }
    }

    fn symbol<R: BufRead>(&self, bits: &mut Bits<R>) -> io::Result<usize> {
        let (mut code, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for count in &self.counts[1..] {
            code = code << 1 | bits.take(1)? as u32;
            if code < first + count {
                let place = index + (code - first);
                return Ok(self.symbols.get(place as usize).copied().unwrap_or_default().into());
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(damaged("a code that stands for nothing"))
    }
}

/// Bits of the input, the upper one of each byte first.
struct Bits<R> {
    source: R,
    buffer: u64,
    count: u32,
}

impl<R: BufRead> Bits<R> {
    /// The next `n` bits, at most 32.
    #[inline]
    fn take(&mut self, n: u32) -> io::Result<u64> {
        while self.count < n {
            let bytes = self.source.fill_buf()?;
            let Some(&byte) = bytes.first() else {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the last stream is cut"));
            };
            self.source.consume(1);
            self.buffer = self.buffer << 8 | u64::from(byte);
            self.count += 8;
        }
        self.count -= n;
        Ok(self.buffer >> self.count & ((1 << n) - 1))
    }

    /// Skip to the next whole byte.
    fn align(&mut self) {
        self.count -= self.count % 8;
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.count == 0 && self.source.fill_buf()?.is_empty())
    }
}

/// Extend bzip2's checksum (CRC-32, the upper bit first) by a byte.
#[inline]
fn add(checksum: u32, byte: u8) -> u32 {
    checksum << 8 ^ CHECKSUMS[((checksum >> 24) as u8 ^ byte) as usize]
}

static CHECKSUMS: [u32; 256] = checksums();

const fn checksums() -> [u32; 256] {
    const POLYNOMIAL: u32 = 0x04c1_1db7;
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 != 0 { value << 1 ^ POLYNOMIAL } else { value << 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
