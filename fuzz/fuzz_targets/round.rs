//! Rounds with children that say what they like, in any order; see `rounds.rs` for what the bytes mean.
#![no_main]

use fimble::interpreter::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::round(bytes);
});
