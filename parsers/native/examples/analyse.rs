//! Analyse captures without Python, for profilers:
//! `cargo run --profile profiling --example analyse -- FILE`.

use std::sync::Arc;

use tfrctrace_native::analysis::{Analysis, Options};
use tfrctrace_native::input::Progress;

fn main() {
    for source in std::env::args_os().skip(1) {
        let mut analysis = Analysis::new(Options::default());
        if let Err(words) = analysis.read(&source, None, &Arc::new(Progress::default())) {
            eprintln!("{words}");
        }
        let packets: u64 = analysis.sources.iter().map(|source| source.packets).sum();
        println!("{}: {packets} packets, {} flows", source.display(), analysis.flows.len());
        for problem in &analysis.problems {
            println!("  {}", problem.error.message);
        }
    }
}
