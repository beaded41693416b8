//! Compressed captures are recognised by their first bytes, never by their name.

use std::io::{self, BufReader, Chain, Cursor, Read};

/// A zstd stream may ask for a window of gigabytes; `zstd -d` itself stops at 128 MiB.
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// The same for xz, in KiB; the strongest preset of `xz` (-9) needs 65 MiB.
const MAX_XZ_MEMORY_KIB: u32 = 128 << 10;

/// Compressed bytes read at a time.
const BUFFER: usize = 128 * 1024;

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Compression {
        None = "",
        /// RFC 1952, several members allowed.
        Gzip = "gzip",
        /// RFC 8878, several frames allowed.
        Zstd = "zstd",
        Lz4 = "lz4",
        /// XZ, several streams allowed.
        Xz = "xz",
        /// Several streams allowed.
        Bzip2 = "bzip2",
    }
}

impl Compression {
    fn of(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // The digit is the size of a block.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Self::Bzip2,
            _ => Self::None,
        }
    }
}

/// The input with the inspected bytes put back in front.
type RewoundInput = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// Recognise the compression by the first bytes and insert its decompressor.
pub fn recognise(mut raw: Box<dyn Read + Send>) -> io::Result<(Compression, Box<dyn Read + Send>)> {
    let mut first = Vec::with_capacity(6);
    raw.by_ref().take(6).read_to_end(&mut first)?;
    let compression = Compression::of(&first);
    let rewound: RewoundInput = Cursor::new(first).chain(raw);
    let buffered = |rewound| BufReader::with_capacity(BUFFER, rewound);
    let reader: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(rewound),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(rewound))),
        Compression::Zstd => {
            let mut frames = zstd::Decoder::with_buffer(buffered(rewound))?;
            frames.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
            Box::new(frames)
        }
        Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(buffered(rewound))),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(rewound))),
        Compression::Xz => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(buffered(rewound), true, MAX_XZ_MEMORY_KIB))
        }
    };
    Ok((compression, reader))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn decompress(bytes: Vec<u8>) -> io::Result<(Compression, Vec<u8>)> {
        let (compression, mut reader) = recognise(Box::new(Cursor::new(bytes)))?;
        let mut out = Vec::new();
        reader.read_to_end(&mut out)?;
        Ok((compression, out))
    }

    #[test]
    fn test_uncompressed_bytes_pass_through() {
        assert_eq!(decompress(b"abc".to_vec()).unwrap(), (Compression::None, b"abc".to_vec()));
    }

    #[test]
    fn test_gzip_members_are_joined() {
        let member = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let bytes = [member(b"one "), member(b"two")].concat();
        assert_eq!(decompress(bytes).unwrap(), (Compression::Gzip, b"one two".to_vec()));
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn test_bzip2_streams_are_joined_and_empty_ones_are_skipped() {
        let bytes = [bzip2(b"one "), bzip2(b""), bzip2(b"two")].concat();
        assert_eq!(decompress(bytes).unwrap(), (Compression::Bzip2, b"one two".to_vec()));
    }

    #[test]
    fn test_what_comes_before_a_damaged_or_cut_bzip2_stream_is_good() {
        let (one, two) = (bzip2(b"one "), bzip2(b"two"));
        let mut damaged = two.clone();
        damaged[10] ^= 1;
        for end in [damaged, two[..20].to_vec(), b"no stream at all".to_vec()] {
            let (_, mut reader) = recognise(Box::new(Cursor::new([one.clone(), end].concat()))).unwrap();
            let mut out = Vec::new();
            assert!(reader.read_to_end(&mut out).is_err());
            assert_eq!(out, b"one ");
        }
        assert_eq!(decompress(one[..20].to_vec()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Frames as `zstd -1` writes them: "one " and "two", with a skippable frame between.
    #[test]
    fn test_zstd_frames_are_joined_and_skippable_frames_are_skipped() {
        let raw_block = |text: &[u8]| {
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
            frame.extend_from_slice(&((1 | (text.len() as u32) << 3).to_le_bytes()[..3]));
            frame.extend_from_slice(text);
            frame
        };
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let bytes = [raw_block(b"one "), skippable.to_vec(), raw_block(b"two")].concat();
        assert_eq!(decompress(bytes).unwrap(), (Compression::Zstd, b"one two".to_vec()));
    }

    #[test]
    fn test_a_cut_zstd_frame_is_an_unexpected_end() {
        let bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'o'];
        assert_eq!(decompress(bytes).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
