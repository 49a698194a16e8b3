//! `fimble ps`: the rounds that run on this machine for this user, whichever process runs them, and those that wait in the
//! store, which no process has to keep.

use std::process::ExitCode;

use clap::Args;

use serde::Serialize;
use serde_json::json;

use super::output::write_data;
use super::show::clip;
use super::{Failure, open, resume};
use crate::config::{Config, live_folders};
use crate::gate::{RoundView, WaitKind};
use crate::live::{self, Found};
use crate::record::{SessionRecord, SessionStatus};

/// Characters of what a round waits for.
const WAIT_CHARACTERS: usize = 60;

/// The most sessions that are looked at for programs that wait.
const SESSIONS: u32 = 200;

/// Show the programs that run now, of all your fimble processes on this machine, and those that wait and need no process.
#[derive(Debug, Args)]
pub(super) struct Ps {
    /// Print one JSON object a round.
    #[arg(long)]
    json: bool,
}

impl Ps {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        let found = rounds().await?;
        let suspended = suspended(&config, &found).await;
        if self.json {
            for Found { view, .. } in &found {
                let named = Named { name: name(view), view };
                write_data(&format!("{}\n", serde_json::to_string(&named).unwrap_or_default()));
            }
            for (session, what) in &suspended {
                let waits = json!({
                    "name": format!("{}/{}", session.id, session.rounds), "session": session.id, "round": session.rounds, "suspended": what, "updated_at": session.updated_at,
                });
                write_data(&format!("{waits}\n"));
            }
        } else if found.is_empty() && suspended.is_empty() {
            note!("no program runs");
        } else {
            out!(
                "{:<42} {:>8} {:>9} {:>17} {:>9} {:>9} {:>6}  WAITS FOR",
                "ROUND",
                "PROCESS",
                "AGE",
                "WALL TIME",
                "CPU",
                "MEMORY",
                "CALLS"
            );
            for Found { view, .. } in &found {
                print(view);
            }
            for (session, what) in &suspended {
                let age = jiff::Timestamp::now().duration_since(session.updated_at).as_secs_f64().max(0.0);
                let name = format!("{}/{}", session.id, session.rounds);
                out!("{name:<42} {:>8} {:>9} {:>17} {:>9} {:>9} {:>6}  {what}", "-", seconds(age), "-", "-", "-", "-");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// All rounds; a process that does not answer is told on standard error.
pub(super) async fn rounds() -> Result<Vec<Found>, Failure> {
    let asked = live::rounds(&live_folders()).await;
    let (found, silent) = asked.map_err(|error| {
        Failure::new(5, error.to_string()).with_hint("remove the folder or give it back to yourself with mode 700")
    })?;
    for process in silent {
        note!("a process cannot be asked: {process}");
    }
    Ok(found)
}

/// The newest sessions whose last round waits and has no process, with what for. A store that cannot be asked is told on
/// standard error: what runs is known without it.
async fn suspended(config: &Config, found: &[Found]) -> Vec<(SessionRecord, &'static str)> {
    let asked = async {
        let store = open::store(config).await?;
        let sessions = store.sessions(open::TENANT, &open::user(), SESSIONS).await?;
        Ok::<_, Failure>((store, sessions))
    };
    let (store, sessions) = match asked.await {
        Ok(asked) => asked,
        Err(failure) => {
            note!("the store cannot be asked for programs that wait: {}", failure.message);
            return Vec::new();
        }
    };
    let waits = |session: SessionRecord| {
        let what = match session.status {
            SessionStatus::AwaitingApproval => "an approval",
            SessionStatus::AwaitingUser => "an answer",
            SessionStatus::AwaitingTask => "its time (it sleeps)",
            SessionStatus::Idle | SessionStatus::Running | SessionStatus::Finished | SessionStatus::Failed => {
                return None;
            }
        };
        (!found.iter().any(|one| one.view.session == session.id)).then_some((session, what))
    };
    let mut waiting: Vec<_> = sessions.into_iter().filter_map(waits).collect();
    for (session, what) in &mut waiting {
        if resume::awaits_task(store.as_ref(), session).await {
            *what = "a task";
        }
    }
    waiting
}

/// A round as it is printed as JSON.
#[derive(Serialize)]
struct Named<'a> {
    /// What `fimble kill` takes.
    name: String,
    #[serde(flatten)]
    view: &'a RoundView,
}

/// How a round is named on the command line.
pub(super) fn name(view: &RoundView) -> String {
    format!("{}/{}", view.session, view.round)
}

fn print(view: &RoundView) {
    let unknown = || "?".to_owned();
    out!(
        "{:<42} {:>8} {:>9} {:>17} {:>9} {:>9} {:>6}  {}",
        name(view),
        view.host_pid,
        seconds(view.age_s),
        format!("{} of {}", seconds(view.wall_s), seconds(view.wall_limit_s)),
        view.cpu_s.map_or_else(unknown, seconds),
        view.memory_kib.map_or_else(unknown, |kib| format!("{:.1} MiB", kib as f64 / 1_024.0)),
        view.calls,
        waits(view)
    );
}

/// The first thing that it waits for and how many more there are.
fn waits(view: &RoundView) -> String {
    let Some(first) = view.waits.first() else { return "-".to_owned() };
    let what = match first.kind {
        WaitKind::Approval => "an approval of ",
        WaitKind::Answer => "an answer to ",
        WaitKind::Task => "the task of ",
        WaitKind::Call => "",
    };
    let more = view.waits.len() - 1;
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{what}{} ({}){more}", clip(&first.of, WAIT_CHARACTERS), seconds(first.for_s))
}

fn seconds(seconds: f64) -> String {
    if seconds < 600.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = seconds / 60.0;
    if minutes < 600.0 { format!("{minutes:.0} min") } else { format!("{:.0} h", minutes / 60.0) }
}
