//! `fimble sessions`: what is stored.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;

use super::show::{clip, milliseconds};
use super::{Failure, open};
use crate::config::Config;
use crate::record::{Outcome, Round, Variable};
use crate::segment::SegmentKind;
use crate::session::Session;
use crate::store::Store;

/// Sessions that a list shows.
const LISTED: u32 = 20;

/// Show and remove stored sessions.
#[derive(Debug, Subcommand)]
pub(super) enum Sessions {
    /// Your sessions, the last one first.
    List,
    /// What was said and done in one.
    Show {
        /// The session's id.
        id: String,
    },
    /// The variables that its programs left.
    Vars {
        /// The session's id.
        id: String,
    },
    /// Remove one with all that belongs to it.
    Delete {
        /// The session's id.
        id: String,
    },
}

impl Sessions {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        let store = open::store(&config).await?;
        match self {
            Sessions::List => list(store.as_ref()).await?,
            Sessions::Show { id } => show(&open::session(&config, store, Some(&id)).await?).await?,
            Sessions::Vars { id } => {
                print_variables(open::session(&config, store, Some(&id)).await?.variables().values())
            }
            Sessions::Delete { id } => {
                // Opening it first refuses unknown ids and other users' sessions.
                open::session(&config, Arc::clone(&store), Some(&id)).await?;
                store.delete_session(&id).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// One line a session on standard output.
pub(super) async fn list(store: &dyn Store) -> Result<(), Failure> {
    for session in store.sessions(open::TENANT, &open::user(), LISTED).await? {
        let when = session.updated_at.strftime("%Y-%m-%d %H:%M");
        out!("{}  {when}  {:>3} rounds  {}", session.id, session.rounds, clip(&session.title, 80));
    }
    Ok(())
}

async fn show(session: &Session) -> Result<(), Failure> {
    let record = session.record();
    out!("{}  {}", record.id, record.title);
    for segment in session.segments() {
        let mark = match segment.kind {
            SegmentKind::User => "»",
            SegmentKind::Reply => "«",
            SegmentKind::Code => "#",
            SegmentKind::Output => "=",
            _ => "-",
        };
        out!("\n{mark} {}", segment.content.trim_end().replace('\n', "\n  "));
    }
    out!("");
    print_rounds(&session.rounds(0).await?);
    Ok(())
}

/// One line a variable on standard output.
pub(super) fn print_variables<'a>(variables: impl Iterator<Item = &'a Variable>) {
    for variable in variables {
        out!(
            "{}: {} = {}  (round {}, {} bytes)",
            variable.name,
            variable.type_name,
            clip(&variable.preview, 60),
            variable.round,
            variable.size
        );
    }
}

/// One line a round on standard output.
pub(super) fn print_rounds(rounds: &[Round]) {
    for round in rounds {
        let outcome = match &round.outcome {
            None => "cut off".to_owned(),
            Some(Outcome::Finished { .. }) => "finished".to_owned(),
            Some(Outcome::Raised { traceback, .. }) => {
                format!("raised: {}", clip(traceback.trim_end().lines().last().unwrap_or_default(), 60))
            }
            Some(Outcome::Suspended { on, .. }) => format!("waits for {on}"),
            Some(Outcome::Stopped { limit, .. }) => format!("stopped: {limit}"),
        };
        let wrote =
            if round.written.is_empty() { String::new() } else { format!("  wrote {}", round.written.join(", ")) };
        out!("{:>3}  {:>9}  {outcome}{wrote}", round.number, milliseconds(round.usage.wall_ms));
    }
}
