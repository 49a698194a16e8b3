//! `fimble completion SHELL`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};

/// A completion script on standard output.
#[derive(Debug, Args)]
pub(super) struct Completion {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Completion {
    pub(super) fn execute(self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Arguments::command(), "fimble", &mut script);
        super::output::write_data(&String::from_utf8_lossy(&script));
        ExitCode::SUCCESS
    }
}
