//! `fimble run FILE`: a program without a model, on the same path as the model's.

use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::show::{Format, Screen};
use super::{Failure, open, policy};
use crate::config::Config;
use crate::event::{Custom, Event, EventKind};
use crate::gate::{Attendant, Executed, Gate, Order, Stage, execute, resume};
use crate::interpreter::Interpreter;
use crate::program::{Known, Program, Refusal, from_file};
use crate::record::{Outcome, SessionStatus};
use crate::session::Session;

/// A Python file as one round: toolkits, limits, capture and journal as in a chat.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The Python file; `-` reads standard input.
    file: PathBuf,
    /// Go on in this session: its variables are there. Default: a new one.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Wall time of the program itself in seconds; what its calls take does not count. Default 60.
    #[arg(long, value_name = "S")]
    timeout: Option<f64>,
    #[command(flatten)]
    policy: policy::Choice,
    /// Find out first what would be changed, and ask for all of it at once; nothing is changed without that.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Approve what policy would ask for.
    #[arg(short, long)]
    yes: bool,
    /// Print the events, one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Which layers of the jail must be there.
    #[arg(long, value_name = "LEVEL", value_parser = ["full", "reduced", "none"])]
    isolation: Option<String>,
}

impl Run {
    pub(super) fn settings(&self, mut settings: Vec<String>) -> Vec<String> {
        settings.extend(self.timeout.map(|timeout| format!("interpreter.limits.wall_s={timeout:?}")));
        settings.extend(self.isolation.as_ref().map(|level| format!("interpreter.isolation=\"{level}\"")));
        settings
    }

    pub(super) async fn execute(self, mut config: Config) -> Result<ExitCode, Failure> {
        self.policy.apply(&mut config);
        if self.dry_run {
            config.gate.policy = std::mem::take(&mut config.gate.policy).planning();
        }
        if self.yes {
            config.gate.policy = config.gate.policy.approving();
        }
        let source = self.source()?;
        let gate = open::gate(&config).await?;
        let store = open::store(&config).await?;
        let going_on = match &self.session {
            Some(id) => Some(open::session(&config, Arc::clone(&store), Some(id)).await?),
            None => None,
        };
        let name = self.file.display().to_string();
        let carried: Vec<_> = going_on.iter().flat_map(|session| session.variables().values().cloned()).collect();
        let shapes = match &going_on {
            Some(session) => session.shapes(&source).await,
            None => Default::default(),
        };
        let none = Default::default();
        let scope = match &going_on {
            Some(session) => gate.scope_of(session),
            None => open::scope_of_new(&config, &gate),
        };
        let known = Known {
            declarations: &gate.declarations_in(&scope),
            carried: &carried,
            shapes: &shapes,
            not_kept: going_on.as_ref().map_or(&none, Session::not_kept),
            finish_length: false,
            config: &config.program,
        };
        let program = match from_file(&source, &known) {
            Ok(program) => program,
            Err(refusal) => {
                let message = refusal.to_string();
                self.tell_refused(&config, going_on, refusal).await?;
                return Err(Failure::new(1, format!("`{name}` cannot run\n{message}")));
            }
        };
        let interpreter = Interpreter::start(&config.interpreter).await?;
        // Only a program that can run opens a session.
        let mut session = match going_on {
            Some(session) => session,
            None => open::session(&config, store, None).await?,
        };
        let hold = open::hold(&config, &session).await?;
        if session.record().title.is_empty() {
            session.set_title(format!("run {name}"));
            session.save().await?;
        }
        let order = Order {
            goal: format!("run {name}"),
            file_name: if name == "-" { "<stdin>".to_owned() } else { name },
            limits: config.interpreter.limits.clone(),
            ..Order::default()
        };
        hold.while_held(perform(&gate, &interpreter, session, Some(&program), order, self.json)).await
    }

    /// Says, as an event, that the program cannot run. Without a session to belong to it is shown and not stored.
    async fn tell_refused(&self, config: &Config, session: Option<Session>, refusal: Refusal) -> Result<(), Failure> {
        let message = refusal.to_string();
        let kind = EventKind::Custom(Custom::Refused { hole: refusal.hole, message });
        let mut screen = Screen::of_script(Format::Json);
        let Some(mut session) = session else {
            if self.json {
                screen.show(&Event { seq: 0, session: String::new(), round: 0, at: Timestamp::now(), kind });
            }
            return Ok(());
        };
        let _hold = open::hold(config, &session).await?;
        let mut events = session.subscribe();
        session.emitter().emit(kind);
        // Without `--json`, the failure that follows says the same.
        if self.json {
            screen.watch(&mut events, session.save()).await?
        } else {
            session.save().await?
        }
        Ok(())
    }

    fn source(&self) -> Result<String, Failure> {
        let read = |text: std::io::Result<String>| {
            text.map_err(|error| {
                let hint = match error.kind() {
                    ErrorKind::NotFound => "name a Python file, or `-` to read the program from standard input",
                    ErrorKind::InvalidData => "a Python file is UTF-8 text",
                    _ => "see that you may read it and that it is a file",
                };
                Failure::usage(format!("cannot read `{}`: {error}", self.file.display())).with_hint(hint)
            })
        };
        if self.file.as_os_str() == "-" {
            let mut text = String::new();
            return read(std::io::stdin().read_to_string(&mut text).map(|_| text));
        }
        read(std::fs::read_to_string(&self.file))
    }
}

/// Runs a program as the session's next round, or goes on with the round that was cut off; the exit code says how it ended.
pub(super) async fn perform(
    gate: &Arc<Gate>,
    interpreter: &Interpreter,
    mut session: Session,
    program: Option<&Program>,
    order: Order,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut events = session.subscribe();
    let run_id = uuid::Uuid::now_v7().to_string();
    let thread_id = session.record().id.clone();
    open::tell_isolation(&session, interpreter);
    session.emitter().emit(EventKind::RunStarted { thread_id: thread_id.clone(), run_id: run_id.clone() });
    session.set_trace(run_id.as_str());
    let _listener = open::listen(gate);
    let cancel = CancellationToken::new();
    let stop = open::cancel_on_interrupt(&cancel);
    let mut screen = Screen::of_script(if json { Format::Json } else { Format::Text });
    let attendant: Arc<dyn Attendant> = Arc::new(screen.person());
    let stage = Stage { gate, interpreter, attendant: &attendant, cancel: &cancel };
    screen.recall(&session.events_of_open_round().await?);
    // Whoever finds it after a crash sees that it was cut off.
    session.set_status(SessionStatus::Running);
    session.save().await?;
    let mut settle = |session: &mut Session, executed: &Executed| {
        if !matches!(executed.outcome, Outcome::Suspended { .. }) {
            session.set_status(SessionStatus::Idle);
        }
    };
    let work = async {
        // No model reads what hooks want it to know.
        gate.session_starts(&session).await;
        match program {
            Some(program) => execute(stage, &mut session, program, order, &mut settle).await.map(Some),
            None => resume(stage, &mut session, order, &mut settle).await,
        }
    };
    let executed = screen.watch(&mut events, work).await;
    screen.watch(&mut events, gate.session_ends(&session, "exit")).await;
    stop.abort();
    let emitter = session.emitter();
    match &executed {
        Ok(executed) => {
            let outcome = executed.as_ref().map(|executed| &executed.outcome);
            let result = serde_json::to_value(outcome).unwrap_or_default();
            emitter.emit(EventKind::RunFinished { thread_id, run_id, result });
        }
        Err(error) => {
            emitter.emit(EventKind::RunError { message: error.to_string(), code: "run".to_owned() });
        }
    }
    screen.watch(&mut events, session.save()).await?;
    let Some(executed) = executed? else { return Ok(ExitCode::SUCCESS) };
    if let Some(denial) = executed.refused {
        match denial.ends_turn {
            true => note!(
                "hint: `fimble policy` lists what may happen, `fimble doctor` the hooks that may say something about it"
            ),
            false => note!("hint: `fimble doctor` lists your hooks; change the program, or what the hook refuses"),
        }
        return Ok(ExitCode::from(4));
    }
    Ok(match executed.outcome {
        Outcome::Finished { value } => {
            if let (Some(value), false) = (value, json) {
                super::output::write_data(&format!("{value}\n"));
            }
            ExitCode::SUCCESS
        }
        Outcome::Raised { .. } => {
            program.iter().flat_map(|program| &program.warnings).for_each(|doubt| note!("warning: {doubt}"));
            ExitCode::from(1)
        }
        Outcome::Stopped { limit, .. } if limit == "cancelled" => ExitCode::from(130),
        Outcome::Stopped { .. } => ExitCode::from(3),
        Outcome::Suspended { on, .. } => {
            super::resume::tell_how_to_go_on(&session.record().id, &on);
            ExitCode::from(4)
        }
    })
}
