//! Analyse captures without Python, for profilers:
//! `cargo run --profile profiling --example analyse -- [--collect bins,rounds] FILE...`, or
//! `-- --pair FIRST SECOND` for two captures of one path.

use std::ffi::OsString;
use std::sync::Arc;

use tfrctrace_native::input::bytes::Progress;
use tfrctrace_native::pass::{Analysis, Options};

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [option, first, second] = arguments.as_slice()
        && option == "--pair"
    {
        let mut analysis = Analysis::new(Options::default());
        report(&analysis.read_pair(
            &[first.clone(), second.clone()],
            None,
            None,
            &Arc::new(Progress::default()),
        ));
        analysis.finish();
        describe(&analysis);
        return;
    }
    let (options, sources) = match arguments.as_slice() {
        [option, tables, sources @ ..] if option == "--collect" => {
            let tables = tables.to_string_lossy();
            (Options::collecting(&tables.split(',').collect::<Vec<_>>()), sources)
        }
        sources => (Options::default(), sources),
    };
    for source in sources {
        let mut analysis = Analysis::new(options.clone());
        report(&analysis.read(source, None, &Arc::new(Progress::default())));
        describe(&analysis);
    }
}

fn report(outcome: &Result<(), String>) {
    if let Err(words) = outcome {
        eprintln!("{words}");
    }
}

fn describe(analysis: &Analysis) {
    for source in &analysis.carried.sources {
        println!("{}: {} packets", source.source, source.packets);
    }
    println!("{} flows", analysis.carried.flows.len());
    for problem in &analysis.carried.problems {
        println!("  {}", problem.error.message);
    }
}
