//! `fimble sessions`: what is stored.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use tokio_util::sync::CancellationToken;

use super::resume::How;
use super::show::{clip, milliseconds};
use super::{Failure, edit, open, resume, worker};
use crate::config::Config;
use crate::gate::abandon;
use crate::record::{CallStatus, Outcome, Round, SessionRecord, SessionStatus, Variable};
use crate::segment::SegmentKind;
use crate::session::{BranchError, Change, Origin, Session, exception_line};
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
        /// As they were after this round.
        #[arg(long, value_name = "ROUND")]
        at: Option<u64>,
    },
    /// What became of the variables between two rounds.
    Diff {
        /// The session's id.
        id: String,
        /// The round before; 0 is the beginning.
        from: u64,
        /// The round after.
        to: u64,
    },
    /// Which round, statement and calls a variable came from.
    Blame {
        /// The session's id.
        id: String,
        /// The variable's name.
        variable: String,
        /// As it was after this round.
        #[arg(long, value_name = "ROUND")]
        at: Option<u64>,
    },
    /// Ask the workers of the store to answer a message; the session's id goes to standard output.
    Send {
        /// The message.
        text: String,
        /// In this session. Default: a new one.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// The events of a session as they are stored, one JSON object a line, until Ctrl-C.
    Follow {
        /// The session's id.
        id: String,
        /// Begin after this event.
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
        /// End with the turn that is under way, or with the last event.
        #[arg(long)]
        until_idle: bool,
    },
    /// Answer what a program waits for, and go on with it.
    Answer {
        /// The session's id.
        id: String,
        /// The answer: to a question; `yes`, `no`, `always`, `always any` or `always NAME=PATTERN …` to an approval; `yes`, `no` or
        /// `strike 2 3` to a plan; `again`, `skip` or `stop` about a call that was cut off.
        answer: String,
        #[command(flatten)]
        how: How,
    },
    /// Go on with what was cut off or waits: what was done is not done again.
    Resume {
        /// The session's id.
        id: String,
        #[command(flatten)]
        how: How,
    },
    /// Edit what is left of the last program, which waits or failed, and run it in place of that: what ran is not run again.
    Edit {
        /// The session's id.
        id: String,
        /// What is left, as it should be; `-` reads standard input. Without it, `$VISUAL` or `$EDITOR` is started.
        file: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Begin a new session that is as this one was after a round; prints its id.
    Fork {
        /// The session's id.
        id: String,
        /// After this round, 0 being the beginning; without it after the last one that ended.
        #[arg(long, value_name = "ROUND")]
        at: Option<u64>,
    },
    /// Take a session back to what it was after a round, and print what changes. What its calls did outside is not undone.
    Rewind {
        /// The session's id.
        id: String,
        /// After this round, 0 being the beginning.
        #[arg(long, value_name = "ROUND")]
        at: u64,
    },
    /// Remove one with all that belongs to it.
    Delete {
        /// The session's id.
        id: String,
    },
}

impl Sessions {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        match self {
            Sessions::Answer { id, answer, how } => return resume::answer_and_go_on(config, &id, &answer, how).await,
            Sessions::Send { text, session } => return worker::send(&config, session.as_deref(), text).await,
            Sessions::Follow { id, from, until_idle } => return follow(&config, &id, from, until_idle).await,
            Sessions::Edit { id, file, how } => {
                return edit::edit_and_go_on(config, &id, file.as_deref(), how).await;
            }
            Sessions::Resume { id, how } => return resume::go_on(config, &id, how).await,
            _ => {}
        }
        let store = open::store(&config).await?;
        match self {
            Sessions::Send { .. }
            | Sessions::Follow { .. }
            | Sessions::Answer { .. }
            | Sessions::Edit { .. }
            | Sessions::Resume { .. } => {}
            Sessions::List => list(store.as_ref()).await?,
            Sessions::Show { id } => show(&open::session(&config, store, Some(&id)).await?).await?,
            Sessions::Vars { id, at } => {
                let session = open::session(&config, store, Some(&id)).await?;
                let round = within(&session, at)?;
                print_variables(session.variables_at(round).await?.iter());
            }
            Sessions::Diff { id, from, to } => {
                let session = open::session(&config, store, Some(&id)).await?;
                let (from, to) = (within(&session, Some(from))?, within(&session, Some(to))?);
                print_changes(&session.changes(from, to).await?);
            }
            Sessions::Blame { id, variable, at } => {
                let session = open::session(&config, store, Some(&id)).await?;
                let round = within(&session, at)?;
                let origin = session.origin(&variable, round).await?;
                print_origin(&origin.ok_or_else(|| {
                    Failure::usage(format!("there is no variable `{variable}` after round {round}"))
                        .with_hint(format!("`fimble sessions vars {id} --at {round}` lists those there were"))
                })?);
            }
            Sessions::Fork { id, at } => {
                let session = open::session(&config, store, Some(&id)).await?;
                out!("{}", session.fork(at).await.map_err(|error| branch_failure(&id, &error))?.id);
            }
            Sessions::Rewind { id, at } => {
                let mut session = open::session(&config, store, Some(&id)).await?;
                let _hold = open::hold_id(&config, session.store(), &id).await?;
                let refused = |error| branch_failure(&id, &error);
                session.check_round(at).await.map_err(refused)?;
                // Only what waits may have to be stopped by its toolkit.
                let gate = match session.open_round() {
                    Some(_) => Some(open::gate(&config).await?),
                    None => None,
                };
                abandon(&mut session, gate.as_deref(), &format!("the session goes back to round {at}")).await?;
                let round = session.rewind(at).await.map_err(refused)?;
                out!("round {}: {}", round.number, round.goal);
                print_changes(&session.changes(round.number - 1, round.number).await?);
            }
            Sessions::Delete { id } => {
                // Opening it first refuses unknown ids and other users' sessions.
                open::session(&config, Arc::clone(&store), Some(&id)).await?;
                // Nobody loses what they are at work in.
                let hold = open::hold_id(&config, Arc::clone(&store), &id).await?;
                store.delete_session(&id).await?;
                hold.of_removed();
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn branch_failure(id: &str, error: &BranchError) -> Failure {
    let code = if matches!(error, BranchError::Store(_)) { 5 } else { 2 };
    Failure { code, hint: error.hint(id), message: error.to_string() }
}

/// One line a session on standard output.
pub(super) async fn list(store: &dyn Store) -> Result<(), Failure> {
    for session in store.sessions(open::TENANT, &open::user(), LISTED).await? {
        let when = session.updated_at.strftime("%Y-%m-%d %H:%M");
        let state = if resume::awaits_task(store, &session).await { "(waits for a task)" } else { state(&session) };
        let gap = if state.is_empty() { "" } else { "  " };
        out!("{}  {when}  {:>3} rounds  {}{gap}{state}", session.id, session.rounds, title(&session));
    }
    Ok(())
}

/// A session's title as it is shown.
pub(super) fn title(session: &SessionRecord) -> String {
    clip(&session.title, 80)
}

/// What a list says of a session that is not at rest.
pub(super) fn state(session: &SessionRecord) -> &'static str {
    match session.status {
        SessionStatus::Running => "(at work, or cut off)",
        SessionStatus::AwaitingApproval => "(waits for an approval)",
        SessionStatus::AwaitingUser => "(waits for an answer)",
        SessionStatus::AwaitingTask => "(sleeps)",
        SessionStatus::Failed => "(failed)",
        SessionStatus::Idle | SessionStatus::Finished => "",
    }
}

/// True for one that goes on only when the user has said something.
pub(super) fn waits_for_user(session: &SessionRecord) -> bool {
    matches!(session.status, SessionStatus::AwaitingApproval | SessionStatus::AwaitingUser)
}

/// Events that are read at once.
const EVENTS_PAGE: u32 = 1_000;

/// How often a store is asked for new events: none of the two tells by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

async fn follow(config: &Config, id: &str, from: u64, until_idle: bool) -> Result<ExitCode, Failure> {
    let store = open::store(config).await?;
    // Opening it first refuses unknown ids and other users' sessions.
    open::session(config, Arc::clone(&store), Some(id)).await?;
    let stop = CancellationToken::new();
    let interrupted = open::cancel_on_interrupt(&stop);
    let mut after = from;
    loop {
        let at_rest = match until_idle {
            true => store.session(id).await?.is_none_or(|session| session.status != SessionStatus::Running),
            false => false,
        };
        let events = store.events(id, after, EVENTS_PAGE).await?;
        for event in &events {
            after = event.seq;
            super::output::write_data(&format!("{}\n", serde_json::to_string(event).unwrap_or_default()));
        }
        if events.is_empty() && at_rest {
            break;
        }
        if events.is_empty() {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
    interrupted.abort();
    Ok(ExitCode::SUCCESS)
}

async fn show(session: &Session) -> Result<(), Failure> {
    let record = session.record();
    out!("{}  {}", record.id, record.title);
    for segment in session.all_segments().await? {
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

/// The round that was asked for, or the last one.
fn within(session: &Session, round: Option<u64>) -> Result<u64, Failure> {
    let (last, id) = (session.record().rounds, &session.record().id);
    match round {
        Some(round) if round > last => Err(Failure::usage(format!("there is no round {round}"))
            .with_hint(format!("the session has {last} rounds; `fimble sessions show {id}` lists them"))),
        round => Ok(round.unwrap_or(last)),
    }
}

/// One line a change on standard output, two for a changed content.
fn print_changes(changes: &[Change]) {
    let line = |mark: &str, variable: &Variable| {
        let preview = clip(&variable.preview, 60);
        out!(
            "{mark} {}: {} = {preview}  (round {}, {} bytes)",
            variable.name,
            variable.type_name,
            variable.round,
            variable.size
        );
    };
    for change in changes {
        match change {
            Change::Added(variable) => line("+", variable),
            Change::Removed(variable) => line("-", variable),
            Change::Changed(both) => {
                line("-", &both.0);
                line("+", &both.1);
            }
        }
    }
}

fn print_origin(Origin { variable, round, statement, calls }: &Origin) {
    print_variables([variable].into_iter());
    out!("round {}  {}", round.number, round.started_at.strftime("%Y-%m-%d %H:%M:%S"));
    out!("goal: {}", clip(&round.goal, 100));
    if !statement.is_empty() {
        out!("line {}:\n    {}", variable.line, statement.replace('\n', "\n    "));
    }
    for call in calls {
        let arguments: Vec<String> = call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let end = match &call.status {
            CallStatus::Waiting => "waits for an approval".to_owned(),
            CallStatus::Approved | CallStatus::Requested => "no answer".to_owned(),
            CallStatus::Pending { .. } => "waits for its task".to_owned(),
            CallStatus::Done { result } => clip(&result.to_string(), 60),
            CallStatus::Failed { error } => format!("failed: {}", clip(&error.message, 60)),
        };
        out!("call {}.{}({})  {end}", call.toolkit, call.operation, clip(&arguments.join(", "), 60));
    }
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
            Some(outcome @ Outcome::Raised { .. }) => {
                format!("raised: {}", clip(exception_line(outcome).unwrap_or_default(), 60))
            }
            Some(Outcome::Suspended { on, .. }) => format!("waits for {on}"),
            Some(Outcome::Stopped { limit, .. }) => format!("stopped: {limit}"),
        };
        let wrote =
            if round.written.is_empty() { String::new() } else { format!("  wrote {}", round.written.join(", ")) };
        out!("{:>3}  {:>9}  {outcome}{wrote}", round.number, milliseconds(round.usage.wall_ms));
    }
}
