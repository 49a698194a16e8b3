//! A program's last word, [`frame::DONE`](super::frame::DONE): its shape, its names and the sizes of its texts. The child
//! keeps to all of this by itself unless it is hostile, so what breaks it is nonsense; texts for a reader are cut. It does
//! not know whether the last word counts.

use std::collections::HashSet;

use fimble_toolkit::KEYWORDS;
use serde::Deserialize;

use super::{Captured, Limits, Run};

/// The most names that one round may write.
const WRITTEN: usize = 20_000;
/// The most names that one round may fail to carry, and that one definition may use.
const NAMES: usize = 1_000;
/// Characters of a name.
const NAME: usize = 200;
/// Characters of a type, of an exception's class and of the place where a limit ended the program.
const TYPE_NAME: usize = 80;
/// Characters of a preview.
const PREVIEW: usize = 400;
/// Characters of a reason why a name was not carried.
const REASON: usize = 200;
/// Characters of the child's own sentence about a limit.
const SENTENCE: usize = 400;
/// Bytes of a traceback, and of the value that a program returned.
const TEXT: usize = 16 * 1024;

/// In place of a name: nothing of the namespace could be looked at.
const ALL_NAMES: &str = "*";

/// The body of the frame.
#[derive(Debug, Deserialize)]
pub(super) struct Done {
    pub ending: DoneEnding,
    pub written: Vec<Captured>,
    pub removed: Vec<String>,
    pub not_carried: Vec<(String, String)>,
    pub statements_done: u32,
    pub statements: u32,
}

/// How the program ended, by its own account.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum DoneEnding {
    Returned { value: Option<String> },
    Raised { traceback: String, exception: String, statement: u32, line: u32 },
    Limit { limit: String, message: String },
}

/// The last word with its texts cut; the error says what a child of ours would not have sent.
pub(super) fn check(done: Done, run: &Run) -> Result<Done, String> {
    let Done { ending, mut written, removed, mut not_carried, statements_done, statements } = done;
    check_count("written names", written.len(), WRITTEN)?;
    // A program may delete all that it was given.
    check_count("removed names", removed.len(), NAMES.max(run.variables.len()))?;
    check_count("names that were not carried", not_carried.len(), NAMES)?;
    check_count("statements", statements as usize, run.source.len())?;
    check_count("statements done", statements_done as usize, statements as usize)?;

    let mut seen = HashSet::new();
    for name in written.iter().map(|captured| &captured.name) {
        check_name(name)?;
        if run.proxies.contains(name) {
            return Err(format!("a variable in place of `{name}`"));
        }
        if !seen.insert(name.as_str()) {
            return Err(format!("the variable `{name}` twice"));
        }
    }
    let unlooked = |name: &&String| name.as_str() != ALL_NAMES;
    removed
        .iter()
        .chain(not_carried.iter().map(|(name, _)| name).filter(unlooked))
        .try_for_each(|name| check_name(name))?;

    for captured in &mut written {
        captured.type_name = line(&captured.type_name, TYPE_NAME);
        captured.preview = line(&captured.preview, PREVIEW);
        captured.references.retain(|name| is_identifier(name));
        captured.references.truncate(NAMES);
    }
    for (_, reason) in &mut not_carried {
        *reason = line(reason, REASON);
    }
    Ok(Done { ending: cut_ending(ending), written, removed, not_carried, statements_done, statements })
}

/// Splits what a child says it wrote into what can be kept and what cannot, with the reason.
pub(super) fn within_limits(written: Vec<Captured>, limits: &Limits) -> (Vec<Captured>, Vec<(String, String)>) {
    let mut rest = limits.variables_kib.saturating_mul(1024);
    let mut kept = Vec::new();
    let mut surplus = Vec::new();
    for captured in written {
        let size = captured.content.len() as u64;
        if KEYWORDS.contains(&captured.name.as_str()) {
            // A program can write one through `globals()`.
            surplus
                .push((captured.name, "it is a word of Python's own, which no program can read as a name".to_owned()));
        } else if size > limits.variable_kib.saturating_mul(1024) {
            surplus.push((captured.name, format!("it is larger than {} KiB", limits.variable_kib)));
        } else if let Some(left) = rest.checked_sub(size) {
            rest = left;
            kept.push(captured);
        } else {
            surplus
                .push((captured.name, format!("all variables together are larger than {} KiB", limits.variables_kib)));
        }
    }
    (kept, surplus)
}

fn cut_ending(ending: DoneEnding) -> DoneEnding {
    match ending {
        DoneEnding::Returned { value } => DoneEnding::Returned { value: value.map(|value| cut_end(value, TEXT)) },
        DoneEnding::Raised { traceback, exception, statement, line: at } => DoneEnding::Raised {
            traceback: cut_middle(traceback, TEXT),
            exception: line(&exception, TYPE_NAME),
            statement,
            line: at,
        },
        // The place stands at the end of the sentence.
        DoneEnding::Limit { limit, message } => DoneEnding::Limit { limit, message: line(&message, SENTENCE) },
    }
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most { Ok(()) } else { Err(format!("{count} {what}, more than {most}")) }
}

fn check_name(name: &str) -> Result<(), String> {
    if is_identifier(name) { Ok(()) } else { Err(format!("the name `{}`", line(name, TYPE_NAME).escape_debug())) }
}

/// True for what `str.isidentifier` takes. Programs may name their variables in any script, and toolkits may not: their
/// rule is [`fimble_toolkit::is_python_name`].
fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first))
        && characters.all(unicode_ident::is_xid_continue)
        && name.chars().count() <= NAME
}

/// The text on one line of at most `most` characters, cut with a mark.
fn line(text: &str, most: usize) -> String {
    let ends_line = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let mut characters = text.chars().map(|character| if ends_line(character) { ' ' } else { character });
    let mut line: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// Room for the mark of a cut.
const MARK: usize = 64;

fn mark(bytes: usize) -> String {
    format!("[… {bytes} bytes were cut here …]")
}

/// The beginning of the text in at most `most` bytes.
fn cut_end(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(most - MARK));
    format!("{head} {}", mark(rest.len()))
}

/// The beginning and the end of the text in at most `most` bytes: the end of a traceback says what happened.
fn cut_middle(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let half = (most - MARK) / 2;
    let (head, rest) = text.split_at(text.floor_char_boundary(half));
    let (cut, tail) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(half)));
    format!("{head}\n{}\n{tail}", mark(cut.len()))
}
