//! Frames from a child, however they are cut.
#![no_main]

use fimble::interpreter::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::wire(bytes);
});
