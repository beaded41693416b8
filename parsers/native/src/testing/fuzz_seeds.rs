//! Replays the seeds and past crashes of every fuzz target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::testing::fuzz_targets::FuzzTarget;

/// What fuzzing keeps, by the name of its folder.
fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn test_seeds_and_past_crashes_keep_every_invariant() {
    for target in &FuzzTarget::ALL {
        let seeds = entries(&format!("corpora/{}", target.name));
        assert!(!seeds.is_empty(), "{} has no seed", target.name);
        for seed in seeds {
            // Shown if the target panics.
            println!("{}", seed.display());
            (target.run)(&fs::read(seed).unwrap());
        }
    }
}

#[test]
fn test_targets_stop_at_no_bytes() {
    FuzzTarget::ALL.iter().for_each(|target| (target.run)(&[]));
}

#[test]
fn test_each_target_has_a_folder_of_seeds_and_a_dictionary() {
    let targets: BTreeSet<_> = FuzzTarget::ALL.iter().map(|target| target.name.to_owned()).collect();
    for folder in ["corpora", "dictionaries"] {
        let names = entries(folder).into_iter().filter(|path| path.extension().is_none_or(|end| end != "md"));
        let names: BTreeSet<_> =
            names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(names, targets, "{folder}");
    }
}
