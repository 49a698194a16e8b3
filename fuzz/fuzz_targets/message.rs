//! The body of one frame; its first byte is the kind.
#![no_main]

use fimble::interpreter::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((kind, body)) = bytes.split_first() {
        fuzzing::message(*kind, body);
    }
});
