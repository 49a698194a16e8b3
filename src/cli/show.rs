//! Events on the terminal: replies on standard output, everything else on standard error; or all of them as JSON lines.
//! It does not write: while a turn runs, a thread does.

use std::collections::HashMap;
use std::future::Future;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nu_ansi_term::{Color, Style};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::output::{clean, data};
use super::person::{self, Inquiry, Person};
use super::thinking::Thinking;
use super::writer::{Piece, Writer, write_piece};
use crate::event::{Custom, Event, EventKind};

/// Lines of a traceback or a result that are shown, and how many of them are its first ones.
const SHOWN_LINES: usize = 16;
const SHOWN_FIRST: usize = 8;
/// Characters of one call's arguments that are shown.
const SHOWN_CHARACTERS: usize = 100;

/// How events are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For a person.
    Text,
    /// One JSON object a line on standard output.
    Json,
}

/// Shows one session's events.
pub(super) struct Screen {
    format: Format,
    /// True if prints are the data, on standard output, and the program is known to the reader.
    script: bool,
    colour: bool,
    /// Names of calls under way, by key.
    calls: HashMap<String, String>,
    /// True while the program is being streamed, so that the next thing begins on a new line.
    streaming: bool,
    /// True if the terminal stands in the middle of a line.
    midline: Arc<AtomicBool>,
    /// True if the program was streamed as it was written.
    streamed: bool,
    /// True if somebody can be asked.
    attended: bool,
    ask: UnboundedSender<Inquiry>,
    asked: UnboundedReceiver<Inquiry>,
    thinking: Thinking,
    /// Writes while a turn runs; between turns, what is shown is written at once.
    writer: Option<Writer>,
}

impl Screen {
    /// The screen of a conversation: replies are the data.
    pub(super) fn of_conversation(format: Format) -> Self {
        Self::new(format, false)
    }

    /// The screen of a script: prints and replies are the data, the program itself is not shown.
    pub(super) fn of_script(format: Format) -> Self {
        Self::new(format, true)
    }

    fn new(format: Format, script: bool) -> Self {
        let colour =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (ask, asked) = unbounded_channel();
        Self {
            format,
            script,
            colour,
            calls: HashMap::new(),
            streaming: false,
            midline: Arc::default(),
            streamed: false,
            attended: person::is_present(),
            ask,
            asked,
            thinking: Thinking::new(format == Format::Text),
            writer: None,
        }
    }

    /// Who looks at this screen and can be asked while it watches; nobody, if that is no terminal.
    pub(super) fn person(&self) -> Person {
        Person::before(self.attended.then(|| self.ask.clone()), Arc::clone(&self.midline))
    }

    /// Shows what `work` makes visible until it is done, and returns its result when all is written. A reader that is slow
    /// does not hold up `work`.
    pub(super) async fn watch<T>(&mut self, events: &mut UnboundedReceiver<Event>, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        self.writer = Writer::start();
        // The question that waits for its answer, until it is over.
        let mut question: Option<oneshot::Receiver<()>> = None;
        let result = loop {
            tokio::select! {
                biased;
                _ = async { question.as_mut()?.await.ok() }, if question.is_some() => question = None,
                // Nothing comes between a question and its answer on the screen of a person.
                Some(event) = events.recv(), if question.is_none() || self.format == Format::Json => self.show(&event),
                // After the events, so that a question stands below what happened before it.
                Some(inquiry) = self.asked.recv(), if question.is_none() => question = Some(self.inquire(inquiry)),
                () = Thinking::due(self.thinking.next()), if question.is_none() => {
                    let told = self.thinking.tell(Instant::now()).unwrap_or_default();
                    self.write(Piece::Note(told));
                }
                result = &mut work => {
                    while let Ok(event) = events.try_recv() {
                        self.show(&event);
                    }
                    break result;
                }
            }
        };
        self.clear_thinking();
        if let Some(writer) = self.writer.take() {
            writer.finish().await;
        }
        result
    }

    /// Shows one event.
    pub(super) fn show(&mut self, event: &Event) {
        match self.format {
            Format::Json => {
                let line = serde_json::to_string(event).unwrap_or_default();
                self.write(Piece::Out(format!("{}\n", data(&line))));
            }
            Format::Text => {
                if let Some(clear) = self.thinking.follow(&event.kind, Instant::now()) {
                    self.write(Piece::Note(clear.to_owned()));
                }
                self.show_text(&event.kind);
            }
        }
    }

    fn clear_thinking(&mut self) {
        if let Some(clear) = self.thinking.end() {
            self.write(Piece::Note(clear.to_owned()));
        }
    }

    fn show_text(&mut self, kind: &EventKind) {
        match kind {
            EventKind::TextMessageChunk { delta, .. } => self.say(delta),
            EventKind::ToolCallChunk { tool_call_id, tool_call_name, delta, .. } => {
                let arguments = if delta == "{}" { String::new() } else { clip(delta, SHOWN_CHARACTERS) };
                self.calls.insert(tool_call_id.clone(), format!("{tool_call_name}({arguments})"));
            }
            EventKind::ToolCallResult { tool_call_id, content, failed, duration_ms, .. } => {
                let name = self.calls.remove(tool_call_id).unwrap_or_default();
                let line = format!("→ {name}  {}", milliseconds(*duration_ms));
                if *failed {
                    self.line(Color::Red.normal(), &format!("{line}  {}", clip(content, 300)));
                } else if !name.starts_with("system_toolkit.send_message") {
                    self.line(Color::Cyan.normal(), &line);
                }
            }
            EventKind::Custom(custom) => self.show_custom(custom),
            // The caller reports a failed turn itself, with its exit code.
            EventKind::RunStarted { .. }
            | EventKind::RunFinished { .. }
            | EventKind::RunError { .. }
            | EventKind::StepStarted { .. }
            | EventKind::StepFinished { .. } => {}
        }
    }

    fn show_custom(&mut self, custom: &Custom) {
        let dim = Style::new().dimmed();
        match custom {
            Custom::ProgramDelta { text } => {
                self.streaming = true;
                self.streamed = true;
                self.raw(dim, text);
            }
            Custom::Program { .. } if self.script => {}
            Custom::Program { hole, repairs, .. } => {
                if !std::mem::take(&mut self.streamed) {
                    self.line(dim, hole.trim_end());
                }
                for repair in repairs {
                    self.line(Color::Yellow.dimmed(), &format!("~ {repair}"));
                }
            }
            Custom::Refused { message, .. } => {
                self.streamed = false;
                self.line(Color::Yellow.normal(), &format!("! {}", ends(message)));
            }
            Custom::Print { text } if self.script => {
                self.write(Piece::Out(data(text).into_owned()));
                if std::io::stdout().is_terminal() {
                    self.set_midline(!text.ends_with('\n'));
                }
            }
            Custom::Print { text } => {
                self.end_stream();
                self.raw(Style::new(), text);
            }
            // Whoever is there still has the question before them.
            Custom::RoundEnded { outcome, .. } if outcome == "suspended" && self.attended => {}
            Custom::RoundEnded { outcome, message, not_carried, .. } => {
                if outcome == "suspended" {
                    self.line(Color::Green.bold(), &format!("? {}", ends(message)));
                } else if outcome != "finished" {
                    self.line(Color::Red.normal(), &format!("! {}", ends(message)));
                }
                for (name, reason) in not_carried {
                    self.line(Color::Yellow.dimmed(), &format!("~ `{name}` is not kept: {reason}"));
                }
            }
            Custom::Progress { tool_call_id, done, total, text } => {
                let call = self.calls.get(tool_call_id).map(String::as_str).unwrap_or_default();
                let name = call.split('(').next().unwrap_or_default();
                self.line(dim, &format!("… {name}{}", step(*done, *total, text)));
            }
            Custom::Plan { text, .. } => self.line(Style::new(), text),
            Custom::Allowed { operation, by, .. } => {
                let text = format!("~ {operation} is allowed by what was said before (`fimble policy revoke {by}`)");
                self.line(Color::Yellow.dimmed(), &text);
            }
            Custom::Remembered { id, operation, arguments } => {
                let what = clip(&format!("{operation}{arguments}"), SHOWN_CHARACTERS);
                let text = format!("~ {what} is allowed from now on (`fimble policy revoke {id}`)");
                self.line(Color::Yellow.dimmed(), &text);
            }
            Custom::ToolkitsChanged { added, changed, removed, problems } => {
                for (names, what) in [(added, "is there now"), (changed, "has changed"), (removed, "is gone")] {
                    for name in names {
                        self.line(dim, &format!("~ {name} {what}"));
                    }
                }
                for problem in problems {
                    self.line(Color::Yellow.normal(), &format!("warning: {problem}"));
                }
            }
            // Whoever is there sees it when it is their turn to answer.
            Custom::Card { asks: true, .. } if self.attended => {}
            Custom::Card { text, asks: true, .. } => self.line(Color::Green.bold(), &format!("? {text}")),
            Custom::Card { text, .. } if self.script => self.line(Style::new(), text),
            Custom::Card { text, .. } => self.say(text),
            Custom::CardAnswered { .. } => {}
            // The same.
            Custom::Question { .. } if self.attended => {}
            Custom::Question { text, choices, .. } => {
                self.line(Color::Green.bold(), &format!("? {}", person::question_text(text, choices)));
            }
            Custom::Hook { message, .. } => self.line(Color::Yellow.normal(), &format!("hook: {message}")),
            Custom::Isolation { warning: Some(warning), .. } => {
                self.line(Color::Yellow.normal(), &format!("warning: {warning}"));
            }
            Custom::Isolation { level, layers, missing, .. } if level != "full" => {
                let text = format!("isolation is {level}: {}; not there: {}", layers.join(", "), missing.join(", "));
                self.line(Color::Yellow.normal(), &text);
            }
            Custom::Isolation { .. } | Custom::Statement { .. } | Custom::ModelUsage { .. } => {}
        }
    }

    /// Takes in what another process has shown, so that what follows can be understood.
    pub(super) fn recall(&mut self, events: &[Event]) {
        for event in events {
            if let EventKind::ToolCallChunk { .. } = event.kind {
                self.show(event);
            }
        }
    }

    /// A reply, on standard output.
    fn say(&mut self, text: &str) {
        self.end_stream();
        if self.is_midline() {
            self.raw(Style::new(), "\n");
        }
        self.write(Piece::Out(format!("{}\n", data(text.trim_end()))));
    }

    /// Shows a question with its prompt; returns what is closed when it is over.
    fn inquire(&mut self, inquiry: Inquiry) -> oneshot::Receiver<()> {
        let Inquiry { text, mark, forget_typed, shown, over } = inquiry;
        if shown.is_closed() {
            return over;
        }
        self.clear_thinking();
        self.end_stream();
        let text = self.lines(Color::Green.bold(), &format!("? {}", text.replace('\n', "\n  ")));
        self.set_midline(true);
        self.write(Piece::Question { text: format!("{text}{mark}"), forget_typed, shown });
        over
    }

    /// A line of its own on standard error.
    pub(super) fn line(&mut self, style: Style, text: &str) {
        self.end_stream();
        let text = self.lines(style, text);
        self.write(Piece::Note(text));
        self.set_midline(false);
    }

    fn lines(&self, style: Style, text: &str) -> String {
        let mut lines = if self.is_midline() { "\n".to_owned() } else { String::new() };
        for line in text.lines() {
            lines.push_str(&self.paint(style, line));
            lines.push('\n');
        }
        lines
    }

    fn raw(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        let painted = self.paint(style, text);
        self.write(Piece::Note(painted));
        self.set_midline(!text.ends_with('\n'));
    }

    fn end_stream(&mut self) {
        if std::mem::take(&mut self.streaming) && self.is_midline() {
            self.raw(Style::new(), "\n");
        }
    }

    fn is_midline(&self) -> bool {
        self.midline.load(Ordering::Relaxed)
    }

    fn set_midline(&self, midline: bool) {
        self.midline.store(midline, Ordering::Relaxed);
    }

    fn write(&self, piece: Piece) {
        match &self.writer {
            Some(writer) => writer.write(piece),
            None => write_piece(piece),
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        let safe = clean(text);
        if self.colour { style.paint(safe).to_string() } else { safe.into_owned() }
    }
}

/// `843 ms`, `1.25 s`.
pub(super) fn milliseconds(duration: f64) -> String {
    if duration >= 1_000.0 { format!("{:.2} s", duration / 1_000.0) } else { format!("{duration:.1} ms") }
}

/// `  3 of 10  bakes`: how far a call is.
fn step(done: Option<f64>, total: Option<f64>, text: &str) -> String {
    let number = match (done, total) {
        (Some(done), Some(total)) => format!("  {done} of {total}"),
        (Some(done), None) => format!("  {done}"),
        (None, _) => String::new(),
    };
    if text.is_empty() { number } else { format!("{number}  {}", clip(text, SHOWN_CHARACTERS)) }
}

/// The first characters of `text` on one line.
pub(super) fn clip(text: &str, characters: usize) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The first and the last lines of a long text: a traceback says what happened at its end, a group of exceptions at both.
fn ends(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let more = lines.len().saturating_sub(SHOWN_LINES);
    if more == 0 {
        return lines.join("\n");
    }
    let (first, rest) = lines.split_at(SHOWN_FIRST);
    format!("{}\n… {more} more lines …\n{}", first.join("\n"), rest[more..].join("\n"))
}
