//! `fimble chat`: a terminal conversation, or one question.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use nu_ansi_term::{Color, Style};
use reedline::{DefaultPrompt, DefaultPromptSegment, FileBackedHistory, Reedline, Signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::show::{Format, Screen};
use super::{Failure, edit, open, policy, resume, sessions};
use crate::agent::Agent;
use crate::config::{Config, folders};
use crate::event::Event;
use crate::session::Session;
use crate::store::Store;

/// Lines of input that the history keeps.
const HISTORY_LINES: usize = 1_000;

const HELP: &str = "\
/new             start a new session
/sessions        your last sessions
/resume [ID]     go on with a session, the last one by default
/vars            the variables that programs left
/rounds          the rounds of this session
/code [N]        the program of round N, the last one by default
/edit            edit what is left of the last program, and run it
/policy [NAME]   what may happen unasked; with read-only, ask, auto or plan from now on
/help            this list
/quit            leave (also Ctrl-D)
Ctrl-C stops the running round and nothing else.";

/// Of the user's last sessions so many are looked at for one that waits, and so many of those are named.
const LOOKED_AT: u32 = 100;
const NAMED: usize = 3;

/// Talk to the assistant. Without `--ask`, a conversation; each message is answered by programs that it writes and runs.
#[derive(Debug, Args)]
pub(super) struct Chat {
    /// `-` reads one message from standard input.
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with = "ask")]
    input: Option<String>,
    /// Answer this message and exit; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
    /// Go on with a session, the last one if no id is given.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// Print the events, one JSON object a line.
    #[arg(long)]
    json: bool,
    /// The model's name at the endpoint.
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    policy: policy::Choice,
    /// Find out first what would be changed, and ask for all of it at once; nothing is changed without that.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Approve what policy would ask for.
    #[arg(short, long)]
    yes: bool,
}

impl Chat {
    pub(super) fn settings(&self, mut settings: Vec<String>) -> Vec<String> {
        settings.extend(self.model.as_ref().map(|model| format!("llm.model={model}")));
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
        let once = self.message()?;
        if self.json && once.is_none() {
            return Err(Failure::usage("`--json` is for one message").with_hint("add `--ask TEXT` or `-`"));
        }
        if self.model.is_some() && !config.llm.names_endpoint() {
            return Err(Failure::usage("`--model` names a model of an endpoint, and no endpoint is configured")
                .with_hint("set OPENAI_BASE_URL, or `-c llm.local.model=PATH` for another local model"));
        }
        if once.is_none() && !std::io::stdin().is_terminal() {
            return Err(Failure::usage("standard input is not a terminal").with_hint(
                "use `fimble chat --ask TEXT`, or `fimble chat -` to read one message from standard input",
            ));
        }
        let store = open::store(&config).await?;
        let agent = open::agent(&config).await?;
        let session = open::session(&config, Arc::clone(&store), self.resume.as_deref()).await?;
        let format = if self.json { Format::Json } else { Format::Text };
        let _listener = open::listen(&agent.parts.gate);
        let mut conversation = Conversation::new(config, agent, store, session, Screen::of_conversation(format));
        let code = match once {
            Some(message) => conversation.answer(&message).await,
            None => conversation.converse().await,
        };
        conversation.leave("exit").await;
        code
    }

    /// The one message to answer, if it is not a conversation.
    fn message(&self) -> Result<Option<String>, Failure> {
        let text = match self.input.as_deref().or(self.ask.as_deref()) {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
                Some(text)
            }
            text => text.map(str::to_owned),
        };
        match text {
            Some(text) if text.trim().is_empty() => Err(Failure::usage("the message is empty")),
            text => Ok(text),
        }
    }
}

/// An agent, a session and the screen between them.
struct Conversation {
    config: Config,
    agent: Agent,
    store: Arc<dyn Store>,
    session: Session,
    events: UnboundedReceiver<Event>,
    screen: Screen,
}

/// What to do after a line of input.
enum Next {
    Read,
    Quit,
}

impl Conversation {
    fn new(config: Config, agent: Agent, store: Arc<dyn Store>, session: Session, screen: Screen) -> Self {
        let events = session.subscribe();
        open::tell_isolation(&session, &agent.interpreter);
        Self { config, agent, store, session, events, screen }
    }

    /// Answers one message; the exit code says how the turn ended.
    async fn answer(&mut self, message: &str) -> Result<ExitCode, Failure> {
        let hold = open::hold(&self.config, &self.session).await?;
        let cancel = CancellationToken::new();
        let stop = open::cancel_on_interrupt(&cancel);
        let attendant = Arc::new(self.screen.person());
        let turn = self.agent.turn(&mut self.session, message, attendant, &cancel);
        let verdict = hold.while_held(self.screen.watch(&mut self.events, turn)).await;
        stop.abort();
        let verdict = self.after(&hold, verdict).await?;
        Ok(resume::turn_code(&self.session.record().id, &verdict))
    }

    /// What work in the session came to. If somebody else has the session meanwhile, it is read anew.
    async fn after<T>(&mut self, hold: &open::Hold, done: Result<T, Failure>) -> Result<T, Failure> {
        if done.is_err() && hold.is_lost() {
            let id = self.session.record().id.clone();
            let session = open::session(&self.config, Arc::clone(&self.store), Some(&id)).await?;
            self.events = session.subscribe();
            self.session = session;
        }
        done
    }

    /// Goes on with the session's turn if it was cut off or waits.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let Some(state) = resume::state(&self.agent, &self.session).await? else { return Ok(()) };
        self.note(&format!("{state} · going on with it, Ctrl-C stops"));
        let hold = open::hold(&self.config, &self.session).await?;
        let cancel = CancellationToken::new();
        let stop = open::cancel_on_interrupt(&cancel);
        let attendant = Arc::new(self.screen.person());
        let turn = self.agent.resume(&mut self.session, attendant, &cancel);
        let verdict = hold.while_held(self.screen.watch(&mut self.events, turn)).await;
        stop.abort();
        self.after(&hold, verdict).await.map(drop)
    }

    /// Reads messages and commands until the user leaves.
    async fn converse(&mut self) -> Result<ExitCode, Failure> {
        self.note(&format!(
            "{} · isolation {} · /help lists the commands",
            self.agent.model.name(),
            self.agent.interpreter.isolation().level.as_str()
        ));
        if let Err(failure) = self.go_on().await {
            self.complain(&failure);
        }
        if let Err(failure) = self.tell_waiting().await {
            self.complain(&failure);
        }
        let mut ends = open::Ends::new();
        let mut editor = line_editor();
        let terminal = tcgetattr(std::io::stdin());
        loop {
            let prompt =
                DefaultPrompt::new(DefaultPromptSegment::Basic("fimble".to_owned()), DefaultPromptSegment::Empty);
            let read = tokio::task::spawn_blocking(move || {
                let signal = editor.read_line(&prompt);
                (editor, signal)
            });
            let read = tokio::select! {
                read = read => read,
                // The editor waits for keys that nobody can press any more, and does not see it.
                code = ends.told() => {
                    // Not as the editor set it up for itself. A closed terminal cannot be set, and need not be.
                    let _ = terminal.map(|terminal| tcsetattr(std::io::stdin(), SetArg::TCSANOW, &terminal));
                    return Ok(ExitCode::from(code));
                }
            };
            let signal;
            (editor, signal) = read.map_err(|error| Failure::new(1, error.to_string()))?;
            let line = match signal? {
                Signal::Success(line) => line,
                Signal::CtrlD => break,
                _ => continue,
            };
            match self.take(line.trim()).await {
                Ok(Next::Read) => {}
                Ok(Next::Quit) => break,
                // One turn that failed is no reason to leave.
                Err(failure) => self.complain(&failure),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn take(&mut self, line: &str) -> Result<Next, Failure> {
        let Some(command) = line.strip_prefix('/') else {
            if !line.is_empty() {
                self.answer(line).await?;
            }
            return Ok(Next::Read);
        };
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, argument.trim()) {
            ("quit" | "exit" | "q", _) => return Ok(Next::Quit),
            ("help" | "?", _) => self.note(HELP),
            ("new", _) => {
                let session = open::session(&self.config, Arc::clone(&self.store), None).await?;
                self.leave("clear").await;
                self.switch(session);
            }
            ("resume", id) => {
                let session = open::session(&self.config, Arc::clone(&self.store), Some(id)).await?;
                self.leave("resume").await;
                self.switch(session);
                self.go_on().await?;
            }
            ("sessions", _) => sessions::list(self.store.as_ref()).await?,
            ("edit", _) => self.edit().await?,
            ("policy", name) => self.note(&policy::choose(&self.agent.parts.gate, name)?),
            ("vars", _) => sessions::print_variables(self.session.variables().values()),
            ("rounds", _) => sessions::print_rounds(&self.session.rounds(0).await?),
            ("code", number) => self.show_code(number).await?,
            _ => {
                return Err(Failure::usage(format!("there is no command `/{name}`")).with_hint("/help lists them"));
            }
        }
        Ok(Next::Read)
    }

    /// Names the other sessions that wait for the user.
    async fn tell_waiting(&mut self) -> Result<(), Failure> {
        let own = &self.session.record().id;
        let mut listed = self.store.sessions(open::TENANT, &open::user(), LOOKED_AT).await?;
        listed.retain(|session| session.id != *own && sessions::waits_for_user(session));
        for session in listed.iter().take(NAMED) {
            // A program that was run by hand has no conversation to go on with.
            let command = if session.turn.is_some() { "/resume" } else { "fimble sessions resume" };
            let (title, state) = (sessions::title(session), sessions::state(session).trim());
            self.note(&format!("{title} {state} · {command} {}", session.id));
        }
        if let Some(more) = listed.len().checked_sub(NAMED).filter(|more| *more > 0) {
            self.note(&format!("{more} more wait · /sessions lists them"));
        }
        Ok(())
    }

    /// Lets the person write what is left of the last program.
    async fn edit(&mut self) -> Result<(), Failure> {
        let hold = open::hold(&self.config, &self.session).await?;
        let pending = edit::pending(&self.session).await?;
        let (agent, session) = (&self.agent, &mut self.session);
        let mut work = edit::Work { agent, session, screen: &mut self.screen, events: &mut self.events, hold: &hold };
        let edited = work.edit(&pending).await;
        self.after(&hold, edited).await
    }

    /// Tells hooks that the session is left.
    async fn leave(&mut self, reason: &str) {
        let leaving = self.agent.parts.gate.session_ends(&self.session, reason);
        self.screen.watch(&mut self.events, leaving).await;
    }

    fn switch(&mut self, session: Session) {
        self.events = session.subscribe();
        open::tell_isolation(&session, &self.agent.interpreter);
        let title = session.record().title.clone();
        let title = if title.is_empty() { "new".to_owned() } else { title };
        self.note(&format!("session {} · {title}", session.record().id));
        self.session = session;
    }

    async fn show_code(&mut self, number: &str) -> Result<(), Failure> {
        let rounds = self.session.rounds(0).await?;
        let round = match number {
            "" => rounds.last(),
            number => rounds.iter().find(|round| round.number.to_string() == number),
        };
        let Some(round) = round else {
            return Err(Failure::usage("there is no such round").with_hint("/rounds lists them"));
        };
        out!("{}", round.hole.trim_end());
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.screen.line(Style::new().dimmed(), text);
    }

    fn complain(&mut self, failure: &Failure) {
        self.screen.line(Color::Red.normal(), &format!("error: {}", failure.message));
        if let Some(hint) = &failure.hint {
            self.screen.line(Style::new(), &format!("hint: {hint}"));
        }
    }
}

/// A line editor with the user's history; without a place for it, the history lasts as long as the process.
fn line_editor() -> Reedline {
    let file = folders().map(|folders| folders.data.join("history.txt"));
    let history = file.and_then(|file| FileBackedHistory::with_file(HISTORY_LINES, file).ok());
    // A paste of many lines is one message, not one message a line.
    let editor = Reedline::create().use_bracketed_paste(true);
    match history {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}
