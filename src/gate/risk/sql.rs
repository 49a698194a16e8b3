//! SQL that changes whole tables. It reads words, not a dialect's grammar: texts, names in quotes and comments are passed over.

use super::{Analyser, code_arguments, in_value};
use crate::gate::policy::Subject;

/// What `DROP` is followed by.
const DROPPED: [&str; 8] = ["DATABASE", "INDEX", "ROLE", "SCHEMA", "TABLE", "TABLESPACE", "USER", "VIEW"];

pub(super) struct Statements;

impl Analyser for Statements {
    fn analyse(&self, call: &Subject<'_>) -> Option<String> {
        code_arguments(call).find_map(|value| in_value(value, super::DEPTH, &mut found)).map(str::to_owned)
    }
}

fn found(text: &str) -> Option<&'static str> {
    // Most texts are none.
    let begins =
        |word: &str| text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    if !["delete", "update", "drop", "truncate"].into_iter().any(begins) {
        return None;
    }
    statements(text).iter().find_map(|words| grave(words))
}

fn grave(words: &[String]) -> Option<&'static str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // What stands before it in the same statement: `WITH … AS (…) DELETE FROM …`, `EXPLAIN ANALYZE DELETE …`.
    let leads = ["WITH", "EXPLAIN"].contains(words.first()?);
    let at = if leads { words.iter().position(|word| ["DELETE", "UPDATE"].contains(word))? } else { 0 };
    let rest = &words[at..];
    let is_bounded = rest.contains(&"WHERE");
    match (rest[0], rest.get(1).copied().unwrap_or_default()) {
        ("DELETE", "FROM") if !is_bounded => Some("would delete all rows of a table (`DELETE` without `WHERE`)"),
        ("UPDATE", _) if !is_bounded && rest.contains(&"SET") => {
            Some("would change all rows of a table (`UPDATE` without `WHERE`)")
        }
        ("DROP", what) if DROPPED.contains(&what) || what == "MATERIALIZED" => Some("would drop a part of the schema"),
        ("TRUNCATE", next) if !next.is_empty() => Some("would empty a table (`TRUNCATE`)"),
        _ => None,
    }
}

/// The words of each statement in capitals, without texts, names in quotes and comments.
fn statements(text: &str) -> Vec<Vec<String>> {
    let mut statements = vec![Vec::new()];
    let mut word = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let is_word = character.is_alphanumeric() || character == '_';
        if is_word {
            word.extend(character.to_uppercase());
        } else if !word.is_empty() {
            push(&mut statements, std::mem::take(&mut word));
        }
        let skipped = match character {
            '\'' | '"' | '`' => {
                // A name in quotes is a word all the same: `DELETE FROM "t"`.
                push(&mut statements, "_".to_owned());
                quoted(rest, character)
            }
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            ';' => {
                statements.push(Vec::new());
                1
            }
            other => other.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    if !word.is_empty() {
        push(&mut statements, word);
    }
    statements
}

fn push(statements: &mut [Vec<String>], word: String) {
    if let Some(last) = statements.last_mut() {
        last.push(word);
    }
}

/// The bytes of what stands in quotes at the beginning; two quotes in a row are one within it.
fn quoted(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].find(quote) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}
