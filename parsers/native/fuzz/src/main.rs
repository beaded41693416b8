//! libFuzzer on the target that `FUZZ_TARGET` names.
#![no_main]

use std::env;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::fuzz_targets::FuzzTarget;

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    FuzzTarget::by_name(&name).unwrap_or_else(|| panic!("FUZZ_TARGET names no target: `{name}`"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
