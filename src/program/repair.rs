//! Takes from the model's text what models are known to add, until it is a hole: fences, prose, the host's own lines,
//! indentation, a half last statement. Deterministic; every change is one sentence.
//!
//! It never changes a text that is a hole already, and does not look at what the statements do.

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::Finding;
use super::lines::{Line, LineKind, dedent, lines, map_lines};
use super::scaffold::{HOLE_INDENT, Scaffold};

/// A hole, at no indentation, that may still not parse.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repaired {
    /// The text.
    pub(super) hole: String,
    /// What was changed, one sentence each.
    pub(super) repairs: Vec<String>,
}

/// The hole in the model's text. `cut` says that the generation ended at its length limit.
///
/// An error is text that goes on after the `try` was closed: nobody can tell whether the rest was meant.
pub(super) fn repair(scaffold: &Scaffold, text: &str, cut: bool) -> Result<Repaired, Finding> {
    let mut repaired = Repaired { hole: plain(text), repairs: Vec::new() };
    repaired.apply(unfence, "took the code out of its fence");
    repaired.apply(|text| without_prefix(text, scaffold), "took away lines of the prefix that were repeated");
    repaired.apply(|text| without_wrapper(text, scaffold), "took away the `try` and `except` that were repeated");
    if let Some(start) = handler_start(&repaired.hole) {
        closes_try(&repaired.hole, start)?;
        repaired.set(repaired.hole[..start].to_owned(), "took away the `except` that was repeated after the hole");
    }
    let leveled = level(&repaired.hole);
    if leveled.0 != repaired.hole {
        match leveled.1 {
            Some(sentence) => repaired.set(leveled.0, sentence),
            // Text at the level of the hole is what was asked for.
            None => repaired.hole = leveled.0,
        }
    }
    if cut {
        repaired.apply(without_half_statement, "cut the last statement, which the length limit had broken");
    }
    repaired.apply(without_prose, "took away prose around the code");
    repaired.apply(|text| without_done(text, &scaffold.done), "took away statements that were already done");
    repaired.hole = repaired.hole.trim_matches('\n').trim_end().to_owned() + "\n";
    Ok(repaired)
}

impl Repaired {
    fn set(&mut self, hole: String, sentence: &str) {
        self.hole = hole;
        self.repairs.push(sentence.to_owned());
    }

    fn apply(&mut self, change: impl FnOnce(&str) -> Option<String>, sentence: &str) {
        if let Some(hole) = change(&self.hole) {
            self.set(hole, sentence);
        }
    }
}

/// True if the text parses as a module.
pub(super) fn parses(text: &str) -> bool {
    ruff_python_parser::parse_module(text).is_ok()
}

/// Unix line ends, spaces in place of tabs at the front, no control characters, no line with nothing but a backslash
/// before a statement, nothing after a model's own end mark.
fn plain(text: &str) -> String {
    const MARKS: [&str; 9] = [
        "<|endoftext|>",
        "<|im_end|>",
        "<|im_start|>",
        "<|file_sep|>",
        "<|repo_name|>",
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_pad|>",
        "<|eot_id|>",
    ];
    let text = text.strip_prefix("<|fim_middle|>").unwrap_or(text);
    let end = MARKS.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let text = text[..end].replace("\r\n", "\n").replace('\r', "\n");
    let text: String =
        text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect();
    let text = text.trim_start_matches('\u{feff}');
    // Indentation that a line with nothing but a backslash hands to the next one.
    let mut handed = None;
    map_lines(text, |line| {
        if line.kind == LineKind::InString {
            return line.text.to_owned();
        }
        let code = line.text.trim_start_matches([' ', '\t', '\u{a0}']);
        let margin = &line.text[..line.text.len() - code.len()];
        let mut width = 0;
        for character in margin.chars() {
            width += if character == '\t' { 4 - width % 4 } else { 1 };
        }
        if code.trim() == "# <hole>" || code.trim() == "<hole>" {
            return String::new();
        }
        // Python lets such a line at column 0 take the next one's indentation, but not elsewhere: moved, it would mean
        // something else.
        let begins = line.kind == LineKind::Code || handed.is_some();
        let width = handed.take().filter(|handed| *handed > 0).unwrap_or(width);
        if begins && code.trim_end() == "\\" {
            handed = Some(width);
            return String::new();
        }
        " ".repeat(width) + code.trim_end()
    })
}

/// The first fenced block, if the text as it is does not parse.
fn unfence(text: &str) -> Option<String> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    if !text.lines().any(|line| is_fence(&line)) || parses(&level(text).0) {
        return None;
    }
    let mut after = text.split('\n').skip_while(|line| !is_fence(line));
    let opening = after.next()?;
    let block: Vec<&str> = after.take_while(|line| !is_fence(line)).collect();
    let block = block.join("\n");
    if !block.trim().is_empty() {
        return Some(block);
    }
    // A closing fence alone stands after the code.
    (opening.trim() == "```")
        .then(|| text.split('\n').take_while(|line| !is_fence(line)).collect::<Vec<_>>().join("\n"))
}

/// Without leading lines that the prefix has too, its `try:` apart.
fn without_prefix(text: &str, scaffold: &Scaffold) -> Option<String> {
    let is_repeated = |line: &Line<'_>| {
        let code = line.text.trim();
        code.is_empty()
            || code != "try:"
                && !code.starts_with("import ")
                && scaffold.prefix.lines().any(|of_prefix| of_prefix.trim() == code)
                && !scaffold.done.iter().any(|done| done.contains(code))
    };
    let all = lines(text);
    let kept = all.iter().find(|line| !is_repeated(line))?;
    let head = text.get(..kept.start).unwrap_or_default();
    (!head.trim().is_empty()).then(|| text[kept.start..].to_owned())
}

/// The body of a repeated `try:`, with the scaffold's own handler or none.
fn without_wrapper(text: &str, scaffold: &Scaffold) -> Option<String> {
    let all = lines(text);
    let first = all.iter().find(|line| line.kind == LineKind::Code)?;
    let level = first.indent();
    if first.text.trim() != "try:" {
        return None;
    }
    let outside = |line: &&Line<'_>| line.kind == LineKind::Code && line.start > first.start && line.indent() <= level;
    let body = first.start + first.text.len() + 1;
    let Some(handler) = all.iter().find(outside) else {
        return text.get(body..).map(|inner| text[..first.start].to_owned() + inner);
    };
    let rest: Vec<&str> = text[handler.start..].lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let suffix: Vec<&str> = scaffold.suffix.lines().map(str::trim).collect();
    (!rest.is_empty() && suffix.starts_with(&rest)).then(|| text[..first.start].to_owned() + &text[body..handler.start])
}

/// Where the hole's own level is left by an `except`, `finally` or `else` that belongs to no `try` of the hole.
pub(super) fn handler_start(text: &str) -> Option<usize> {
    let all = lines(text);
    let level = all.iter().find(|line| line.kind == LineKind::Code)?.indent();
    // Whether the last statement of the level can take such a clause.
    let mut is_open = false;
    for line in all.iter().filter(|line| line.kind == LineKind::Code && line.indent() <= level) {
        if line.begins_with(&["except", "finally"]) {
            if !is_open || line.indent() < level {
                return Some(line.start);
            }
        } else {
            is_open = line.begins_with(&["try"]) || is_open && line.begins_with(&["else"]);
        }
    }
    None
}

/// Refuses text that goes on after its handlers.
fn closes_try(text: &str, start: usize) -> Result<(), Finding> {
    let rest = &text[start..];
    let all = lines(rest);
    let level = all.first().map(Line::indent).unwrap_or_default();
    let goes_on = all.iter().find(|line| {
        line.kind == LineKind::Code && line.indent() <= level && !line.begins_with(&["except", "finally", "else"])
    });
    match goes_on {
        None => Ok(()),
        Some(_) => Err(Finding {
            line: u32::try_from(text[..start].matches('\n').count() + 1).unwrap_or(u32::MAX),
            message:
                "the hole closes the `try` around it and goes on: write the statements only, the `except` is there"
                    .to_owned(),
        }),
    }
}

/// The text at no indentation, and what was odd about it.
fn level(text: &str) -> (String, Option<&'static str>) {
    let all = lines(text);
    let indents: Vec<usize> = all.iter().filter(|line| line.kind == LineKind::Code).map(Line::indent).collect();
    let Some((first, others)) = indents.split_first() else {
        return (dedent(text, usize::MAX), None);
    };
    let least = indents.iter().copied().min().unwrap_or_default();
    let straight = dedent(text, least);
    let sentence = (least != 0 && least != HOLE_INDENT).then_some("moved the lines to the level of the hole");
    if others.is_empty() || parses(&straight) {
        return (straight, sentence);
    }
    // The first line lacks its indentation, or has one that the others lack.
    let others_least = others.iter().copied().min().unwrap_or_default();
    if *first == others_least {
        return (straight, sentence);
    }
    let first_line = all.iter().position(|line| line.kind == LineKind::Code).unwrap_or_default();
    let mut index = 0;
    let bent = map_lines(text, |line| {
        index += 1;
        let width = if index - 1 <= first_line { *first } else { others_least };
        match line.kind {
            LineKind::InString => line.text.to_owned(),
            _ => line.text.get(width.min(line.indent())..).unwrap_or_default().to_owned(),
        }
    });
    if parses(&bent) { (bent, Some("moved the first line to the level of the others")) } else { (straight, sentence) }
}

/// Without the last statement, if the text does not end with it or it does not parse.
fn without_half_statement(text: &str) -> Option<String> {
    if text.ends_with('\n') && parses(text) {
        return None;
    }
    let all = lines(text);
    let starts: Vec<usize> = all.iter().filter(|line| line.kind == LineKind::Code).map(|line| line.start).collect();
    // A broken statement's own lines may look like statements, so it may take more than one cut.
    starts.iter().rev().take(40).map(|start| &text[..*start]).find(|head| has_statement(head)).map(str::to_owned)
}

fn has_statement(text: &str) -> bool {
    ruff_python_parser::parse_module(text).is_ok_and(|module| !module.suite().is_empty())
}

/// Without leading and trailing lines of prose, if that alone makes it parse.
fn without_prose(text: &str) -> Option<String> {
    const MOST: usize = 12;
    if parses(text) {
        return None;
    }
    let all: Vec<&str> = text.split('\n').collect();
    let heads =
        (0..=MOST).take_while(|head| all.iter().take(*head).all(|line| line.trim().is_empty() || is_prose(line)));
    let tails =
        (0..=MOST).take_while(|tail| all.iter().rev().take(*tail).all(|line| line.trim().is_empty() || is_prose(line)));
    let tails: Vec<usize> = tails.collect();
    for head in heads {
        for tail in &tails {
            let Some(middle) = all.get(head..all.len().saturating_sub(*tail)) else { continue };
            let middle = level(&middle.join("\n")).0;
            if has_statement(&middle) {
                return Some(middle);
            }
        }
    }
    None
}

/// True for a line that is a sentence and no Python: three words or more, or one that introduces the code.
pub(super) fn is_prose(line: &str) -> bool {
    const KEYWORDS: [&str; 24] = [
        "and", "as", "assert", "async", "await", "class", "def", "del", "elif", "else", "except", "finally", "for",
        "from", "global", "if", "import", "lambda", "print", "raise", "return", "try", "while", "with",
    ];
    let line = line.trim();
    let words = line.split_whitespace().count();
    let first = line.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    let begins = line.starts_with(|first: char| first.is_alphabetic() || matches!(first, '*' | '-' | '>' | '1'..='9'));
    let is_call = line.split('(').rev().skip(1).any(|before| before.ends_with(|last: char| last.is_alphanumeric()));
    begins
        && (words >= 3 || line.ends_with([':', '.', '!']))
        && !KEYWORDS.contains(&first)
        && !line.contains(['=', '[', '{'])
        && !is_call
        && !parses(line)
}

/// Without leading statements that ran in an earlier try of this round.
fn without_done(text: &str, done: &[String]) -> Option<String> {
    let module = ruff_python_parser::parse_module(text).ok()?;
    let statements: &[Stmt] = module.suite();
    let is_same = |statement: &Stmt, done: &String| {
        let source = text.get(statement.start().to_usize()..statement.end().to_usize()).unwrap_or_default();
        essence(source) == essence(done)
    };
    let repeated = statements.iter().zip(done).take_while(|(statement, done)| is_same(statement, done)).count();
    let rest = statements.get(repeated).filter(|_| repeated > 0)?;
    text.get(rest.start().to_usize()..).map(str::to_owned)
}

/// A statement without what may be written one way or the other.
fn essence(statement: &str) -> String {
    let text: String = statement.replace("await ", "").chars().filter(|character| !character.is_whitespace()).collect();
    text.replace(['(', ')'], "").replace('"', "'")
}
