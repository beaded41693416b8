//! Chains of files that grow: a pass goes on from the checkpoint of the one before.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments::{Progress, SourceArgument, Sources};
use super::settings::Settings;
use super::{Analysis, run};
use crate::input::filter::Compiler;
use crate::join::order::{LastFile, Plan, plan_behind};
use crate::pass::checkpoint::{self, Refusal};
use crate::pass::{Analysis as Core, Options};

/// The path of a checkpoint, and what it has to be made of.
type Checkpoint = (OsString, String);

/// The same of one that is written, after all sources, or after all but that of a number, which must be the last.
type NewCheckpoint = (OsString, String, Option<usize>);

/// Read files of a chain that grows, after those of the checkpoint `resume`, and write the checkpoint `save`.
///
/// Without an analysis the second value says why it could not go on, else why no checkpoint was written.
#[pyfunction]
#[pyo3(signature = (sources, settings, *, collect, progress, resume = None, save = None))]
pub(super) fn analyse_chain(
    py: Python<'_>,
    sources: Vec<SourceArgument>,
    settings: Settings,
    collect: HashSet<String>,
    progress: Py<Progress>,
    resume: Option<Checkpoint>,
    save: Option<NewCheckpoint>,
) -> PyResult<(Option<Analysis>, Option<String>)> {
    let Settings { options, filter } = settings.collecting(collect, None)?;
    let read_options = options.clone();
    let mut refused = None;
    let mut not_saved = None;
    let analysis = run(py, options, filter, Some(progress), |core, compiler, progress| {
        let sources = Sources::new(sources, &read_options, Arc::clone(progress));
        match go_on(core, read_options, &sources, compiler, resume)? {
            Err(refusal) => refused = Some(refusal.words()),
            Ok(plan) => {
                let saved = read_and_save(core, plan, &sources, compiler, save)?;
                not_saved = saved.err().map(|refusal| refusal.words());
            }
        }
        Ok(())
    })?;
    Ok(match refused {
        Some(words) => (None, Some(words)),
        None => (Some(analysis), not_saved),
    })
}

/// Plan how to read the sources, after those of the checkpoint if there is one, which becomes the pass.
fn go_on(
    core: &mut Core,
    options: Options,
    sources: &Sources,
    compiler: Option<&dyn Compiler>,
    resume: Option<Checkpoint>,
) -> Result<Result<Plan, Refusal>, String> {
    let max_flows = options.max_flows;
    let Some((path, stamp)) = resume else { return sources.plan(compiler, max_flows).map(Ok) };
    let resumed =
        File::open(path).map_err(Refusal::from).and_then(|file| checkpoint::resume(options, &stamp, file));
    let last = match resumed {
        Ok((resumed, last)) => {
            *core = resumed;
            last
        }
        Err(refusal) => return Ok(Err(refusal)),
    };
    let plan = plan_behind(last, sources.len(), &|number| sources.open(number), compiler, max_flows)?;
    Ok(plan.ok_or(Refusal::AnotherOrder))
}

/// Read what was planned, and write a checkpoint if one is wanted.
fn read_and_save(
    core: &mut Core,
    mut plan: Plan,
    sources: &Sources,
    compiler: Option<&dyn Compiler>,
    save: Option<NewCheckpoint>,
) -> Result<Result<(), Refusal>, String> {
    let open = |number| sources.open(number);
    let without_order = Err(Refusal::NotSaved("files without an order"));
    let Some((path, stamp, left_out)) = save else {
        return core.read_planned(plan, &open, compiler).map(Ok);
    };
    let Some(left_out) = left_out else {
        let last = plan.last.take();
        core.read_planned(plan, &open, compiler)?;
        return Ok(last.map_or(without_order, |last| save_to(core, &last, path, &stamp)));
    };
    let split = plan.split_last(left_out);
    core.read_planned(plan, &open, compiler)?;
    let Some((last, after)) = split else { return Ok(without_order) };
    let saved = save_to(core, &last, path, &stamp);
    core.read_planned(after, &open, compiler)?;
    Ok(saved)
}

fn save_to(core: &Core, last: &LastFile, path: OsString, stamp: &str) -> Result<(), Refusal> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    checkpoint::save(core, stamp, last, BufWriter::with_capacity(1 << 20, file))
}
