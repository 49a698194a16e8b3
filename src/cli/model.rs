//! `fimble model`: the local model's file and server.

use std::process::ExitCode;

use clap::Subcommand;

use super::Failure;
use crate::config::Config;
use crate::llm::local::{self, Server, Status};

/// Fetch and look after the local model.
#[derive(Debug, Subcommand)]
pub(super) enum Model {
    /// Fetch the model and its server; goes on where a broken download stopped.
    Pull,
    /// What is there and what runs.
    Status,
    /// Stop the server.
    Stop,
}

impl Model {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        match self {
            Model::Pull => local::pull(&config.llm.local, &mut local::on_stderr()).await?,
            Model::Status => out!("{}", described(&local::status(&config.llm.local).await?)),
            Model::Stop => {
                let stopped = local::stop(&config.llm.local).await?;
                note!("{}", if stopped { "the server is stopped" } else { "no server runs" });
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A line each for the file, the server's program and the running server.
pub(super) fn described(status: &Status) -> String {
    let file = match (status.bytes, status.expected_bytes) {
        (None, _) => "is not there".to_owned(),
        (Some(bytes), Some(expected)) if bytes != expected => format!("{bytes} of {expected} bytes"),
        (Some(bytes), _) if status.verified => format!("{} MB, verified", bytes / 1_000_000),
        (Some(bytes), _) => format!("{} MB, not verified", bytes / 1_000_000),
    };
    let server = match &status.server {
        None if status.installed => "installed, does not run".to_owned(),
        None => "is not installed".to_owned(),
        Some(Server { pid, port, uptime_s, owners, requests }) => {
            let port = port.map_or("loading".to_owned(), |port| format!("port {port}"));
            format!("runs, pid {pid}, {port}, {uptime_s:.0} s, {owners} users, {requests} requests")
        }
    };
    format!("model   {} ({file})\nserver  {server}", status.model.display())
}
