//! Tables as Parquet files. Row groups are encoded by threads, a group each, and written in order.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::{TableFile, with_plain_text};
use crate::tables::Rows;

/// Rows of a row group. The rows of one for each processor, and one more, are in memory.
pub const GROUP_ROWS: usize = 32_768;

/// Rows of which Arrow arrays are made at once: few enough to stay in the processor's cache.
const ARRAY_ROWS: usize = 4_096;

/// Bytes of distinct values after which a column of numbers is no longer written as a dictionary: the
/// differences of times and sequence numbers are smaller.
const NUMBER_DICTIONARY_BYTES: usize = 8_192;

/// Rows of a file below which nothing is compressed, and no column has a dictionary: to prepare both for each
/// of 150 columns takes longer than all else, and makes no file of so few rows smaller.
const FEW_ROWS: usize = 256;

/// A Parquet file that is being written; its bytes are handed out as they come.
pub struct ParquetFile {
    schema: SchemaRef,
    /// Begun with the first row group.
    begun: Option<BegunFile>,
    pending: RowGroup,
    encoding: VecDeque<JoinHandle<Result<Vec<ArrowColumnChunk>>>>,
    threads: usize,
}

struct BegunFile {
    file: SerializedFileWriter<Vec<u8>>,
    columns: Arc<ArrowRowGroupWriterFactory>,
}

impl BegunFile {
    fn new(schema: &SchemaRef, has_few_rows: bool) -> Result<Self> {
        // Arrow's own schema, 10 kB of flows, says no more about these types than that of Parquet.
        let options = ArrowWriterOptions::new()
            .with_properties(properties(schema, has_few_rows)?)
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Self { file, columns: Arc::new(columns) })
    }
}

impl ParquetFile {
    /// Begin a file with the columns of `schema`.
    pub fn new(schema: &Schema) -> Self {
        Self {
            schema: with_plain_text(schema),
            begun: None,
            pending: RowGroup::default(),
            encoding: VecDeque::new(),
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }

    /// The file, begun if it was not. What is pending are all of its rows if they are few.
    fn begun(&mut self) -> Result<&mut BegunFile> {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => BegunFile::new(&self.schema, self.pending.len < FEW_ROWS)?,
        };
        Ok(self.begun.insert(begun))
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        self.begun.as_mut().map(|begun| std::mem::take(begun.file.inner_mut())).unwrap_or_default()
    }

    fn encode_pending(&mut self) -> Result<()> {
        if self.encoding.len() >= self.threads {
            self.append_oldest()?;
        }
        let columns = Arc::clone(&self.begun()?.columns);
        let group = std::mem::take(&mut self.pending);
        let schema = Arc::clone(&self.schema);
        let work = move || group.encode(&schema, &columns);
        self.encoding.push_back(thread::Builder::new().name("parquet".into()).spawn(work)?);
        Ok(())
    }

    fn append_oldest(&mut self) -> Result<()> {
        let Some(encoding) = self.encoding.pop_front() else { return Ok(()) };
        let chunks =
            encoding.join().map_err(|_| ParquetError::General("a row group was not encoded".into()))??;
        self.append(chunks)
    }

    fn append(&mut self, chunks: Vec<ArrowColumnChunk>) -> Result<()> {
        let mut group = self.begun()?.file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

impl TableFile for ParquetFile {
    type Error = ParquetError;

    fn write(&mut self, rows: &Arc<dyn Rows>) -> Result<Vec<u8>> {
        let mut start = 0;
        while start < rows.len() {
            let end = rows.len().min(start + GROUP_ROWS - self.pending.len);
            self.pending.push(Arc::clone(rows), start..end);
            start = end;
            if self.pending.len == GROUP_ROWS {
                self.encode_pending()?;
            }
        }
        Ok(self.take_bytes())
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        // The last group in this thread, which would only wait for another.
        let columns = Arc::clone(&self.begun()?.columns);
        let last = std::mem::take(&mut self.pending);
        let last = (last.len > 0).then(|| last.encode(&self.schema, &columns)).transpose()?;
        while !self.encoding.is_empty() {
            self.append_oldest()?;
        }
        if let Some(chunks) = last {
            self.append(chunks)?;
        }
        self.begun()?.file.finish()?;
        Ok(self.take_bytes())
    }
}

fn properties(schema: &Schema, has_few_rows: bool) -> Result<WriterProperties> {
    let compression =
        if has_few_rows { Compression::UNCOMPRESSED } else { Compression::ZSTD(ZstdLevel::try_new(1)?) };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(!has_few_rows)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for field in schema.fields() {
        let column = ColumnPath::from(field.name().as_str());
        if *field.data_type() == DataType::Utf8 {
            // The least and the greatest address or set of flags would take as long as all the rest of them.
            properties = properties.set_column_statistics_enabled(column.clone(), EnabledStatistics::None);
            if has_few_rows {
                properties = properties.set_column_encoding(column, Encoding::DELTA_BYTE_ARRAY);
            }
        } else if field.data_type().is_integer() {
            properties = properties
                .set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_page_size_limit(column, NUMBER_DICTIONARY_BYTES);
        }
    }
    Ok(properties.build())
}

/// Rows of one row group, in pieces.
#[derive(Default)]
struct RowGroup {
    pieces: Vec<(Arc<dyn Rows>, Range<usize>)>,
    len: usize,
}

impl RowGroup {
    fn push(&mut self, rows: Arc<dyn Rows>, range: Range<usize>) {
        self.len += range.len();
        self.pieces.push((rows, range));
    }

    fn encode(self, schema: &Schema, columns: &ArrowRowGroupWriterFactory) -> Result<Vec<ArrowColumnChunk>> {
        let mut writers = columns.create_column_writers(0)?;
        for (rows, range) in self.pieces {
            for start in range.clone().step_by(ARRAY_ROWS) {
                let batch = rows.batch(start, range.end.min(start + ARRAY_ROWS))?;
                let mut unfilled = writers.iter_mut();
                for (field, array) in schema.fields().iter().zip(batch.columns()) {
                    for (leaf, writer) in compute_leaves(field, array)?.iter().zip(&mut unfilled) {
                        writer.write(leaf)?;
                    }
                }
            }
        }
        writers.into_iter().map(ArrowColumnWriter::close).collect()
    }
}
