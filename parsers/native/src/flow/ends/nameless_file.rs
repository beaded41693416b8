//! Temporary files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Open a new file in `folder`, and remove its name: nothing is left of it however the program ends.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("tfrctrace-{}-{number}-{now}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
