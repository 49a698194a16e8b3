//! `fimble eval`: the tasks of `evals/tasks.toml` with a real model, judged by facts, as a table.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Failure, open};
use crate::agent::EncodingChoice;
use crate::config::Config;
use crate::event::{Custom, EventKind};
use crate::gate::Unattended;
use crate::record::CallStatus;
use crate::segment::SegmentKind;
use crate::session::Session;
use crate::store::sqlite::Sqlite;

/// Seconds after which a task is given up.
const TASK_SECONDS: u64 = 300;

/// Run evaluation tasks and print success, rounds, tokens and time of each.
#[derive(Debug, Args)]
pub(super) struct Eval {
    /// The tasks.
    #[arg(long, value_name = "FILE", default_value = "evals/tasks.toml")]
    tasks: PathBuf,
    /// The script that makes the folder the tasks are about, called with that folder.
    #[arg(long, value_name = "FILE", default_value = "evals/fixture.sh")]
    fixture: PathBuf,
    /// Only tasks whose name contains this.
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// How programs are put to the model; give it twice to compare.
    #[arg(long, value_name = "ENCODING", value_parser = ["auto", "fill", "chat"])]
    encoding: Vec<String>,
    /// Show each task's programs and replies.
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tasks {
    task: Vec<Task>,
}

/// One task; the head of `evals/tasks.toml` says what the fields mean.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Task {
    name: String,
    ask: Vec<String>,
    reply: Vec<String>,
    any: Vec<String>,
    truth: Option<String>,
    calls: Vec<String>,
    variables: Vec<String>,
}

/// What one task came to.
struct Score {
    /// Empty if it succeeded.
    misses: Vec<String>,
    rounds: usize,
    prompt_tokens: u64,
    completion_tokens: u64,
    seconds: f64,
}

impl Eval {
    pub(super) async fn execute(self, config: Config) -> Result<ExitCode, Failure> {
        let text = std::fs::read_to_string(&self.tasks)
            .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", self.tasks.display())))?;
        let mut tasks: Tasks =
            toml::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", self.tasks.display())))?;
        tasks.task.retain(|task| self.task.as_ref().is_none_or(|part| task.name.contains(part.as_str())));
        if tasks.task.is_empty() {
            return Err(Failure::usage("no task has such a name"));
        }
        let fixture = std::fs::canonicalize(&self.fixture)
            .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", self.fixture.display())))?;
        let encodings = if self.encoding.is_empty() { vec!["auto".to_owned()] } else { self.encoding.clone() };
        let mut perfect = true;
        for name in encodings {
            let encoding = match name.as_str() {
                "fill" => EncodingChoice::Fill,
                "chat" => EncodingChoice::Chat,
                _ => EncodingChoice::Auto,
            };
            let mut scores = Vec::new();
            out!(
                "| task ({name}) | ok | rounds | prompt tokens | generated | s | missed |\n|---|---|---|---|---|---|---|"
            );
            for task in &tasks.task {
                let score = self.run(task, &fixture, encoding, &config).await?;
                out!(
                    "| {} | {} | {} | {} | {} | {:.1} | {} |",
                    task.name,
                    if score.misses.is_empty() { "yes" } else { "no" },
                    score.rounds,
                    score.prompt_tokens,
                    score.completion_tokens,
                    score.seconds,
                    score.misses.join("; ")
                );
                scores.push(score);
            }
            perfect &= summarise(&name, &scores);
        }
        Ok(if perfect { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    async fn run(
        &self,
        task: &Task,
        fixture: &Path,
        encoding: EncodingChoice,
        config: &Config,
    ) -> Result<Score, Failure> {
        let folder = Folder::make(fixture)?;
        let mut config = config.clone();
        config.toolkits.roots = vec![folder.path.clone()];
        config.agent.encoding = encoding;
        let agent = open::agent(&config).await?;
        let _listener = open::listen(&agent.parts.gate);
        let store = Arc::new(Sqlite::in_memory()?);
        let mut session = open::session(&config, store, None).await?;
        let begun = Instant::now();
        let mut misses = Vec::new();
        for message in &task.ask {
            let cancel = CancellationToken::new();
            let turn = agent.turn(&mut session, message.as_str(), Arc::new(Unattended), &cancel);
            match tokio::time::timeout(std::time::Duration::from_secs(TASK_SECONDS), turn).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => misses.push(error.to_string()),
                Err(_) => {
                    misses.push(format!("no answer within {TASK_SECONDS} s"));
                    break;
                }
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        if self.verbose {
            show(&session);
        }
        misses.extend(judge(task, &session, &folder.path).await?);
        score(misses, &session, seconds).await
    }
}

/// A folder made by the fixture, removed when dropped.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn make(fixture: &Path) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("fimble-eval-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(&path)?;
        let folder = Self { path };
        let output = std::process::Command::new(fixture).arg(&folder.path).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(1, format!("`{}` failed: {}", fixture.display(), said.trim())));
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// What the task wanted and did not get.
async fn judge(task: &Task, session: &Session, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut misses = Vec::new();
    let last = session.segments().iter().rposition(|segment| segment.kind == SegmentKind::User).unwrap_or(0);
    let replies: Vec<&str> = session.segments()[last..]
        .iter()
        .filter(|segment| segment.kind == SegmentKind::Reply)
        .map(|segment| segment.content.as_str())
        .collect();
    let reply = plain(&replies.join("\n"));
    let mut wanted = task.reply.clone();
    if let Some(command) = &task.truth {
        let output = std::process::Command::new("sh").args(["-c", command]).current_dir(folder).output()?;
        let truth = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || truth.is_empty() {
            return Err(Failure::usage(format!("the truth of `{}` cannot be had: `{command}` failed", task.name)));
        }
        wanted.push(truth);
    }
    for text in wanted {
        if !holds(&reply, &text) {
            misses.push(format!("reply lacks `{text}`"));
        }
    }
    if !task.any.is_empty() && !task.any.iter().any(|text| holds(&reply, text)) {
        misses.push(format!("reply has none of `{}`", task.any.join("`, `")));
    }
    let mut called = Vec::new();
    for round in session.rounds(0).await? {
        let calls = session.calls(round.number).await?;
        called.extend(calls.into_iter().filter(|call| matches!(call.status, CallStatus::Done { .. })));
    }
    for name in &task.calls {
        if !called.iter().any(|call| format!("{}.{}", call.toolkit, call.operation) == *name) {
            misses.push(format!("no call of `{name}`"));
        }
    }
    for name in &task.variables {
        if !session.variables().contains_key(name) {
            misses.push(format!("no variable `{name}`"));
        }
    }
    Ok(misses)
}

async fn score(misses: Vec<String>, session: &Session, seconds: f64) -> Result<Score, Failure> {
    let rounds = session.rounds(0).await?;
    let usage = session.events().await?.into_iter().filter_map(|event| match event.kind {
        EventKind::Custom(Custom::ModelUsage { prompt_tokens, completion_tokens, .. }) => {
            Some((u64::from(prompt_tokens), u64::from(completion_tokens)))
        }
        _ => None,
    });
    let (prompt_tokens, completion_tokens) = usage.fold((0, 0), |sum, used| (sum.0 + used.0, sum.1 + used.1));
    Ok(Score { misses, rounds: rounds.len(), prompt_tokens, completion_tokens, seconds })
}

/// Prints the sums; true if all tasks succeeded.
fn summarise(name: &str, scores: &[Score]) -> bool {
    let passed = scores.iter().filter(|score| score.misses.is_empty()).count();
    let mean = |total: f64| total / scores.len() as f64;
    out!(
        "\n{name}: {passed} of {} tasks; means: {:.1} rounds, {:.0} prompt tokens, {:.0} generated, {:.1} s\n",
        scores.len(),
        mean(scores.iter().map(|score| score.rounds as f64).sum()),
        mean(scores.iter().map(|score| score.prompt_tokens as f64).sum()),
        mean(scores.iter().map(|score| score.completion_tokens as f64).sum()),
        mean(scores.iter().map(|score| score.seconds).sum()),
    );
    passed == scores.len()
}

/// True if the plain reply has the text, and not as a part of a longer word or number.
fn holds(reply: &str, text: &str) -> bool {
    let text = plain(text);
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    reply.match_indices(&text).any(|(at, _)| {
        let before = text.starts_with(char::is_alphanumeric) && is_part(reply[..at].chars().next_back());
        let after = text.ends_with(char::is_alphanumeric) && is_part(reply[at + text.len()..].chars().next());
        !before && !after
    })
}

/// Lower case, without thousands separators.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(',', "")
}

fn show(session: &Session) {
    for segment in session.segments() {
        note!("--- {:?}\n{}", segment.kind, segment.content.trim_end());
    }
}
