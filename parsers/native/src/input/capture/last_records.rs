//! The header and the last records of a capture file, for the time at which it ends: the file is not
//! read in between.

use std::io::{self, Read, Seek, SeekFrom};

use super::pcap::RecordLayout;
use super::pcapng::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, OBSOLETE_PACKET, SECTION_HEADER, SIMPLE_PACKET};
use super::{MAX_RECORD, pcap, u32_at};

/// Bytes at the end of a file in which a record has to begin.
const WINDOW: u64 = 2 * MAX_RECORD as u64;

/// What suffices in most files.
const SHORT_WINDOW: u64 = 16 << 10;

/// Bytes at the start of a pcapng file in which its interfaces are described.
const HEAD: u64 = 64 << 10;

/// Records in a row that are no coincidence.
const IN_A_ROW: u32 = 4;

/// Blocks of pcapng that are read backwards.
const MOST_BLOCKS: usize = 64;

/// A capture of the same interfaces that has only the last packets.
#[derive(Debug, PartialEq, Eq)]
pub struct LastRecords {
    pub capture: Vec<u8>,
    /// Whether the last record is whole: it is not while the file is being written.
    pub is_whole: bool,
}

/// The last records of an uncompressed pcap or pcapng file; None where they are not found.
pub fn last_records(file: &mut (impl Read + Seek)) -> io::Result<Option<LastRecords>> {
    let size = file.seek(SeekFrom::End(0))?;
    let head = part(file, 0, HEAD.min(size))?;
    let Some(magic) = head.first_chunk::<4>() else { return Ok(None) };
    if pcap::is_magic(*magic) {
        for window in [SHORT_WINDOW, WINDOW] {
            let start = (pcap::FILE_HEADER as u64).max(size.saturating_sub(window));
            let end = part(file, start, size.saturating_sub(start))?;
            let is_all = start == pcap::FILE_HEADER as u64;
            if let Some(found) = of_pcap(&head, &end, is_all) {
                return Ok(Some(found));
            }
            if is_all {
                break;
            }
        }
        return Ok(None);
    }
    if u32::from_be_bytes(*magic) != SECTION_HEADER {
        return Ok(None);
    }
    let start = size.saturating_sub(WINDOW);
    let end = part(file, start, size - start)?;
    Ok(of_pcapng(&head, &end))
}

fn part(file: &mut (impl Read + Seek), start: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn of_pcap(head: &[u8], end: &[u8], is_all: bool) -> Option<LastRecords> {
    let layout = RecordLayout::of(head)?;
    let mut rows = layout.rows(end);
    rows.truncate(if is_all { 1 } else { end.len() });
    let starts = (0..).zip(&rows).filter_map(|(start, row)| Some((start, (*row)?)));
    let mut enough = starts.filter(|(_, row)| is_all || row.records >= IN_A_ROW);
    let (start, row) = enough.clone().find(|(_, row)| row.is_whole).or_else(|| enough.next())?;
    let capture = [&head[..pcap::FILE_HEADER], &end[start..]].concat();
    Some(LastRecords { capture, is_whole: row.is_whole })
}

fn of_pcapng(head: &[u8], end: &[u8]) -> Option<LastRecords> {
    let big_endian = head.get(8..12)? == [0x1a, 0x2b, 0x3c, 0x4d];
    let kind = |bytes: &[u8]| bytes.first_chunk::<8>().map(|header| u32_at(header, 0, big_endian));
    let is_packet = |bytes| matches!(kind(bytes), Some(ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET));
    let mut interfaces = 0;
    while let Some(header) = head.get(interfaces..).and_then(|rest| rest.first_chunk::<8>())
        && !is_packet(&head[interfaces..])
    {
        interfaces = interfaces.checked_add(u32_at(header, 4, big_endian).max(12) as usize)?;
    }
    let interfaces = head.get(..interfaces)?;
    let mut start = end.len();
    for _ in 0..MOST_BLOCKS {
        let Some(length) = block_before(&end[..start], big_endian) else { break };
        start -= length;
        match kind(&end[start..]) {
            // Interfaces of another section, or one that was found later.
            Some(SECTION_HEADER | INTERFACE_DESCRIPTION) => return None,
            _ if is_packet(&end[start..]) => {
                let capture = [interfaces, &end[start..]].concat();
                return Some(LastRecords { capture, is_whole: true });
            }
            _ => {}
        }
    }
    // No block ends where the file does.
    (start == end.len()).then(|| LastRecords { capture: Vec::new(), is_whole: false })
}

/// Length of the block at the end of `bytes`: a block has its length at both ends.
fn block_before(bytes: &[u8], big_endian: bool) -> Option<usize> {
    let length = u32_at(bytes.last_chunk::<4>()?, 0, big_endian);
    let start = bytes.len().checked_sub(length as usize)?;
    let header = bytes[start..].first_chunk::<8>()?;
    let is_block = length >= 12 && length.is_multiple_of(4) && u32_at(header, 4, big_endian) == length;
    is_block.then_some(length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn pcap_of(records: usize, length: u32) -> Vec<u8> {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0; 8]);
        file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for number in 0..records as u32 {
            for field in [1_700_000_000 + number, 5, length, length] {
                file.extend(field.to_le_bytes());
            }
            file.extend(vec![0; length as usize]);
        }
        file
    }

    fn found(file: &[u8]) -> Option<LastRecords> {
        last_records(&mut Cursor::new(file)).unwrap()
    }

    #[test]
    fn test_the_last_records_of_a_pcap_file_are_found_from_its_end() {
        for (records, length) in [(1, 60), (3, 60), (400, 60), (400, 1500), (9, 100_000)] {
            let file = pcap_of(records, length);
            let last = found(&file).unwrap();
            assert!(last.is_whole);
            let record = 16 + length as usize;
            assert_eq!((last.capture.len() - 24) % record, 0);
            assert_eq!(last.capture[last.capture.len() - record..], file[file.len() - record..]);
        }
    }

    #[test]
    fn test_a_cut_record_is_noticed() {
        for records in [2, 400] {
            let file = pcap_of(records, 60);
            for cut in [1, 59, 61, 75] {
                assert_eq!(found(&file[..file.len() - cut]).map(|last| last.is_whole), Some(false), "{cut}");
            }
        }
    }

    #[test]
    fn test_records_before_bytes_that_are_none_are_not_followed_from_each_of_them() {
        let file = [pcap_of(40_000, 1), vec![0xff; 100]].concat();
        assert!(found(&file).is_none_or(|last| !last.is_whole));
    }

    #[test]
    fn test_what_is_no_capture_has_no_records() {
        assert_eq!(found(b""), None);
        assert_eq!(found(b"text"), None);
        assert_eq!(found(&[pcap_of(0, 0), vec![0xff; 100_000]].concat()), None);
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    }

    #[test]
    fn test_the_last_packet_of_pcapng_is_found_behind_statistics() {
        let section =
            block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        let interface = block(1, &[1, 0, 0, 0, 0, 0, 4, 0]);
        let packet = |byte: u8| block(6, &[&[0; 20][..], &[byte; 4]].concat());
        let statistics = block(5, &[0; 12]);
        let start = [section, interface].concat();
        let file = [&start[..], &packet(1), &packet(2), &statistics].concat();
        let expected = [&start[..], &packet(2), &statistics].concat();
        assert_eq!(found(&file), Some(LastRecords { capture: expected, is_whole: true }));
        assert!(!found(&file[..file.len() - 5]).unwrap().is_whole);
    }
}
