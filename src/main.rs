//! The binary: a zygote if the interpreter started it as one, otherwise the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    fimble::interpreter::init();
    fimble::cli::main()
}
