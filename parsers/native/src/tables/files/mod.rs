//! Tables as the bytes of files.

pub mod csv_json;
pub mod parquet;
