//! Bytes to a compressed stream, piece by piece.

use std::io::Write;

use super::Compression;

/// Compresses what is written to it; the result is taken from time to time.
pub enum Compressor {
    None(Vec<u8>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<Vec<u8>>>),
    Xz(Box<lzma_rust2::XzWriter<Vec<u8>>>),
    Bzip2(bzip2::write::BzEncoder<Vec<u8>>),
    Finished,
}

/// The preset of `xz` whose window is a megabyte: stronger ones need hundreds.
const XZ_PRESET: u32 = 1;

impl Compressor {
    /// A compressor to this form.
    pub fn to(compression: Compression) -> Result<Self, String> {
        Ok(match compression {
            Compression::None => Self::None(Vec::new()),
            Compression::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()))
            }
            Compression::Zstd => Self::Zstd(zstd::Encoder::new(Vec::new(), 0).map_err(words)?),
            Compression::Lz4 => Self::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(Vec::new()))),
            Compression::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(XZ_PRESET);
                Self::Xz(Box::new(lzma_rust2::XzWriter::new(Vec::new(), options).map_err(words)?))
            }
            Compression::Bzip2 => {
                Self::Bzip2(bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default()))
            }
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::None(written) => written.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
            Self::Lz4(encoder) => encoder.write_all(bytes),
            Self::Xz(encoder) => encoder.write_all(bytes),
            Self::Bzip2(encoder) => encoder.write_all(bytes),
            Self::Finished => Ok(()),
        }
        .map_err(words)
    }

    fn written(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::None(written) => Some(written),
            Self::Gzip(encoder) => Some(encoder.get_mut()),
            Self::Zstd(encoder) => Some(encoder.get_mut()),
            Self::Lz4(encoder) => Some(encoder.get_mut()),
            Self::Xz(encoder) => Some(encoder.inner_mut()),
            Self::Bzip2(encoder) => Some(encoder.get_mut()),
            Self::Finished => None,
        }
    }

    /// Compressed bytes that wait to be taken.
    pub fn waiting(&mut self) -> usize {
        self.written().map_or(0, |written| written.len())
    }

    /// What was compressed since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        self.written().map(std::mem::take).unwrap_or_default()
    }

    /// End the stream, and return its last bytes.
    pub fn finish(&mut self) -> Result<Vec<u8>, String> {
        match std::mem::replace(self, Self::Finished) {
            Self::None(written) => Ok(written),
            Self::Gzip(encoder) => encoder.finish().map_err(words),
            Self::Zstd(encoder) => encoder.finish().map_err(words),
            Self::Lz4(encoder) => encoder.finish().map_err(words),
            Self::Xz(encoder) => encoder.finish().map_err(words),
            Self::Bzip2(encoder) => encoder.finish().map_err(words),
            Self::Finished => Ok(Vec::new()),
        }
    }
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::bytes::decompress::recognise;
    use std::io::{Cursor, Read};

    #[test]
    fn test_what_is_compressed_is_read_again() {
        let text: Vec<u8> = (0..400_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        for compression in Compression::ALL {
            let mut compressor = Compressor::to(compression).unwrap();
            let mut file = Vec::new();
            for part in text.chunks(60_000) {
                compressor.write(part).unwrap();
                file.extend(compressor.take());
            }
            file.extend(compressor.finish().unwrap());
            let (found, mut reader) = recognise(Box::new(Cursor::new(file))).unwrap();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!((found, read == text), (compression, true));
        }
    }
}
